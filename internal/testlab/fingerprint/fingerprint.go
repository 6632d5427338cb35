// Package fingerprint says how a host is, in so many facts that whatever a campaign leaves changed shows: kernel
// parameters, limits, files, processes, listeners, mounts, network interfaces. Only tests may import it.
package fingerprint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fingerprint is the facts of a host by their names: "sysctl net.core.somaxconn" → "4096", "file /etc/hosts" →
// "type=file mode=0644 …", "process sleep 5" → how many there are.
type Fingerprint map[string]string

// Options say what is looked at; the zero value is a whole host.
type Options struct {
	Sysctls  string    // directory of the kernel parameters; "" = /proc/sys
	Prefixes []string  // directories whose files are looked at; nil = Prefixes
	LeftOut  []LeftOut // facts that are left out; nil = MovesByItself and Keepings
}

// Take takes the fingerprint of the host that this process runs on. What cannot be read by root is no part of it. It
// leaves this process and its children out.
func Take(ctx context.Context, o Options) (Fingerprint, error) {
	if o.Sysctls == "" {
		o.Sysctls = "/proc/sys"
	}
	if o.Prefixes == nil {
		o.Prefixes = Prefixes
	}
	if o.LeftOut == nil {
		o.LeftOut = slices.Concat(MovesByItself, Keepings)
	}
	f := taken{facts: Fingerprint{}, leftOut: index(o.LeftOut)}
	for what, look := range map[string]func() error{
		"kernel parameters": func() error { return f.sysctls(o.Sysctls) },
		"files":             func() error { return f.trees(o.Prefixes) },
		"limits":            func() error { return f.limits(ctx) },
		"processes":         f.processes,
		"listeners":         f.listeners,
		"mounts":            f.mounts,
		"interfaces":        f.interfaces,
		"routes":            f.routes,
	} {
		if err := look(); err != nil {
			return nil, fmt.Errorf("fingerprint: %s: %w", what, err)
		}
	}
	return f.facts, nil
}

// taken is a fingerprint that is being taken.
type taken struct {
	facts   Fingerprint
	leftOut names
}

// note adds a fact unless it is left out.
func (f taken) note(name, value string) {
	if !f.leftOut.has(name) {
		f.facts[name] = value
	}
}

// count adds one to a fact that is a number, likewise.
func (f taken) count(name string) {
	if f.leftOut.has(name) {
		return
	}
	n := 0
	_, _ = fmt.Sscan(f.facts[name], &n) // there is none yet
	f.facts[name] = fmt.Sprint(n + 1)
}

// Diff says in what b differs from a, a line for each fact, sorted; nil when they are equal.
func Diff(a, b Fingerprint) []string {
	var lines []string
	for name, was := range a {
		if is, there := b[name]; !there {
			lines = append(lines, fmt.Sprintf("%s: gone; was %s", name, was))
		} else if is != was {
			lines = append(lines, name+": "+changed(was, is))
		}
	}
	for name := range maps.Keys(b) {
		if _, there := a[name]; !there {
			lines = append(lines, fmt.Sprintf("%s: new; is %s", name, b[name]))
		}
	}
	slices.Sort(lines)
	return lines
}

// changed tells two values apart; of those made of parts only the parts that differ.
func changed(was, is string) string {
	a, b := strings.Fields(was), strings.Fields(is)
	if len(a) == len(b) && len(a) > 0 && strings.Contains(a[0], "=") {
		var old, now []string
		for i := range a {
			if a[i] != b[i] {
				old, now = append(old, a[i]), append(now, b[i])
			}
		}
		was, is = strings.Join(old, " "), strings.Join(now, " ")
	}
	return fmt.Sprintf("was %s, is %s", was, is)
}
