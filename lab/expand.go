package lab

import (
	"fmt"
	"strings"
)

// LoadPoints expands the axes of every `load:` entry into load points, in the order of the file; within an entry,
// load hosts change slowest, then keep-alive, then connections.
//
// Names are "wrk 100 keep-alive" or "ab 100 close", with what else tells points of one tool apart (URL, load hosts,
// processes …) added only where it varies. CPUs are left empty: pinning needs the facts of the hosts. It fails when an
// axis is empty, when more load hosts are asked for than there are, and when two points would be the same.
func LoadPoints(e Experiment) ([]LoadPoint, error) {
	var points []LoadPoint
	for i := range e.Load {
		expanded, err := expand(e, i)
		if err != nil {
			return nil, fmt.Errorf("load[%d] (%s): %w", i, e.Load[i].Tool, err)
		}
		points = append(points, expanded...)
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("experiment %q: no load points", e.Name)
	}
	return points, nameLoads(e, points)
}

func expand(e Experiment, index int) ([]LoadPoint, error) {
	spec := e.Load[index]
	if len(spec.KeepAlive) == 0 || len(spec.Connections) == 0 {
		return nil, fmt.Errorf("keepalive and connections need at least one value each")
	}
	groups, err := loadHosts(e, spec.Hosts)
	if err != nil {
		return nil, err
	}
	var points []LoadPoint
	for _, hosts := range groups {
		for _, keepAlive := range spec.KeepAlive {
			for _, connections := range spec.Connections {
				p := loadPoint(spec, index)
				p.Hosts, p.KeepAlive, p.Connections = hosts, keepAlive, connections
				p.Headline = spec.Headline || !anyHeadline(e.Load)
				points = append(points, p)
			}
		}
	}
	return points, nil
}

func loadPoint(spec LoadSpec, index int) LoadPoint {
	return LoadPoint{
		Spec: index, Tool: spec.Tool, URL: spec.URL,
		Duration: spec.Duration, Requests: spec.Requests, WarmupFirst: spec.WarmupFirst, Warmup: spec.Warmup,
		Processes: max(spec.Processes, 1), Threads: spec.Threads, ExpectErrors: spec.ExpectErrors,
	}
}

// loadHosts returns one group of load hosts per number asked for: the first n in the order of the file.
func loadHosts(e Experiment, numbers []int) ([][]HostName, error) {
	var all []HostName
	for _, host := range e.Hosts {
		if host.Has(RoleLoad) {
			all = append(all, host.Name)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no host has the role %q", RoleLoad)
	}
	if len(numbers) == 0 {
		numbers = []int{len(all)}
	}
	var groups [][]HostName
	for _, n := range numbers {
		if n < 1 || n > len(all) {
			return nil, fmt.Errorf("%d load hosts asked for, the experiment has %d", n, len(all))
		}
		groups = append(groups, all[:n:n])
	}
	return groups, nil
}

func anyHeadline(specs []LoadSpec) bool {
	for _, spec := range specs {
		if spec.Headline {
			return true
		}
	}
	return false
}

// nameParts are the further parts of a load point's name, each used only when it varies among points of one tool.
var nameParts = []func(e Experiment, p LoadPoint) string{
	func(_ Experiment, p LoadPoint) string { return p.URL },
	func(_ Experiment, p LoadPoint) string { return count(len(p.Hosts), "host") },
	func(_ Experiment, p LoadPoint) string { return count(p.Processes, "process") },
	func(_ Experiment, p LoadPoint) string { return count(p.Threads, "thread") },
	func(_ Experiment, p LoadPoint) string { return length(p) },
	func(e Experiment, p LoadPoint) string { return pinning(e.Load[p.Spec]) },
}

func nameLoads(e Experiment, points []LoadPoint) error {
	varies := map[string][]bool{}
	for i, part := range nameParts {
		first := map[string]string{}
		for _, p := range points {
			if varies[p.Tool] == nil {
				varies[p.Tool] = make([]bool, len(nameParts))
			}
			text, seen := first[p.Tool]
			if !seen {
				first[p.Tool] = part(e, p)
			} else if text != part(e, p) {
				varies[p.Tool][i] = true
			}
		}
	}
	owner := map[string]int{}
	for i := range points {
		points[i].Name = loadName(e, points[i], varies[points[i].Tool])
		if spec, taken := owner[points[i].Name]; taken {
			return fmt.Errorf("load[%d] repeats %q of load[%d]", points[i].Spec, points[i].Name, spec)
		}
		owner[points[i].Name] = points[i].Spec
	}
	return nil
}

func loadName(e Experiment, p LoadPoint, varies []bool) string {
	words := []string{p.Tool, fmt.Sprint(p.Connections), "close"}
	if p.KeepAlive {
		words[2] = "keep-alive"
	}
	for i, part := range nameParts {
		if text := part(e, p); varies[i] && text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, " ")
}

func count(n int, what string) string {
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func length(p LoadPoint) string {
	if p.Timed() {
		return p.Duration.String()
	}
	return count(p.Requests, "request")
}

func pinning(spec LoadSpec) string {
	switch {
	case spec.CPUs != "":
		return "on CPUs " + spec.CPUs
	case spec.Pin:
		return "pinned"
	}
	return ""
}
