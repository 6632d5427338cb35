// Package templates holds the texts that ngxlab fills in or hands out as they are: server configurations, scripts of
// load tools and report pages. Each is embedded and rendered by a typed function, so that a template and its data are
// checked together by the tests of this package.
package templates
