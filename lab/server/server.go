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
	"ngxlab/lab/server/nginxconf"
	"ngxlab/templates"
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
}

// readyDeadline is how long a server may take until its first answer; nginx takes some milliseconds.
const readyDeadline = 10 * time.Second

// HoldURL is the path that connections of kind active ask for; its answer takes an hour, but for the lab's own probe,
// which says so in the header X-Ngxlab-Probe: 1.
const HoldURL = "/hold"

// Serving makes the server of one target in one state. Errors: a site, path, module, CPU or directive that cannot be.
func Serving(in Input) (lab.Serving, error) { return serving(in, false, nil) }

// CapacityServing makes the server that connections of a kind are held against: what would close or log them is set
// aside, then the directives given are laid over those of the state. URLs[0] is the path to hold.
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
	switch kind {
	case lab.HoldIdle:
		in.URLs = []string{DefaultURL(in.Spec.Site)}
	case lab.HoldActive:
		in.URLs = []string{HoldURL}
	default:
		return lab.Serving{}, fmt.Errorf("server for held connections: unknown kind %q", kind)
	}
	return serving(in, kind == lab.HoldActive, over)
}

func directive(name, value string) lab.Setting {
	return lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: name}, Value: value}
}

// serving renders the configuration and edits the directives in.
func serving(in Input, hold bool, over []lab.Setting) (lab.Serving, error) {
	if len(in.URLs) == 0 {
		in.URLs = []string{DefaultURL(in.Spec.Site)}
	}
	if err := check(in, hold); err != nil {
		return lab.Serving{}, fmt.Errorf("server of %s in state %q: %w", in.Target.Name, in.State.Name, err)
	}
	s := lab.Serving{
		Target: in.Target.Name, State: in.State.Name, Recipe: in.Recipe.Name, Port: in.Spec.Port, StatusPort: statusPort(in.Spec),
		URLs: in.URLs, CPUs: in.CPUs, Nofile: nofile(in), Deadline: lab.Duration{Duration: readyDeadline}, Bodies: bodies(in),
	}
	if s.Nofile > 0 {
		s.Expect = append(s.Expect, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: strconv.Itoa(s.Nofile)})
	}
	conf, err := templates.NginxConf(templates.Nginx{
		Listen: listen(in.Target, in.Address, s.Port), Status: net.JoinHostPort(lab.Loopback, strconv.Itoa(s.StatusPort)),
		Site: in.Spec.Site, Sleep: strconv.FormatFloat(in.Spec.SleepS, 'f', -1, 64), Hold: hold,
	})
	if err != nil {
		return lab.Serving{}, err
	}
	edited := []byte(conf)
	for _, d := range directives(in, over) {
		if edited, err = d.edit(edited); err != nil {
			return lab.Serving{}, fmt.Errorf("server of %s in state %q: %w", in.Target.Name, in.State.Name, err)
		}
		s.Expect = append(s.Expect, d.setting)
	}
	s.Config = string(edited)
	return s, nil
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

// nofile is the state's open-file limit, or that of the server section.
func nofile(in Input) int {
	for _, s := range in.State.Settings[in.Target.Name] {
		if n, err := strconv.Atoi(s.Value); err == nil && s.Knob.Kind == lab.KnobNofile {
			return n
		}
	}
	return in.Spec.Nofile
}

// placed is a setting and where it goes.
type placed struct {
	setting lab.Setting
	place   place
}

// edit puts the directive into the configuration.
func (p placed) edit(conf []byte) ([]byte, error) {
	var err error
	switch {
	case p.place.problem != nil:
		return nil, p.place.problem
	case p.place.parameter != "":
		conf, err = nginxconf.SetParameter(conf, p.place.path, "listen", p.place.parameter, p.setting.Value)
	default:
		conf, err = nginxconf.Set(conf, p.place.path, p.place.name, p.setting.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("directive %s: %w", p.setting.Knob.Name, err)
	}
	return conf, nil
}

// directives returns what to edit in, in the order of its first mention: the server section, the state's steps in
// their order, and what is laid over. A later mention of one place replaces the earlier, by whatever name it goes.
func directives(in Input, over []lab.Setting) []placed {
	var all []lab.Setting
	for name, value := range in.Spec.Nginx {
		all = append(all, directive(name, value))
	}
	for _, s := range in.State.Settings[in.Target.Name] {
		if s.Knob.Kind == lab.KnobNginx {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b lab.Setting) int {
		if order := slices.Index(in.State.Steps, a.Step) - slices.Index(in.State.Steps, b.Step); order != 0 {
			return order
		}
		return strings.Compare(a.Knob.Name, b.Knob.Name)
	})
	var list []placed
	for _, s := range append(all, over...) {
		p := placed{setting: pinned(s, in), place: locate(s.Knob.Name)}
		same := func(q placed) bool { return q.place.key() == p.place.key() }
		if at := slices.IndexFunc(list, same); at >= 0 {
			list[at] = p
			continue
		}
		list = append(list, p)
	}
	return list
}

// pinned resolves worker_processes auto where nginx would count wrong.
func pinned(s lab.Setting, in Input) lab.Setting {
	if n := Workers(in.CPUs, in.Facts); n > 0 && s.Value == "auto" && locate(s.Knob.Name).name == "worker_processes" {
		s.Value = strconv.Itoa(n)
	}
	return s
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
