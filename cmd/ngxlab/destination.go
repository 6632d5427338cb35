package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"ngxlab/hosts/ssh"
	"ngxlab/lab"
)

// access is how hosts that no experiment describes are reached over SSH: flags of the commands that take destinations.
type access struct {
	key, jump string
	sudo      bool
}

func (o *access) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.sudo, "sudo", false, "start the agent through sudo -n (hosts that are not from a file)")
	cmd.Flags().StringVar(&o.key, "key", "", "path of the private key (hosts that are not from a file)")
	cmd.Flags().StringVar(&o.jump, "jump", "", "reach them through these hosts, separated by commas (hosts that are not from a file)")
}

// chosen are the hosts that a command line names: those of the experiment that its first word is, all or those named
// after it; else destinations of SSH, "local" for this machine; this machine when there is none.
func chosen(given []string, o access) (lab.Experiment, error) {
	if len(given) > 0 && namesExperiment(given[0]) {
		x, err := loadExperiment(given[0])
		if err != nil {
			return x, err
		}
		return among(x, given[1:])
	}
	if len(given) == 0 {
		given = []string{"local"}
	}
	x := lab.Experiment{}
	for _, text := range given {
		h, err := destination(text, o)
		if err != nil {
			return x, err
		}
		x.Hosts = append(x.Hosts, h)
	}
	return x, nil
}

// namesExperiment tells an experiment from a destination: a file of YAML, or a name of the library.
func namesExperiment(text string) bool {
	if ext := filepath.Ext(text); ext == ".yaml" || ext == ".yml" {
		return true
	}
	if info, err := os.Stat(text); err == nil && info.Mode().IsRegular() {
		return true
	}
	return inLibrary(text)
}

// among leaves of the experiment's hosts those that are named; all when none is.
func among(x lab.Experiment, names []string) (lab.Experiment, error) {
	if len(names) == 0 {
		return x, nil
	}
	var hosts []lab.Host
	for _, name := range names {
		i := slices.IndexFunc(x.Hosts, func(h lab.Host) bool { return string(h.Name) == name })
		if i < 0 {
			return x, &usageError{err: fmt.Errorf("%s has no host %q", x.File, name), hint: "its hosts are " + joinHosts(hostNames(x))}
		}
		hosts = append(hosts, x.Hosts[i])
	}
	x.Hosts = hosts
	return x, nil
}

// hostNames are the names of the experiment's hosts, in the order of the file.
func hostNames(x lab.Experiment) []lab.HostName {
	names := make([]lab.HostName, len(x.Hosts))
	for i, h := range x.Hosts {
		names[i] = h.Name
	}
	return names
}

// destination is the host that a word names: this machine by any of its usual names, else one over SSH.
func destination(text string, o access) (lab.Host, error) {
	if text == "local" || text == "localhost" || text == lab.Loopback {
		return lab.Host{Name: "local", Local: true}, nil
	}
	d, err := ssh.Parse(text)
	if err == nil && (strings.ContainsFunc(d.User, unicode.IsSpace) || strings.HasPrefix(d.User, "-")) {
		err = fmt.Errorf("destination %q: %q is no user's name", text, d.User)
	}
	for jump := range strings.SplitSeq(o.jump, ",") {
		if _, bad := ssh.Parse(jump); err == nil && o.jump != "" && bad != nil {
			return lab.Host{}, &usageError{err: fmt.Errorf("--jump %s: %w", o.jump, bad), hint: "name hosts as [user@]host[:port], with one comma between two"}
		}
	}
	if err != nil {
		return lab.Host{}, &usageError{err: err, hint: "a host is [user@]host[:port], a name of ~/.ssh/config, or local; or name an experiment file first"}
	}
	return lab.Host{Name: lab.HostName(text), Address: d.Address, Port: d.Port, User: d.User, Sudo: o.sudo, Key: o.key, Jump: o.jump}, nil
}

// sshDestination is where SSH reaches a host.
func sshDestination(h lab.Host) ssh.Destination {
	return ssh.Destination{Address: h.Address, Port: h.Port, User: h.User, Key: h.Key, Jump: h.Jump}
}

// restoreCommand is the command that puts hosts of an experiment back, for the person to type: they are named in its
// file or, where there is none, as destinations.
func (a *app) restoreCommand(x lab.Experiment, names []lab.HostName) string {
	begin := "ngxlab restore"
	if a.stateDir != "" {
		begin += " --state-dir " + shellWord(a.stateDir)
	}
	hosts := slices.DeleteFunc(slices.Clone(x.Hosts), func(h lab.Host) bool { return !slices.Contains(names, h.Name) })
	switch {
	case len(hosts) == 1 && hosts[0].Local:
		return begin
	case !stands(x.File) && !slices.ContainsFunc(hosts, isDocker):
		return destinationCommands(begin, hosts)
	case len(hosts) == len(x.Hosts):
		return begin + " " + shellWord(x.File)
	}
	return begin + " " + shellWord(x.File) + " " + strings.ReplaceAll(joinHosts(names), ",", "")
}

// stands reports whether an experiment can still be read where it was read from.
func stands(file string) bool {
	_, err := os.Stat(file)
	return file != "" && (err == nil || inLibrary(file))
}

// destinationCommands names hosts as destinations, with one command for all that need the same flags.
func destinationCommands(begin string, hosts []lab.Host) string {
	var order []string
	lines := map[string]string{}
	for _, h := range hosts {
		name := "local"
		if !h.Local {
			name = sshDestination(h).String()
		}
		flags := strings.Join(accessWords(h), " ")
		if lines[flags] == "" {
			order = append(order, flags)
			lines[flags] = strings.TrimSuffix(begin+" "+flags, " ")
		}
		lines[flags] += " " + shellWord(name)
	}
	for i, flags := range order {
		order[i] = lines[flags]
	}
	return strings.Join(order, "; ")
}

// shellWord quotes a word of a command line that a person is to type, where a shell would take it for more than that. A ~
// stays what it is for the shell.
func shellWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"$`\\|&;<>()*?#!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// accessWords are the flags that reach a host without a file, as a person types them.
func accessWords(h lab.Host) []string {
	var all []string
	if h.Sudo {
		all = append(all, "--sudo")
	}
	if h.Key != "" {
		all = append(all, "--key", shellWord(h.Key))
	}
	if h.Jump != "" {
		all = append(all, "--jump", shellWord(h.Jump))
	}
	return all
}
