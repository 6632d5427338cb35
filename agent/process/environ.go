package process

import (
	"os"
	"strings"

	"ngxlab/lab"
)

// What marks every process of the lab, so that a survivor is known by it.
const (
	EnvCampaign = "NGXLAB_CAMPAIGN" // the campaign it was started for
	EnvDir      = "NGXLAB_DIR"      // state directory of the agent that started it
)

// kept are the variables of the agent's own environment that commands get, when set.
var kept = []string{"HOME", "USER", "LOGNAME", "TMPDIR"}

// environment is the minimal environment of a command, with its own additions last. Numbers are printed the C way
// whatever the host's language. Another user's process has that user's home.
func environment(c lab.Command, dir string, as identity) []string {
	env := []string{"PATH=" + SearchPath(), "LC_ALL=C", EnvCampaign + "=" + string(c.Campaign), EnvDir + "=" + dir}
	if as.name != "" {
		return append(append(env, "HOME="+as.home, "USER="+as.name, "LOGNAME="+as.name), c.Env...)
	}
	for _, name := range kept {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, c.Env...)
}

// SearchPath is the agent's PATH with the system directories that a session of an ordinary user may lack.
func SearchPath() string {
	path := os.Getenv("PATH")
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if !strings.Contains(":"+path+":", ":"+dir+":") {
			path += ":" + dir
		}
	}
	return strings.TrimPrefix(path, ":")
}
