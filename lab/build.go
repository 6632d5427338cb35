package lab

// Recipe is how a server binary is made. Two recipes that are equal make the same build.
type Recipe struct {
	Name      string        `json:"name"`
	Flavor    string        `json:"flavor"` // nginx
	Version   string        `json:"version,omitempty"`
	Modules   []string      `json:"modules,omitempty"`   // stub_status, echo
	Configure []string      `json:"configure,omitempty"` // further configure flags
	Sources   []BuildSource `json:"sources"`             // tried in order
	Echo      []BuildSource `json:"echo,omitempty"`      // of the echo module; default the distribution's
	Patches   bool          `json:"patches,omitempty"`   // apply the Debian patches
	Packages  []string      `json:"packages,omitempty"`  // needed to build; filled by lab/server
	Flags     []string      `json:"flags,omitempty"`     // full configure command line after ./configure; filled by lab/server
}

// BuildSource is one place to get a source from; exactly one of URL, Path, Git and Debian is set.
type BuildSource struct {
	URL    string `json:"url,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // compulsory with URL
	Path   string `json:"path,omitempty"`   // archive or directory on the host
	Git    string `json:"git,omitempty"`
	Commit string `json:"commit,omitempty"`
	Debian string `json:"debian,omitempty"` // source package
	Suite  string `json:"suite,omitempty"`  // "" = the host's own
}

// Build is a finished server binary on one host.
type Build struct {
	ID         string            `json:"id"`     // hash of recipe, source, compiler, distribution and architecture
	Recipe     string            `json:"recipe"` // name
	Binary     string            `json:"binary"` // absolute path on the host
	Version    string            `json:"version"`
	Configured string            `json:"configured"` // output of -V
	Compiler   string            `json:"compiler"`
	Sources    map[string]string `json:"sources"` // what was used → SHA-256
	Notes      []string          `json:"notes,omitempty"`
	TookS      float64           `json:"took_s"`
	Cached     bool              `json:"cached"`
	Log        string            `json:"log"` // path of the build log on the host

	Distribution string   `json:"distribution,omitempty"` // that it was made on, "debian 12"
	Architecture string   `json:"architecture,omitempty"` // as Go names it
	Identity     string   `json:"identity,omitempty"`     // hash of recipe, distribution and architecture, whatever the compiler
	From         HostName `json:"from,omitempty"`         // the host that it was copied from; "" = made where it is
}

// Serving is a server to start: complete, except for {prefix}, which the agent replaces by a fresh directory.
type Serving struct {
	Target     HostName          `json:"target"`
	State      string            `json:"state"`
	Recipe     string            `json:"recipe"`             // name of the build
	Build      Build             `json:"build"`              // filled by conduct when built
	Config     string            `json:"config"`             // nginx.conf
	Files      map[string]string `json:"files,omitempty"`    // relative to {prefix} → content
	Bodies     map[string]int64  `json:"bodies,omitempty"`   // relative to {prefix} → size of a generated body, the same everywhere
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
	Effective    string           `json:"effective,omitempty"` // nginx -T, with {prefix} for the directory, so that equal servers have equal texts
	EffectiveSHA string           `json:"effective_sha256"`
	NofileSoft   int              `json:"nofile_soft"` // of the workers
	NofileHard   int              `json:"nofile_hard"`
	NprocSoft    int              `json:"nproc_soft,omitempty"` // of the workers; -1 is none, 0 not read
	Backlog      int              `json:"backlog"`              // in force, read from the listening socket
	Probes       map[string]Probe `json:"probes"`               // per URL path
	ReadBack     []Applied        `json:"read_back,omitempty"`
	StartedS     float64          `json:"started_s"` // time from exec to the first answered probe
}

// Probe is what one request was answered; every later response is held against it.
type Probe struct {
	Status      int    `json:"status"`
	HeaderBytes int    `json:"header_bytes"` // keep-alive response
	BodyBytes   int64  `json:"body_bytes"`
	BodySHA256  string `json:"body_sha256"`
}
