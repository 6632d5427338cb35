package lab

// Serving is a server to start: complete, except for {prefix}, which the agent replaces by a fresh directory, and {build},
// which it replaces by the directory of the build, in Config, Files and Command alike.
type Serving struct {
	Target     HostName          `json:"target"`
	State      string            `json:"state"`
	Recipe     string            `json:"recipe"`             // name of the build
	Build      Build             `json:"build"`              // filled by conduct when built
	Config     string            `json:"config,omitempty"`   // nginx.conf; "" with Command
	Command    *ServerCommand    `json:"command,omitempty"`  // of a server that is not nginx
	Upstream   *Serving          `json:"upstream,omitempty"` // the server on another host that this one passes requests to; started before and stopped after it
	User       string            `json:"user,omitempty"`     // that the workers run as (nginx) or the whole server (Command); "" = the server's own choice
	TLS        *TLS              `json:"tls,omitempty"`      // the agent puts cert.pem and key.pem into {prefix}/tls
	Count      *Count            `json:"count,omitempty"`    // where a server without stub_status tells how many requests it served
	DelayS     float64           `json:"delay_s,omitempty"`  // how long each request waits by design; 0 = not at all
	AtOnce     int               `json:"at_once,omitempty"`  // how many requests can wait at once; 0 = all
	Template   bool              `json:"template,omitempty"` // Config is the user's: the site is the first server on Port, in it the location of URLs[0]
	Files      map[string]string `json:"files,omitempty"`    // relative to {prefix} → content
	Bodies     map[string]Body   `json:"bodies,omitempty"`   // relative to {prefix} → a generated body, the same everywhere
	Expect     []Setting         `json:"expect,omitempty"`   // directives to find in nginx -T; nofile to find in /proc/PID/limits
	Port       int               `json:"port"`               // of the site
	StatusPort int               `json:"status_port"`        // of stub_status, path /status
	URLs       []string          `json:"urls"`               // paths to probe
	CPUs       []int             `json:"cpus,omitempty"`     // affinity
	Nofile     int               `json:"nofile,omitempty"`   // RLIMIT_NOFILE of the master, 0 = leave
	Nproc      int               `json:"nproc,omitempty"`    // RLIMIT_NPROC of the master, 0 = leave
	Deadline   Duration          `json:"deadline_s"`         // to become ready
	Campaign   CampaignID        `json:"campaign,omitempty"` // filled by conduct
}

// Server is a running server as read back.
type Server struct {
	Serving      string           `json:"serving"`        // state it was started for
	Port         int              `json:"port,omitempty"` // of the site
	Master       int              `json:"master_pid"`
	Workers      []int            `json:"worker_pids"`
	Prefix       string           `json:"prefix,omitempty"`    // its fresh directory; the error log is logs/error.log inside
	Files        []string         `json:"files,omitempty"`     // that configure it beside nginx.conf, relative to Prefix; sorted
	Effective    string           `json:"effective,omitempty"` // nginx -T, with {prefix} for the directory, so that equal servers have equal texts
	EffectiveSHA string           `json:"effective_sha256"`
	NofileSoft   int              `json:"nofile_soft"` // of the workers
	NofileHard   int              `json:"nofile_hard"`
	NprocSoft    int              `json:"nproc_soft,omitempty"` // of the workers; -1 is none, 0 not read
	Backlog      int              `json:"backlog"`              // in force, read from the listening socket
	Probes       map[string]Probe `json:"probes"`               // per URL path
	ReadBack     []Applied        `json:"read_back,omitempty"`
	StartedS     float64          `json:"started_s"` // time from exec to the first answered probe

	Build     string    `json:"build,omitempty"`     // ID of the build
	Modules   []string  `json:"modules,omitempty"`   // of the running binary (/proc/PID/exe) and of the shared objects that it has mapped; sorted
	Libraries []Library `json:"libraries,omitempty"` // mapped by the running server, by name
	User      string    `json:"user,omitempty"`      // that the workers run as
	TLS       *TLSState `json:"tls,omitempty"`       // as negotiated with the probe
	QUIC      bool      `json:"quic,omitempty"`      // a UDP socket of the server has the port of the site
	Tree      bool      `json:"tree,omitempty"`      // started by a command: its workers are all processes below the master, as they come and go
	Upstream  *Server   `json:"upstream,omitempty"`  // read back on its host
}

// Probe is what one request was answered; every later response is held against it.
type Probe struct {
	Status      int    `json:"status"`
	HeaderBytes int    `json:"header_bytes"` // keep-alive response
	BodyBytes   int64  `json:"body_bytes"`
	BodySHA256  string `json:"body_sha256"`
}

// TLS is what a server proves itself with: a certificate that the agent makes once and keeps.
type TLS struct {
	Key   string `json:"key"` // KeyECDSA or KeyRSA
	HTTP2 bool   `json:"http2,omitempty"`
	HTTP3 bool   `json:"http3,omitempty"`
}

// The kinds of keys.
const (
	KeyECDSA = "ecdsa" // P-256
	KeyRSA   = "rsa"   // 2048 bits
)

// TLSState is what a connection agreed on.
type TLSState struct {
	Version           string `json:"version"` // "TLS 1.3"
	Cipher            string `json:"cipher"`
	Protocol          string `json:"protocol,omitempty"` // by ALPN: "h2", "http/1.1"
	Key               string `json:"key"`
	CertificateSHA256 string `json:"certificate_sha256"`
}

// ServerCommand is how a server that is not nginx is run. {prefix}, {build}, {binary}, {port}, {status_port} and {user}
// are replaced in Start, Stop, Version, Env, Files and PIDFile; with TLS also {cert} and {key}.
type ServerCommand struct {
	Start   []string          `json:"start"`              // argument list; stays in the foreground, or leaves its process in PIDFile
	Stop    []string          `json:"stop,omitempty"`     // "" = Signal to the server's first process
	Signal  string            `json:"signal,omitempty"`   // TERM (default), INT, QUIT, WINCH …
	Grace   Duration          `json:"grace_s,omitzero"`   // until what is left is killed; 0 = 10 s
	Ready   string            `json:"ready,omitempty"`    // path that is answered with a status below 400 once the server is ready; "" = the first URL
	Within  Duration          `json:"within_s,omitzero"`  // to become ready; 0 = 10 s
	PIDFile string            `json:"pid_file,omitempty"` // of the server's first process, when Start does not stay it
	Env     map[string]string `json:"env,omitempty"`
	Files   map[string]string `json:"files,omitempty"`   // relative to {prefix} → content
	Version []string          `json:"version,omitempty"` // argument list that prints it
	Count   *Count            `json:"count,omitempty"`   // nil = that of the server section
	Delay   Duration          `json:"delay_s,omitzero"`  // how long each request waits by design, for the bound in the report
	AtOnce  int               `json:"at_once,omitempty"` // how many requests can wait at once (threads of a server that blocks); 0 = all
}

// Count is where a server tells how many requests it has served: exactly one of URL and Log is set.
type Count struct {
	URL     string `json:"url,omitempty"`     // path on the site's port
	Log     string `json:"log,omitempty"`     // file that gets a line for each request, relative to {prefix}
	Pattern string `json:"pattern,omitempty"` // RE2: of URL its first group is the number, default the first number; of Log it tells the lines that count, default all
}

// DelayBound is the highest rate, per second, at which requests that wait delayS seconds each can complete on so many
// connections, of which atOnce can wait at the same time (0 = all): Little's law with a fixed time. 0 without a delay.
func DelayBound(connections, atOnce int, delayS float64) float64 {
	switch {
	case delayS <= 0:
		return 0
	case atOnce > 0:
		connections = min(connections, atOnce)
	}
	return float64(connections) / delayS
}

// CountedBy says where the server tells how many requests it served; "" when nothing does.
func (s Serving) CountedBy() string {
	switch {
	case s.Count != nil && s.Count.Log != "" && s.Count.Pattern != "":
		return "lines of " + s.Count.Log + " with " + s.Count.Pattern
	case s.Count != nil && s.Count.Log != "":
		return "lines of " + s.Count.Log
	case s.Count != nil:
		return "its " + s.Count.URL
	case s.StatusPort != 0:
		return "stub_status"
	}
	return ""
}
