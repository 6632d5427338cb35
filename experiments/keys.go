package experiments

import (
	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// Patterns of the names that a file chooses. A name stands in tables, paths and URLs.
const (
	namePattern   = `^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`
	stepPattern   = `^[A-Za-z0-9][^\n/]{0,62}$`
	sha256Pattern = `^[0-9a-fA-F]{64}$`
	commitPattern = `^[0-9a-f]{40}$`
)

// The bounds of whole numbers. Connections are those of one target: beyond 16 million there is no address left.
const (
	maxConnections = 1 << 24
	maxRequests    = 1 << 40
	maxNofile      = 1 << 30
	maxNproc       = 1 << 22 // of the kernel: PID_MAX_LIMIT
)

var (
	nameText = matching("a name of letters, digits, dots and dashes", namePattern)
	stepName = matching("a name of at most 63 characters, without a slash", stepPattern)
	urlPath  = matching(`a path that begins with "/"`, `^/[^\s]*$`)
	policy   = oneOf(lab.CannotFail, lab.CannotSkip)
	role     = oneOf(lab.RoleTarget, lab.RoleLoad, lab.RoleUpstream)
	nofile   = integer(64, maxNofile)
	nproc    = integer(1, maxNproc)
	port     = integer(1, 65535)
	free     = mapping("a key", `^[^\s]`, text)
	freely   = mapping("a key", `^[^\s]`, number)
)

// experimentValue is the whole file.
var experimentValue = object(newExperiment,
	has("name", "short name of the study; campaigns are called after it", nameText, func(e *lab.Experiment) *string { return &e.Name }).must(),
	has("title", "the question, as the report's heading", text, func(e *lab.Experiment) *string { return &e.Title }),
	has("source", "where the study was published", text, func(e *lab.Experiment) *string { return &e.Source }),
	has("hosts", "the machines by name, each with its roles", hosts, func(e *lab.Experiment) *[]lab.Host { return &e.Hosts }).must(),
	has("builds", "server binaries by name; default one, called nginx, from Debian's source package",
		mapping("the name of a build", namePattern, recipe), func(e *lab.Experiment) *map[string]lab.Recipe { return &e.Builds }),
	has("server", "what every state serves unless a step changes it", serverSpec, func(e *lab.Experiment) *lab.ServerSpec { return &e.Server }),
	has("ladder", "how steps become states: cumulative (default), isolated, leave-one-out, or a list of lists of step names",
		ladder, func(e *lab.Experiment) *lab.Ladder { return &e.Ladder }),
	has("steps", "named sets of knob values; the first is the baseline and holds in every state", listOnly(step),
		func(e *lab.Experiment) *[]lab.Step { return &e.Steps }).must(),
	has("load", "ways to load the target; lists in an entry are axes", listOnly(loadSpec), func(e *lab.Experiment) *[]lab.LoadSpec { return &e.Load }).must(),
	has("repeat", "how often, and when to stop", repeat, func(e *lab.Experiment) *lab.Repeat { return &e.Repeat }),
	has("order", "interleaved (default): every round has all states; blocked: state after state", oneOf(lab.Interleaved, lab.Blocked),
		func(e *lab.Experiment) *lab.Order { return &e.Order }),
	has("unsupported", "what to do with a knob that a host cannot have: fail (default) or skip", policy,
		func(e *lab.Experiment) *lab.Cannot { return &e.Cannot }),
	has("claims", "statements to test", listOnly(claim), func(e *lab.Experiment) *[]lab.Claim { return &e.Claims }),
	has("published", "what a publication says of its study", published, func(e *lab.Experiment) *lab.Published { return &e.Publish }),
	has("capacity", "measure memory per connection after the rounds", pointer(capacity), func(e *lab.Experiment) **lab.CapacitySpec { return &e.Capacity }),
)

var step = object(func() lab.Step { return lab.Step{} },
	has("name", "unique; the state is called after it", stepName, func(s *lab.Step) *string { return &s.Name }).must(),
	has("why", "what the step is expected to do, for the report", text, func(s *lab.Step) *string { return &s.Why }),
	has("on", "roles of the hosts that are tuned (all but nginx, nofile, nproc and build), default target", list(role), func(s *lab.Step) *[]lab.Role { return &s.On }),
	edits,
	has("sysctl", "kernel settings by name", sysctls, func(s *lab.Step) *map[string]string { return &s.Sysctl }),
	knobs("sysfs", "files of the kernel below /sys or /proc by path, which may be a pattern", sysfs),
	knobs("ethtool", "settings of network interfaces: eth0.rings.rx, eth0.channels.combined, eth0.coalesce.rx-usecs, eth0.features.gro", ethtool),
	knobs("files", "files by path: their content, or {content, mode, owner}; null: there shall be none", files),
	knobs("services", "services of systemd: started or stopped", services),
	knobs("units", "limits of units of systemd: nginx.service.LimitNOFILE", units),
	knobs("commands", "whatever else can be put in force, verified and taken back, by a name of your own", commands),
	has("nofile", "open-file limit of the server", nofile, func(s *lab.Step) *int { return &s.Nofile }),
	has("nproc", "process limit of the server's user", nproc, func(s *lab.Step) *int { return &s.Nproc }),
	has("build", "name of another build", nameText, func(s *lab.Step) *string { return &s.Build }),
	has("persist", "true: sysctls and limits also as one file of ours in sysctl.d and limits.d, until restored", boolean, func(s *lab.Step) *bool { return &s.Persist }),
	has("best_effort", "true: accept a value that reads back differently, and say so", boolean, func(s *lab.Step) *bool { return &s.BestEffort }),
	has("unsupported", "fail or skip, for this step", policy, func(s *lab.Step) *lab.Cannot { return &s.Cannot }),
)

var loadSpec = object(newLoadSpec,
	has("tool", "wrk or ab", tool, func(l *lab.LoadSpec) *string { return &l.Tool }).must(),
	has("url", "path to request, default the site's", urlPath, func(l *lab.LoadSpec) *string { return &l.URL }),
	has("keepalive", "axis: true (default), false, or both", list(boolean), func(l *lab.LoadSpec) *[]bool { return &l.KeepAlive }),
	has("connections", "axis: concurrent connections over all load hosts and processes", axis(1, maxConnections), func(l *lab.LoadSpec) *[]int { return &l.Connections }).must(),
	has("duration", "measured time, default 10s (wrk and ab take whole seconds)", duration, func(l *lab.LoadSpec) *lab.Duration { return &l.Duration }),
	has("requests", "a fixed number of requests instead of a time", integer(1, maxRequests), func(l *lab.LoadSpec) *int { return &l.Requests }),
	warmup,
	has("hosts", "axis: numbers of load hosts, default all", axis(1, maxElements), func(l *lab.LoadSpec) *[]int { return &l.Hosts }),
	has("processes", "generator processes per load host, default 1", integer(1, 1024), func(l *lab.LoadSpec) *int { return &l.Processes }),
	has("threads", "of wrk per process, default as many as its CPUs, at most the connections", integer(1, 1024), func(l *lab.LoadSpec) *int { return &l.Threads }),
	has("pin", "true: pin the generators to the CPUs that the server does not use", boolean, func(l *lab.LoadSpec) *bool { return &l.Pin }),
	has("cpus", "pin the generators to these CPUs", cpus, func(l *lab.LoadSpec) *string { return &l.CPUs }),
	has("expect_errors", "true: errors are the study; more connections than the server takes are no mistake", boolean, func(l *lab.LoadSpec) *bool { return &l.ExpectErrors }),
	has("headline", "true: only entries marked so make the one figure per step", boolean, func(l *lab.LoadSpec) *bool { return &l.Headline }),
)

// warmups is {first, further}, or one duration for both.
var warmups = object(func() lab.LoadSpec { return newLoadSpec() },
	has("first", "before the first load point of a state and round, default 3s", duration, func(l *lab.LoadSpec) *lab.Duration { return &l.WarmupFirst }),
	has("further", "before each further load point, default 1s", duration, func(l *lab.LoadSpec) *lab.Duration { return &l.Warmup }),
)

var warmup = key[lab.LoadSpec]{name: "warmup", doc: "load before the measured one: a duration, or {first: 3s, further: 1s}",
	schema: schema{"anyOf": []schema{duration.schema, warmups.schema}},
	read: func(d *decoding, path string, n ast.Node, l *lab.LoadSpec) {
		if n.Type() != ast.MappingType {
			if t, ok := duration.read(d, path, n); ok {
				l.WarmupFirst, l.Warmup = t, t
			}
		} else if w, ok := warmups.read(d, path, n); ok {
			l.WarmupFirst, l.Warmup = w.WarmupFirst, w.Warmup
		}
	}}

var repeat = object(newRepeat,
	has("min", "rounds at least, default 6", integer(1, 1000), func(r *lab.Repeat) *int { return &r.Min }),
	has("max", "rounds at most, default 20", integer(1, 1000), func(r *lab.Repeat) *int { return &r.Max }),
	has("precision", "half-width of the intervals at which to stop, default 2%", ratio, func(r *lab.Repeat) *float64 { return &r.Precision }),
	has("effect", "smallest effect that matters, default 2%", ratio, func(r *lab.Repeat) *float64 { return &r.Effect }),
	has("budget", "time after which no further round begins, default none", duration, func(r *lab.Repeat) *lab.Duration { return &r.Budget }),
	has("cool_down", "rest after each run, default 500ms", duration, func(r *lab.Repeat) *lab.Duration { return &r.CoolDown }),
	has("control", "measure the baseline a second time in every round, default true", boolean, func(r *lab.Repeat) *bool { return &r.Control }),
	has("why", "why these numbers, for the report", text, func(r *lab.Repeat) *string { return &r.Why }),
)

var claim = object(func() lab.Claim { return lab.Claim{Of: lab.Goodput} },
	has("name", "short name of the claim", text, func(c *lab.Claim) *string { return &c.Name }).must(),
	has("of", "figure compared, default rps (goodput)", figure, func(c *lab.Claim) *lab.Metric { return &c.Of }),
	has("state", "state claimed about", text, func(c *lab.Claim) *string { return &c.State }).must(),
	has("over", "state compared with", text, func(c *lab.Claim) *string { return &c.Over }).must(),
	has("at_least", "ratio that the lower end of the interval must reach", number, optional(func(c *lab.Claim) **float64 { return &c.AtLeast })),
	has("at_most", "ratio that the upper end of the interval must not pass", number, optional(func(c *lab.Claim) **float64 { return &c.AtMost })),
	has("published", "ratio that a publication gives", number, optional(func(c *lab.Claim) **float64 { return &c.Published })),
)

// pointer is a value that may be absent.
func pointer[T any](v value[T]) value[*T] {
	return value[*T]{v.schema, func(d *decoding, path string, n ast.Node) (*T, bool) {
		one, ok := v.read(d, path, n)
		return &one, ok
	}}
}

// optional makes room for a value that may be absent.
func optional[T any](field func(*T) **float64) func(*T) *float64 {
	return func(t *T) *float64 {
		*field(t) = new(float64)
		return *field(t)
	}
}

var published = object(func() lab.Published { return lab.Published{} },
	has("conditions", "hardware, kernel, versions … as published", free, func(p *lab.Published) *map[string]string { return &p.Conditions }),
	has("figures", "figures as published", freely, func(p *lab.Published) *map[string]float64 { return &p.Figures }),
)

var capacity = object(newCapacity,
	has("connections", "levels, ascending from 0; default 0, 1000, 2000, 5000, 10000, 20000", axis(0, maxConnections), func(c *lab.CapacitySpec) *[]int { return &c.Connections }),
	has("kinds", "idle (default), active", list(oneOf(lab.HoldIdle, lab.HoldActive)), func(c *lab.CapacitySpec) *[]lab.HoldKind { return &c.Kinds }),
	has("ramps", "ascending ramps, each from a fresh server; default 3", integer(1, 100), func(c *lab.CapacitySpec) *int { return &c.Ramps }),
	has("holders", "processes that hold, default as the limits ask", integer(1, 1024), func(c *lab.CapacitySpec) *int { return &c.Holders }),
	has("sizes", "memory sizes to project to; default 8, 16 and 32 GiB", list(size), func(c *lab.CapacitySpec) *[]int64 { return &c.SizesBytes }),
	has("reserve", "memory kept for the system, default 1GiB", size, func(c *lab.CapacitySpec) *int64 { return &c.ReserveBytes }),
	has("connections_per_user", "default 2, 4 and 6, as browsers open", axis(1, 1000), func(c *lab.CapacitySpec) *[]int { return &c.ConnectionsPerUser }),
	has("nginx", "directives over those of the state", directives, func(c *lab.CapacitySpec) *map[string]string { return &c.Nginx }),
	has("state", "state measured, default the last", text, func(c *lab.CapacitySpec) *string { return &c.State }),
)

// tool lists what lab/load drives; other tools of DESIGN §7 come later.
var tool = oneOf("wrk", "ab")

// figures are the short names of what a claim may be about.
var figures = map[string]lab.Metric{
	"rps": lab.Goodput, "goodput": lab.Goodput, "cpu_per_request": lab.CPUPerRequest, "error_ratio": lab.ErrorRatio,
	"mean": lab.MeanS, "p50": lab.P50S, "p90": lab.P90S, "p99": lab.P99S,
}

var figureName = oneOf("rps", "goodput", "cpu_per_request", "error_ratio", "mean", "p50", "p90", "p99")

var figure = value[lab.Metric]{figureName.schema, func(d *decoding, path string, n ast.Node) (lab.Metric, bool) {
	name, ok := figureName.read(d, path, n)
	return figures[name], ok
}}

// cpus is "auto", or CPU numbers as the kernel writes them.
var cpus = value[string]{schema{"type": []string{"string", "integer"}}, func(d *decoding, path string, n ast.Node) (string, bool) {
	s, _, ok := scalar(n)
	if !ok || s == "" {
		d.wrong(n, `CPU numbers such as "0-3,8", or auto`, "")
		return "", false
	}
	if _, err := lab.ParseCPUs(s); err != nil && s != "auto" {
		d.wrong(n, `CPU numbers such as "0-3,8", or auto`, "")
		return "", false
	}
	return s, true
}}

// cpuList is CPU numbers as the kernel writes them.
var cpuList = value[string]{cpus.schema, func(d *decoding, _ string, n ast.Node) (string, bool) {
	s, _, _ := scalar(n)
	if list, err := lab.ParseCPUs(s); err != nil || len(list) == 0 {
		d.wrong(n, `CPU numbers such as "0-3,8"`, "")
		return "", false
	}
	return s, true
}}
