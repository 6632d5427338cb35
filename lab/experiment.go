package lab

// Experiment is the decoded, validated experiment file with every default filled in.
type Experiment struct {
	Name     string            `json:"name"`
	Title    string            `json:"title,omitempty"`
	Source   string            `json:"source,omitempty"` // where the study was published, free text
	Hosts    []Host            `json:"hosts"`            // in the order of the file
	Builds   map[string]Recipe `json:"builds"`
	Server   ServerSpec        `json:"server"`
	Ladder   Ladder            `json:"ladder"`
	Steps    []Step            `json:"steps"` // the first step is the baseline: its settings hold in every state
	Load     []LoadSpec        `json:"load"`
	Repeat   Repeat            `json:"repeat"`
	Order    Order             `json:"order"`
	Cannot   Cannot            `json:"cannot"` // what to do with a knob that a host cannot have
	Claims   []Claim           `json:"claims,omitempty"`
	Publish  Published         `json:"published"`
	Capacity *CapacitySpec     `json:"capacity,omitempty"`

	File  string              `json:"file"`  // path it was read from, "" when not from a file
	Text  string              `json:"text"`  // the file, byte for byte
	Hash  string              `json:"hash"`  // SHA-256 of Text, and of the files of a template that it names, hex
	Where map[string]Position `json:"where"` // path such as "steps[2].sysctl.net.core.somaxconn" → position in Text
}

// Position is a place in the experiment file; lines and columns count from 1.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Role is what a host does in an experiment.
type Role string

// The roles.
const (
	RoleTarget   Role = "target"   // the system under test
	RoleLoad     Role = "load"     // a load generator
	RoleUpstream Role = "upstream" // serves what a target passes requests to
)

// Host is a machine of the experiment. Exactly one of Local, Address and Docker is set.
type Host struct {
	Name    HostName    `json:"name"`
	Local   bool        `json:"local,omitempty"`   // this machine
	Address string      `json:"address,omitempty"` // for SSH: a host name, an IP address, or a name of ~/.ssh/config
	Port    int         `json:"port,omitempty"`    // of SSH
	User    string      `json:"user,omitempty"`
	Sudo    bool        `json:"sudo,omitempty"`
	Key     string      `json:"key,omitempty"`
	Jump    string      `json:"jump,omitempty"`
	LoadAt  string      `json:"load_address,omitempty"` // where load generators reach it, when that is not where SSH does
	Docker  *DockerHost `json:"docker,omitempty"`       // a throwaway host on a Docker engine
	Roles   []Role      `json:"roles"`
}

// DockerHost is what a throwaway host gets of the machine that its container runs on; zero values are unbounded.
type DockerHost struct {
	CPUs        float64 `json:"cpus,omitempty"`   // CPU time per time, a quota
	CPUSet      string  `json:"cpuset,omitempty"` // the CPUs it may use, "0-3"
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
	Nofile      int     `json:"nofile,omitempty"` // hard limit of open files
	Image       string  `json:"image,omitempty"`  // "" = the one that the lab makes
}

// Has reports whether the host has the role.
func (h Host) Has(r Role) bool {
	for _, have := range h.Roles {
		if have == r {
			return true
		}
	}
	return false
}

// Loopback is where a host reaches itself.
const Loopback = "127.0.0.1"

// LoadAddress is where load generators reach the host as far as the file tells: load_address, 127.0.0.1 for this
// machine, else its address; "" for a throwaway host, whose address its facts tell.
func (h Host) LoadAddress() string {
	switch {
	case h.LoadAt != "":
		return h.LoadAt
	case h.Local:
		return Loopback
	}
	return h.Address
}

// ServerSpec is the `server:` section: what every state serves unless a step changes it.
type ServerSpec struct {
	Build      string            `json:"build"` // key of Experiment.Builds
	Port       int               `json:"port"`
	StatusPort int               `json:"status_port"`          // stub_status listener, default Port+1
	Site       string            `json:"site"`                 // empty-gif, hello, echo, sleep, file, proxy, template
	BodyBytes  int64             `json:"body_bytes,omitempty"` // of site file
	SleepS     float64           `json:"sleep_s,omitempty"`    // of site sleep
	CPUs       string            `json:"cpus,omitempty"`       // "0-3", "auto" (half of the cores when load shares the host), "" not pinned
	Nofile     int               `json:"nofile,omitempty"`     // open-file limit of the server, 0 = the host's own
	Nproc      int               `json:"nproc,omitempty"`      // process limit of the server's user, 0 = the host's own
	Restart    Restart           `json:"restart"`              // when a server is started afresh
	Nginx      map[string]string `json:"nginx,omitempty"`      // directive with context ("events.worker_connections") → value
	User       string            `json:"user,omitempty"`       // that the workers run as; "" = the server's own choice
	TLS        *TLS              `json:"tls,omitempty"`        // nil = plain HTTP
	Bodies     map[string]int64  `json:"bodies,omitempty"`     // of site file: path → size in bytes, beside those of BodyBytes
	Template   map[string]string `json:"template,omitempty"`   // of site template: relative path → content; TemplateRoot is what nginx is started with
	Upstream   *Upstream         `json:"upstream,omitempty"`   // of site proxy
	Command    *ServerCommand    `json:"command,omitempty"`    // starts what is not nginx; see Experiment.CommandOf
	Count      *Count            `json:"count,omitempty"`      // where a server without stub_status tells how many requests it served
}

// TemplateRoot is the file of a template that nginx is started with.
const TemplateRoot = "nginx.conf"

// Upstream is the server that a reverse proxy passes its requests to.
type Upstream struct {
	Host      HostName   `json:"host"`                // with the role upstream
	KeepAlive int        `json:"keepalive,omitempty"` // idle connections kept by each worker; 0 = a new connection for each request
	Server    ServerSpec `json:"server"`              // without an upstream of its own
}

// CommandOf is how the server of a recipe is started, nil as nginx is: by its own command, else by that of the server
// section when the section is about this build or the build is none of nginx.
func (e Experiment) CommandOf(r Recipe) *ServerCommand {
	if r.Command == nil && (!r.IsNginx() || r.Name == e.Server.Build) {
		return e.Server.Command
	}
	return r.Command
}

// Restart is when a server is started afresh.
type Restart string

// The policies.
const (
	RestartAlways Restart = "always" // a fresh server for each state and round (default)
	RestartNeeded Restart = "needed" // only when the server, or a knob that a server takes over at its start, differs
)

// LadderKind is the way steps become states.
type LadderKind string

// The ladders.
const (
	Cumulative  LadderKind = "cumulative"    // state k has the steps 0…k and is compared with state k−1
	Isolated    LadderKind = "isolated"      // state k has step 0 and step k and is compared with the baseline
	LeaveOneOut LadderKind = "leave-one-out" // the full state is compared with the full state less one step
	Listed      LadderKind = "listed"        // each list of step names is a state, compared with the baseline
)

// Ladder turns steps into states.
type Ladder struct {
	Kind  LadderKind `json:"kind"`
	Lists [][]string `json:"lists,omitempty"` // of Listed: step names
}

// Step is a named, explained set of knob values.
type Step struct {
	Name       string            `json:"name"`
	Why        string            `json:"why,omitempty"`
	On         []Role            `json:"on,omitempty"` // where host knobs are set; default target
	Nginx      map[string]string `json:"nginx,omitempty"`
	Sysctl     map[string]string `json:"sysctl,omitempty"`
	Nofile     int               `json:"nofile,omitempty"`
	Nproc      int               `json:"nproc,omitempty"`
	Knobs      []Setting         `json:"knobs,omitempty"` // sysfs, ethtool, file, service, unit and command knobs, sorted
	Build      string            `json:"build,omitempty"`
	Remove     []string          `json:"remove,omitempty"`  // nginx directives to take out, named as those of Nginx
	Persist    bool              `json:"persist,omitempty"` // sysctls and limits also as a file of ours in sysctl.d and limits.d, until restored
	BestEffort bool              `json:"best_effort,omitempty"`
	Cannot     Cannot            `json:"cannot,omitempty"` // overrides the experiment's
}

// Cannot is the policy for a knob that a host cannot have (removed, needs root, not in this kernel or build).
type Cannot string

// The policies.
const (
	CannotFail Cannot = "fail" // refuse the plan (default)
	CannotSkip Cannot = "skip" // leave the knob out and say so; a state that loses all its knobs is dropped
)

// Order is the order of cells within a campaign.
type Order string

// The orders.
const (
	Interleaved Order = "interleaved" // split plot, Williams rows
	Blocked     Order = "blocked"     // all rounds of a state together; verdicts are confounded with time
)

// LoadSpec is one entry of `load:`; its lists are axes that expand into load points.
type LoadSpec struct {
	Tool         string   `json:"tool"`
	URL          string   `json:"url"` // path, begins with "/"
	KeepAlive    []bool   `json:"keepalive"`
	Connections  []int    `json:"connections"`
	Duration     Duration `json:"duration_s"`
	Requests     int      `json:"requests,omitempty"` // fixed count in all; 0 = timed by Duration
	WarmupFirst  Duration `json:"warmup_first_s"`     // before the first load point of a state and round
	Warmup       Duration `json:"warmup_s"`           // before each further load point
	Hosts        []int    `json:"hosts"`              // numbers of load hosts; empty = all
	Processes    int      `json:"processes"`          // per load host
	Threads      int      `json:"threads,omitempty"`  // of wrk per process; 0 = as METHOD §8
	Pin          bool     `json:"pin"`                // pin to the cores that the server does not use
	CPUs         string   `json:"cpus,omitempty"`     // pin to these instead
	ExpectErrors bool     `json:"expect_errors,omitempty"`
	Headline     bool     `json:"headline,omitempty"` // only these enter the one figure per step, when any is set
}

// Repeat says how often, and when to stop.
type Repeat struct {
	Min       int      `json:"min"`
	Max       int      `json:"max"`
	Precision float64  `json:"precision"` // h: half-width of the interval as a ratio, 0.02 = 2 %
	Effect    float64  `json:"effect"`    // δ: smallest effect that matters, as a ratio
	Budget    Duration `json:"budget_s"`  // 0 = none
	CoolDown  Duration `json:"cool_down_s"`
	Control   bool     `json:"control"`
	Why       string   `json:"why,omitempty"`
}

// Claim is a statement to test, ours or a published one: Metric of State over that of Over.
type Claim struct {
	Name      string   `json:"name"`
	Of        Metric   `json:"of"`
	State     string   `json:"state"`
	Over      string   `json:"over"`
	AtLeast   *float64 `json:"at_least,omitempty"`  // ratio bound: holds when the lower end reaches it
	AtMost    *float64 `json:"at_most,omitempty"`   // ratio bound: holds when the upper end stays below it
	Published *float64 `json:"published,omitempty"` // ratio q that a publication gives
}

// Published is what a publication says of the conditions and figures of its study.
type Published struct {
	Conditions map[string]string  `json:"conditions,omitempty"`
	Figures    map[string]float64 `json:"figures,omitempty"`
}

// HoldKind is what held connections are doing.
type HoldKind string

// The kinds of held connections.
const (
	HoldIdle   HoldKind = "idle"   // keep-alive, one request done
	HoldActive HoldKind = "active" // a request in progress (echo_sleep)
)

// CapacitySpec is the `capacity:` section.
type CapacitySpec struct {
	Connections        []int             `json:"connections"` // ascending, the first is 0
	Kinds              []HoldKind        `json:"kinds"`
	Ramps              int               `json:"ramps"`
	Holders            int               `json:"holders"` // processes that hold; 0 = as the limits ask
	SizesBytes         []int64           `json:"sizes_bytes"`
	ReserveBytes       int64             `json:"reserve_bytes"`
	ConnectionsPerUser []int             `json:"connections_per_user"`
	Nginx              map[string]string `json:"nginx,omitempty"` // over the last state's directives
	State              string            `json:"state,omitempty"` // default the last state
}
