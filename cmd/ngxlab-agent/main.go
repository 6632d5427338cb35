// Command ngxlab-agent runs on a host of a study and does there what ngxlab asks.
package main

import (
	"os"

	"ngxlab/agent"
)

func main() {
	os.Exit(agent.Main(os.Args[1:], os.Stdout, os.Stderr))
}
