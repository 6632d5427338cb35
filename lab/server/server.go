// Package server makes what the agent needs to build and start a web server: recipes, nginx's configuration with the
// directives of a state edited in, the files it serves, and what must be found in force. It is pure.
package server

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// Input is what a serving is made of.
type Input struct {
	Spec    lab.ServerSpec
	State   lab.State
	Target  lab.Host
	Facts   lab.Facts  // of the target
	Address string     // where load hosts reach the target
	CPUs    []int      // affinity; empty = not pinned
	URLs    []string   // paths that the load asks for; empty = DefaultURL of the site
	Recipe  lab.Recipe // of the state's build

	Command  *lab.ServerCommand // how a server that is not nginx is started; nil = it is nginx
	Upstream *lab.Serving       // of site proxy: the server that requests are passed to
	Via      string             // of site proxy: where the target reaches the host of Upstream
}

// readyDeadline is how long a server may take until its first answer; nginx takes some milliseconds.
const readyDeadline = 10 * time.Second

// HoldURL is the path that connections of kind active ask for; its answer takes an hour, but for the lab's own probe,
// which says so in the header X-Ngxlab-Probe: 1.
const HoldURL = "/hold"

// Serving makes the server of one target in one state. Errors: a site, path, module, CPU or directive that cannot be.
func Serving(in Input) (lab.Serving, error) { return serving(in, false, nil) }

// CapacityServing makes the server that connections of a kind are held against: what would close or log them is set
// aside, then the directives given are laid over those of the state. URLs[0] is the path to hold. Connections of kind
// active need nginx with a site of the lab's own.
func CapacityServing(in Input, kind lab.HoldKind, nginx map[string]string) (lab.Serving, error) {
	over := []lab.Setting{
		directive("http.access_log", "off"),
		directive("http.keepalive_requests", "10000000"),
		directive("http.keepalive_timeout", "3600s"),
	}
	for name, value := range nginx {
		over = append(over, directive(name, value))
	}
	slices.SortStableFunc(over[3:], func(a, b lab.Setting) int { return strings.Compare(a.Knob.Name, b.Knob.Name) })
	switch {
	case in.Command != nil && len(nginx) > 0:
		return lab.Serving{}, fmt.Errorf("server for held connections: %s is not nginx and takes no directives", in.Recipe.Name)
	case kind == lab.HoldActive && (in.Command != nil || in.Spec.Site == siteTemplate):
		return lab.Serving{}, fmt.Errorf("server for held connections: kind %q needs nginx with a site of the lab's own", kind)
	case kind == lab.HoldIdle:
		in.URLs = asked(in)[:1]
	case kind == lab.HoldActive:
		in.URLs = []string{HoldURL}
	default:
		return lab.Serving{}, fmt.Errorf("server for held connections: unknown kind %q", kind)
	}
	return serving(in, kind == lab.HoldActive, over)
}

func directive(name, value string) lab.Setting {
	return lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: name}, Value: value}
}

// serving makes the server, and says of which target and state it is when it cannot be.
func serving(in Input, hold bool, over []lab.Setting) (lab.Serving, error) {
	in.URLs = asked(in)
	s, err := started(in, hold, over)
	if err != nil {
		return lab.Serving{}, fmt.Errorf("server of %s in state %q: %w", in.Target.Name, in.State.Name, err)
	}
	return s, nil
}

// started renders the configuration and edits the directives in, or takes the command.
func started(in Input, hold bool, over []lab.Setting) (lab.Serving, error) {
	if err := check(in, hold); err != nil {
		return lab.Serving{}, err
	}
	s := lab.Serving{
		Target: in.Target.Name, State: in.State.Name, Recipe: in.Recipe.Name, Port: in.Spec.Port, URLs: in.URLs, CPUs: in.CPUs,
		User: in.Spec.User, TLS: in.Spec.TLS, Deadline: lab.Duration{Duration: readyDeadline},
		Nofile: limit(in, lab.KnobNofile, in.Spec.Nofile), Nproc: limit(in, lab.KnobNproc, in.Spec.Nproc),
	}
	if in.Command != nil {
		return commanded(in, s), nil
	}
	if s.StatusPort = counting(in); s.StatusPort == 0 {
		s.Count = in.Spec.Count
	}
	var err error
	if s.Bodies, err = bodies(in); err != nil {
		return lab.Serving{}, err
	}
	t, placed, err := configured(in, hold, over)
	if err != nil {
		return lab.Serving{}, err
	}
	t.into(&s)
	s.Template = in.Spec.Site == siteTemplate
	s.Expect = limits(s, placed)
	for _, p := range placed {
		s.Expect = append(s.Expect, p.expected())
	}
	if in.Spec.Site == siteProxy {
		s.Upstream = in.Upstream
	}
	s.User, s.DelayS, s.AtOnce = user(placed), t.delayS(), 0
	if s.DelayS == 0 && s.Upstream != nil {
		s.DelayS, s.AtOnce = s.Upstream.DelayS, s.Upstream.AtOnce
	}
	return s, nil
}

// asked are the paths of the load, or the one that the server has anyway.
func asked(in Input) []string {
	switch {
	case len(in.URLs) > 0:
		return in.URLs
	case in.Command != nil && in.Command.Ready != "":
		return []string{in.Command.Ready}
	case in.Command != nil:
		return []string{"/"}
	case in.Spec.Site == siteProxy && in.Upstream != nil:
		return in.Upstream.URLs
	}
	return []string{DefaultURL(in.Spec.Site)}
}

// listen is loopback for this machine, and the address that other hosts use where they load it: nothing else is opened
// to the network. Other hosts must be reached from outside.
func listen(target lab.Host, address string, port int) []string {
	at := strconv.Itoa(port)
	switch {
	case target.Local && (address == "" || address == lab.Loopback):
		return []string{net.JoinHostPort(lab.Loopback, at)}
	case target.Local:
		return []string{net.JoinHostPort(lab.Loopback, at), net.JoinHostPort(address, at)}
	case strings.Contains(address, ":"):
		return []string{net.JoinHostPort("::", at) + " ipv6only=off"} // both families: the probe comes from 127.0.0.1
	}
	return []string{at}
}

func statusPort(spec lab.ServerSpec) int {
	if spec.StatusPort != 0 {
		return spec.StatusPort
	}
	return spec.Port + 1
}

// counting is the port of stub_status; 0 when the build does not have it and something else counts.
func counting(in Input) int {
	if in.Spec.Count != nil && !sure(in.Recipe, "stub_status") {
		return 0
	}
	return statusPort(in.Spec)
}

// limits are the limits to find in force on the workers: not that of open files where worker_rlimit_nofile gives them
// another, which wins (nginx 1.22, ngx_worker_process_init) and is among the directives.
func limits(s lab.Serving, list []placed) []lab.Setting {
	var all []lab.Setting
	own := slices.ContainsFunc(list, func(p placed) bool { return p.place.name == "worker_rlimit_nofile" && !p.setting.Absent })
	if s.Nofile > 0 && !own {
		all = append(all, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: strconv.Itoa(s.Nofile)})
	}
	if s.Nproc > 0 {
		all = append(all, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNproc}, Value: strconv.Itoa(s.Nproc)})
	}
	return all
}

// limit is the state's limit of a kind, or that of the server section.
func limit(in Input, kind string, section int) int {
	for _, s := range in.State.Settings[in.Target.Name] {
		if n, err := strconv.Atoi(s.Value); err == nil && s.Knob.Kind == kind {
			return n
		}
	}
	return section
}

// Workers is what worker_processes auto stands for, one worker for each CPU that the server may use. nginx would count
// the CPUs of the machine, whatever the server's affinity or the bounds of its container. 0 = as nginx counts.
func Workers(cpus []int, f lab.Facts) int {
	usable := f.UsableCPUs()
	switch {
	case len(cpus) > 0 && usable > 0:
		return min(len(cpus), usable)
	case len(cpus) > 0:
		return len(cpus)
	case usable < f.Cores:
		return usable
	}
	return 0
}
