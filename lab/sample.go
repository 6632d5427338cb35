package lab

// Watch says what to sample.
type Watch struct {
	Once       bool     `json:"once"`            // one sample at once, then end
	Start      Instant  `json:"start_ns"`        // first sample at this instant …
	Interval   Duration `json:"interval_s"`      // … then one each interval …
	Count      int      `json:"count"`           // … this many in all; 0 = until cancelled
	Avoid      []int    `json:"avoid,omitempty"` // CPUs to keep off while sampling, as far as others are there: those of a pinned server
	Server     bool     `json:"server"`          // with the server's processes, its listeners and stub_status
	StatusPort int      `json:"status_port,omitempty"`
	ServedBy   *Count   `json:"served_by,omitempty"` // of a server without stub_status: where it tells its requests
	Port       int      `json:"port,omitempty"`      // of the site, for ServedBy.URL
	TLS        bool     `json:"tls,omitempty"`       // … which speaks TLS
	Ports      []int    `json:"ports,omitempty"`     // listening sockets to read
	Held       bool     `json:"held,omitempty"`      // the samples are sent together at the end of Count, so that sending disturbs no run; a cancelled watch has none
	Load       bool     `json:"load"`                // with the armed load processes
	Slabs      bool     `json:"slabs,omitempty"`     // with the named slab caches (root)
}

// Sample is one reading of the monitors at one moment on one host. Counters are cumulative, as the kernel gives them.
type Sample struct {
	Host          HostName          `json:"host"`
	At            Instant           `json:"at_ns"`
	TookS         float64           `json:"took_s"`
	WallNS        int64             `json:"wall_ns"` // CLOCK_REALTIME at At
	CPUs          []CPUTimes        `json:"cpus"`
	Processes     []ProcessSample   `json:"processes,omitempty"`
	TCP           map[string]uint64 `json:"tcp,omitempty"`     // selected /proc/net/netstat and snmp counters by kernel name: ListenOverflows, TCPSynRetrans, ActiveOpens …
	Sockets       map[string]int64  `json:"sockets,omitempty"` // sockstat: tcp_inuse, tcp_orphan, tcp_tw, tcp_alloc, tcp_mem_pages
	Listeners     []Listener        `json:"listeners,omitempty"`
	Status        *ServerStatus     `json:"status,omitempty"` // absent: the poll was not answered within its time-out
	Served        *Served           `json:"served,omitempty"` // by Watch.ServedBy; absent as Status is
	Memory        MemorySample      `json:"memory"`
	Slabs         map[string]int64  `json:"slab_bytes,omitempty"` // named cache → active objects × size
	ErrorLog      []string          `json:"error_log,omitempty"`  // new lines of the server's error log since the sample before, at most 20
	BootID        string            `json:"boot_id,omitempty"`
	InForce       map[string]string `json:"in_force,omitempty"` // of one sample with Server: what the server runs under: "config" (SHA-256 of its file), "binary", "nofile" and "nproc" (soft, as in Server: -1 is none), "cpus", "backlog"; workers that differ are joined by commas
	AgentCPUS     float64           `json:"agent_cpu_s"`        // of the agent itself
	AgentRSSBytes int64             `json:"agent_rss_bytes"`
	Conntrack     *Conntrack        `json:"conntrack,omitempty"`
	SwapPages     uint64            `json:"swap_pages"` // pswpin + pswpout
	Throttle      *Throttle         `json:"throttle,omitempty"`
}

// CPUTimes are the cumulative seconds of one CPU by kind (/proc/stat).
type CPUTimes struct {
	CPU      int     `json:"cpu"`
	UserS    float64 `json:"user_s"` // with nice
	SystemS  float64 `json:"system_s"`
	IdleS    float64 `json:"idle_s"` // with iowait
	IRQS     float64 `json:"irq_s"`
	SoftIRQS float64 `json:"softirq_s"`
	StealS   float64 `json:"steal_s"`
}

// BusyS is the cumulative busy time: everything but idle and steal.
func (c CPUTimes) BusyS() float64 { return c.UserS + c.SystemS + c.IRQS + c.SoftIRQS }

// ProcessRole is the part a sampled process plays.
type ProcessRole string

// The roles of sampled processes.
const (
	ServerMaster ProcessRole = "master"
	ServerWorker ProcessRole = "worker"
	LoadProcess  ProcessRole = "load"
)

// ProcessSample is one process at one moment; CPU in ns of the scheduler, given in seconds. What could not be read is 0,
// and absent from JSON: no process of a server is without memory and descriptors.
type ProcessSample struct {
	PID          int             `json:"pid"`
	Role         ProcessRole     `json:"role"`
	Name         string          `json:"name,omitempty"`
	StartedTicks uint64          `json:"started_ticks,omitempty"` // since the boot; with the pid, what a process is known by
	CPUS         float64         `json:"cpu_s"`                   // all threads, those that have ended too
	Threads      map[int]float64 `json:"threads_cpu_s,omitempty"` // of load processes: id of a living thread → seconds
	FDs          int             `json:"fds,omitempty"`
	FDLimit      int             `json:"fd_limit,omitempty"`
	PSSBytes     int64           `json:"pss_bytes,omitempty"` // of server processes; another user's need CAP_SYS_PTRACE
	// AnonBytes is the anonymous resident memory (RssAnon), which anyone may read; of server processes, when the PSS of
	// one of them cannot be read.
	AnonBytes int64 `json:"anon_rss_bytes,omitempty"`
}

// ServerMemory is the memory of all processes of the server: their PSS or, when that of one cannot be read, their
// anonymous resident memory. It is not known when there are no processes, or one of them shows neither.
func (s Sample) ServerMemory() (bytes int64, anonymous, known bool) {
	var pss, anon int64
	pssKnown, anonKnown := true, true
	for _, p := range s.Processes {
		if p.Role != ServerMaster && p.Role != ServerWorker {
			continue
		}
		pss, anon = pss+p.PSSBytes, anon+p.AnonBytes
		pssKnown, anonKnown = pssKnown && p.PSSBytes > 0, anonKnown && p.AnonBytes > 0
	}
	switch {
	case pss > 0 && pssKnown:
		return pss, false, true
	case anon > 0 && anonKnown:
		return anon, true, true
	}
	return 0, false, false
}

// Listener is a listening socket (sock_diag).
type Listener struct {
	Port    int    `json:"port"`
	Queue   int    `json:"queue"`   // connections waiting now
	Backlog int    `json:"backlog"` // in force
	Drops   uint64 `json:"drops"`
}

// ServerStatus is one reading of stub_status. Polls is how many times the lab itself has asked this server so far,
// this poll included; each is a request and a connection of the lab's own.
type ServerStatus struct {
	Active   int    `json:"active"`
	Accepts  uint64 `json:"accepts"`
	Handled  uint64 `json:"handled"`
	Requests uint64 `json:"requests"`
	Reading  int    `json:"reading"`
	Writing  int    `json:"writing"`
	Waiting  int    `json:"waiting"`
	Polls    uint64 `json:"polls"`
}

// Served is one reading of the count of a server without stub_status, as the server tells it: with what Polls, the lab's
// own requests so far, have added (PerPoll each: 1 where the server counts a poll too, as two polls in a row showed).
type Served struct {
	Requests uint64 `json:"requests"`
	Polls    uint64 `json:"polls"`
	PerPoll  uint64 `json:"per_poll"`
}

// MemorySample is the memory of one host.
type MemorySample struct {
	TotalBytes     int64 `json:"total_bytes"`
	FreeBytes      int64 `json:"free_bytes"`
	AvailableBytes int64 `json:"available_bytes"`
	SlabBytes      int64 `json:"slab_bytes"`
}

// Conntrack is the connection-tracking table; absent where there is none.
type Conntrack struct {
	Count int64  `json:"count"`
	Max   int64  `json:"max"`
	Drops uint64 `json:"drops"` // drop + early_drop
}

// Throttle is how the CPU quota of the host's control group has held its processes back; absent without a quota. Of
// several groups around the agent it is the one with the tightest quota, that of Facts.CgroupCPUs.
type Throttle struct {
	QuotaCPUs        float64 `json:"quota_cpus"`
	Periods          uint64  `json:"periods"`           // in which the group ran
	PeriodsThrottled uint64  `json:"periods_throttled"` // … and used up its quota
	ThrottledS       float64 `json:"throttled_s"`       // waited for the next period, summed over CPUs: may exceed the time
}
