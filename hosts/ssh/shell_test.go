package ssh_test

import (
	"errors"
	"strings"
	"testing"

	"ngxlab/hosts"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// TestAccountThatRunsNoScriptIsToldWithWhatItNeeds has what sshd or a start-up file does in place of the script.
func TestAccountThatRunsNoScriptIsToldWithWhatItNeeds(t *testing.T) {
	for name, test := range map[string]struct{ command, want string }{
		"a start-up file that exits": {`printf "\033]0;PWNED\007\033[31mred\n" >&2; exit 3`, "exit status 3"},
		"nologin":                    {"echo This account is currently not available.; exit 1", "currently not available"},
		"no end of chatter":          {"exec yes Welcome", "Welcome"},
		"a restricted shell":         {`exec bash -r -c "$SSH_ORIGINAL_COMMAND"`, "restricted"},
		"internal-sftp":              {"internal-sftp", "sftp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := forced(t, test.command)
			if name == "internal-sftp" {
				config = []string{"ForceCommand internal-sftp"}
			}
			s := testlab.SSHD(t, testlab.SSHDOptions{Config: config})
			c, err := ssh.Dial(t.Context(), to(s), only(s))
			if err != nil {
				t.Fatal(err)
			}
			_, err = hosts.Enter(t.Context(), c, hosts.Options{Name: "web", Agent: testlab.Agent(t), Dir: testlab.StateDir(t)})
			var shell *hosts.ShellError
			if !errors.As(err, &shell) {
				t.Fatalf("error %v", err)
			}
			says(t, err, "web: ", test.want)
			if text := err.Error(); strings.Contains(text, "look for") || len(text) > 700 {
				t.Errorf("told at length, or twice: %s", text)
			}
		})
	}
}
