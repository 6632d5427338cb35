package plan

import (
	"cmp"
	"fmt"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

// openFiles: worker_connections ≤ open files of a worker ≤ fs.nr_open; what lies between is the hard limit, which
// the obstacles of nofile hold.
func openFiles(v sight) {
	b := v.bounds
	if b.connections > b.files {
		v.say(directive("events.worker_connections"), "worker_connections %d is above the %d open files a worker may have", b.connections, b.files)
	}
	rlimit, inherited := nginx(v.state, v.host.Name, "main", "worker_rlimit_nofile"), value(v.state, v.host.Name, lab.KnobNofile, "")
	if rlimit != "" && inherited != "" && rlimit != inherited {
		v.say(directive("main.worker_rlimit_nofile"), "workers may open %s files by worker_rlimit_nofile, which wins over nofile %s: that holds for the master alone", rlimit, inherited)
	}
	knob := lab.KnobID{Kind: lab.KnobNofile}
	if rlimit != "" {
		knob = directive("main.worker_rlimit_nofile")
	}
	if most := number(v.facts.Sysctls["fs.nr_open"], v.facts.NrOpen); most > 0 && b.files > most && v.set(knob) {
		s, _ := v.setting(knob)
		v.p.refuseOnce(lab.Refusal{Host: v.host.Name, Step: s.Step, Knob: s.Knob, Path: v.place(knob), Fatal: true,
			Reason: fmt.Sprintf("state %q: %d open files are above fs.nr_open = %d in force there", v.state.Name, b.files, most),
			Cure:   fmt.Sprintf("ask for at most %d, or set fs.nr_open in the same step", most)})
	}
}

// systemFiles: all workers together are bound by fs.file-max.
func systemFiles(v sight) {
	b, most := v.bounds, v.number("fs.file-max")
	if each := min(b.connections, b.files); most > 0 && each > 0 && b.workers > most/each {
		v.say(sysctl("fs.file-max"), "%d workers with %d connections each are above fs.file-max = %d files of the whole host", b.workers, each, most)
	}
}

// listenBacklog is the knob of the accept queue of the site's sockets.
var listenBacklog = directive("listen.backlog")

// backlog says that the kernel cuts it: the socket will read back another value, which only a best-effort step may.
func backlog(v sight) {
	b := v.bounds
	if b.somaxconn == 0 || b.backlog <= b.somaxconn {
		return
	}
	text := fmt.Sprintf("listen backlog %d is cut to net.core.somaxconn = %d", b.backlog, b.somaxconn)
	s, found := v.setting(listenBacklog)
	switch {
	case !found || s.Absent:
		v.say(sysctl("net.core.somaxconn"), "nginx's own %s", text)
	case s.BestEffort:
		v.say(listenBacklog, "%s", text)
	default:
		v.p.refuseOnce(lab.Refusal{Host: v.host.Name, Step: s.Step, Knob: listenBacklog, Path: v.place(listenBacklog), Fatal: true, Reason: text,
			Cure: "raise net.core.somaxconn in the same step, ask for less, or write best_effort: true in the step to take what there is"})
	}
}

// workers: each beyond the CPUs that the server may use takes turns with another.
func workers(v sight) {
	usable := v.facts.UsableCPUs()
	if pinned := len(v.p.cpus[v.host.Name]); pinned > 0 && (usable == 0 || pinned < usable) {
		usable = pinned
	}
	if n := v.bounds.workers; usable > 0 && n > usable {
		v.say(directive("main.worker_processes"), "%d workers share what the server may use of the CPUs: %d", n, usable)
	}
}

// affinity: worker_cpu_affinity is held against the workers there are.
func affinity(v sight) {
	knob := directive("main.worker_cpu_affinity")
	masks := nginx(v.state, v.host.Name, "main", "worker_cpu_affinity")
	if masks == "" {
		return
	}
	remarks, err := server.Affinity(masks, v.bounds.workers, v.p.usable(v.facts))
	for _, text := range remarks {
		v.say(knob, "worker_cpu_affinity: %s", text)
	}
	if err != nil {
		v.say(knob, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// misplaced: a backlog that is written elsewhere than on listen is none.
func misplaced(v sight) {
	for _, s := range v.state.Settings[v.host.Name] {
		if s.Knob.Kind != lab.KnobNginx || s.Absent || !strings.Contains(s.Value, "backlog=") {
			continue
		}
		if text := server.Inert(s.Knob.Name, s.Value); text != "" {
			v.say(s.Knob, "%s; in force is %d", text, v.queue())
		}
	}
}

// queue is the accept queue that a listening socket gets.
func (v sight) queue() int {
	if b := v.bounds; b.somaxconn > 0 {
		return min(b.backlog, b.somaxconn)
	}
	return v.bounds.backlog
}

// processes: the limit counts all processes of the server's user.
func processes(v sight) {
	knob := lab.KnobID{Kind: lab.KnobNproc}
	n := number(value(v.state, v.host.Name, lab.KnobNproc, ""), 0)
	if n == 0 {
		return
	}
	if v.facts.Root {
		v.say(knob, "%s", v.unbound(n))
	} else if n <= v.bounds.workers && !v.bounds.foreign {
		v.say(knob, "nproc %d does not let %d workers and their master run", n, v.bounds.workers)
	}
	for _, name := range []string{"kernel.threads-max", "kernel.pid_max"} {
		if most := v.number(name); most > 0 && n > most {
			v.say(knob, "nproc %d has no effect above %s = %d", n, name, most)
		}
	}
}

// unbound says what the limit does where root starts the server: no process of root is held to it, nor one with CAP_SYS_RESOURCE
// or CAP_SYS_ADMIN (setrlimit(2)). Workers leave root for the user of `user`, nobody unless said, and start threads only.
func (v sight) unbound(n int) string {
	user, _, _ := strings.Cut(cmp.Or(nginx(v.state, v.host.Name, "main", "user"), v.p.e.Server.User), " ")
	if v.bounds.foreign {
		return fmt.Sprintf("nproc %d is held against a server that leaves root only: the agent is root on %s, and the kernel does not hold root to it", n, v.host.Name)
	}
	text := fmt.Sprintf("nproc %d does not bound how many workers run: the agent is root on %s, which starts them, and the kernel does not hold root to it", n, v.host.Name)
	switch user {
	case "root":
		return text + "; with `user root` it has no effect at all"
	case "":
		user = "nginx's own user (nobody, as a rule)"
	}
	return text + "; it bounds the threads (thread_pool) that workers start as " + user
}

// tracked: a connection that finds no room in the table is dropped.
func tracked(v sight) {
	const name = "net.netfilter.nf_conntrack_max"
	most, asked := v.number(name), 0
	for _, l := range v.p.plan.Loads {
		asked = max(asked, l.Connections)
	}
	if _, loaded := v.facts.Sysctls[name]; loaded && most > 0 && asked > most {
		v.say(sysctl(name), "%d connections are above %s = %d: once a rule tracks connections, the rest is dropped", asked, name, most)
	}
}
