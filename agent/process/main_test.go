package process

import (
	"fmt"
	"os"
	"testing"
)

// TestMain lets the test binary be the waiting process that a Runner starts, the agent's hidden subcommand, and a server
// that is not nginx.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WaitCommand {
		fmt.Fprintln(os.Stderr, Wait(os.Args[2:]))
		os.Exit(1) //nolint:forbidigo // the main of this test
	}
	if len(os.Args) > 2 && os.Args[1] == substitute {
		fmt.Fprintln(os.Stderr, serveSubstitute(os.Args[2]))
		os.Exit(1) //nolint:forbidigo // the main of this test
	}
	os.Exit(m.Run()) //nolint:forbidigo // the main of this test
}
