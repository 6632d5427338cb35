// Package server makes what the agent needs to build and start a web server: recipes, nginx's configuration with the
// directives of a state edited in, the files it serves, and what must be found in force. It is pure.
package server
