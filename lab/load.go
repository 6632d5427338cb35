package lab

// LoadPoint is one way to load the target: one combination of a LoadSpec's axes.
type LoadPoint struct {
	Name         string             `json:"name"` // unique, e.g. "wrk 100 keep-alive"
	Spec         int                `json:"spec"` // index into Experiment.Load
	Tool         string             `json:"tool"`
	URL          string             `json:"url"`
	Connections  int                `json:"connections"` // in all
	KeepAlive    bool               `json:"keepalive"`
	Duration     Duration           `json:"duration_s"`
	Requests     int                `json:"requests,omitempty"` // fixed count in all, 0 = timed
	WarmupFirst  Duration           `json:"warmup_first_s"`
	Warmup       Duration           `json:"warmup_s"`
	Hosts        []HostName         `json:"hosts"`
	Processes    int                `json:"processes"` // per host
	Threads      int                `json:"threads,omitempty"`
	CPUs         map[HostName][]int `json:"cpus,omitempty"` // affinity per host; absent = not pinned
	ExpectErrors bool               `json:"expect_errors,omitempty"`
	Headline     bool               `json:"headline"`
}

// Timed reports whether the load point runs for a time rather than a count.
func (p LoadPoint) Timed() bool { return p.Requests == 0 }

// Command is a process to run on a host.
type Command struct {
	Tool     string            `json:"tool,omitempty"` // "wrk", "ab"; "" for other commands
	Argv     []string          `json:"argv"`           // {work} is replaced by the process's own fresh directory
	Env      []string          `json:"env,omitempty"`  // KEY=value, added to a minimal environment
	Dir      string            `json:"dir,omitempty"`
	Files    map[string]string `json:"files,omitempty"`   // relative to {work} → content, written before the start
	Collect  map[string]string `json:"collect,omitempty"` // file relative to {work} → reduction of lab/outputs ("raw", "ab-quantiles", "ab-requests")
	CPUs     []int             `json:"cpus,omitempty"`
	Nofile   int               `json:"nofile,omitempty"`
	Nproc    int               `json:"nproc,omitempty"`
	User     string            `json:"user,omitempty"` // that it runs as, with that user's groups; "" = as the agent
	Nice     int               `json:"nice,omitempty"` // added to the priority that commands have
	Deadline Duration          `json:"deadline_s"`     // then SIGINT, 5 s, SIGKILL to the group
	Campaign CampaignID        `json:"campaign,omitempty"`
	Share    Share             `json:"share"` // its part of the load point
}

// Share is one process's part of a load point.
type Share struct {
	Connections int      `json:"connections"`
	Requests    int      `json:"requests,omitempty"`
	Threads     int      `json:"threads,omitempty"`
	Duration    Duration `json:"duration_s,omitzero"` // measured time asked for; 0 = a fixed count
}

// Driving is the commands of one load point against one target, per load host.
type Driving struct {
	Target   HostName               `json:"target"`
	Load     string                 `json:"load"`
	First    map[HostName][]Command `json:"first,omitempty"`  // warm-up before the first load point of a state and round
	Warmup   map[HostName][]Command `json:"warmup,omitempty"` // warm-up before each further load point
	Measured map[HostName][]Command `json:"measured"`
}

// Armed is a set of waiting processes on one host.
type Armed struct {
	ID   string `json:"id"`
	PIDs []int  `json:"pids"` // in the order of the commands
}

// Process is one finished process.
type Process struct {
	Host        HostName          `json:"host"`
	Command     Command           `json:"command"`
	PID         int               `json:"pid"`
	Asked       Instant           `json:"asked_ns"`    // instant at which it was to be let go
	Released    Instant           `json:"released_ns"` // instant just before exec
	Ended       Instant           `json:"ended_ns"`
	Exit        int               `json:"exit"`             // -1 when it was ended by a signal
	Signal      string            `json:"signal,omitempty"` // "interrupt", "killed"
	TimedOut    bool              `json:"timed_out,omitempty"`
	Stdout      []byte            `json:"stdout,omitempty"`
	Stderr      []byte            `json:"stderr,omitempty"`
	Files       map[string][]byte `json:"files,omitempty"`      // collected, raw
	Reductions  map[string]Report `json:"reductions,omitempty"` // collected, reduced on the load host
	CPUS        float64           `json:"cpu_s"`                // user and system over its life
	MaxRSSBytes int64             `json:"max_rss_bytes"`
	Report      Report            `json:"report"`            // what lab/outputs made of it; filled where the person sits
	Problem     string            `json:"problem,omitempty"` // why there is no report
}

// Report is what one output of a load tool says. Figures holds only what was printed.
type Report struct {
	Tool        string     `json:"tool"`
	Version     string     `json:"version,omitempty"`
	LoopModel   LoopModel  `json:"loop_model,omitempty"`
	Corrected   bool       `json:"corrected,omitempty"` // the tool back-filled its histogram
	Figures     Figures    `json:"figures,omitempty"`
	Histogram   []byte     `json:"histogram,omitempty"`  // latency in µs, HdrHistogram V2 compressed, base64
	Quantiles   []Quantile `json:"quantiles,omitempty"`  // ascending, when the tool gives quantiles without a count (ab -e)
	PerSecond   []float64  `json:"per_second,omitempty"` // completions in each second since the first start
	Warnings    []string   `json:"warnings,omitempty"`
	Interrupted bool       `json:"interrupted,omitempty"`
}

// Quantile is one point of a distribution: the share Q (0 to 1) of values is at most S seconds.
type Quantile struct {
	Q float64 `json:"q"`
	S float64 `json:"s"`
}

// LoopModel says when a generator sends: closed waits for the reply, open keeps to a schedule.
type LoopModel string

// The loop models.
const (
	ClosedLoop  LoopModel = "closed"
	OpenLoop    LoopModel = "open"
	OpenLimited LoopModel = "open-limited"
)
