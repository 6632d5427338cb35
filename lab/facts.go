package lab

import "time"

// Facts are what is known of one host, read once per campaign.
type Facts struct {
	Host           HostName          `json:"host"`
	Hostname       string            `json:"hostname"`
	CPUModel       string            `json:"cpu_model"`
	Cores          int               `json:"cores"`
	CPUs           []int             `json:"cpus"` // numbers of the CPUs the agent may use, ascending
	NUMANodes      int               `json:"numa_nodes"`
	Governor       string            `json:"governor,omitempty"` // cpufreq; absent on guests
	MemoryBytes    int64             `json:"memory_bytes"`
	AvailableBytes int64             `json:"available_bytes"`
	Kernel         string            `json:"kernel"` // uname release
	BootID         string            `json:"boot_id"`
	Distribution   string            `json:"distribution"` // os-release ID and VERSION_ID, "debian 12"
	Architecture   string            `json:"architecture"` // as Go names it: amd64, arm64
	Virtualisation string            `json:"virtualisation,omitempty"`
	Container      string            `json:"container,omitempty"`           // "docker", "podman", "lxc" …: the kernel is shared with others; "" when none is seen
	Network        string            `json:"network_namespace,omitempty"`   // what names its network namespace on its kernel; "" = not known
	Cgroup         int               `json:"cgroup"`                        // 1 or 2
	CgroupCPUs     float64           `json:"cgroup_cpus,omitempty"`         // CPU quota in CPUs; 0 = none
	CgroupBytes    int64             `json:"cgroup_memory_bytes,omitempty"` // memory bound; 0 = none
	Address        string            `json:"address,omitempty"`             // where load generators reach the host, found by the link; "" = as the file says
	ClockOffsetS   float64           `json:"clock_offset_s,omitempty"`      // wall clock of the host minus ours
	ClockDoubtS    float64           `json:"clock_uncertainty_s,omitempty"` // half of the shortest round trip; 0 = not measured
	NICs           []NIC             `json:"nics,omitempty"`
	NofileSoft     int               `json:"nofile_soft"`
	NofileHard     int               `json:"nofile_hard"`
	NrOpen         int               `json:"nr_open"`
	Root           bool              `json:"root"`                 // the agent runs as root
	CanInstall     bool              `json:"can_install"`          // root, or sudo -n works, and a known package manager
	NoInstall      bool              `json:"no_install,omitempty"` // the person forbids installing: CanInstall is false for that reason
	Users          map[string]int    `json:"users,omitempty"`      // users asked for → uid; absent when there is none of that name
	RaiseNofile    bool              `json:"raise_nofile"`         // CAP_SYS_RESOURCE: the hard limit may be raised
	Sysctls        map[string]string `json:"sysctls"`              // everything readable under /proc/sys, dotted names
	SysctlWritable map[string]bool   `json:"sysctl_writable"`      // of the names the experiment uses: may the agent write it
	Knobs          []KnobFact        `json:"knobs,omitempty"`      // of the query's knobs, in its order
	Limits         map[string]Rlimit `json:"limits,omitempty"`     // of the agent, by the name of prlimit(1): "nofile", "nproc"
	Commands       map[string]string `json:"commands"`             // tools asked for → absolute path; absent when missing
	Packages       map[string]string `json:"packages"`             // packages asked for → installed version; absent when missing
	PortsInUse     []int             `json:"ports_in_use"`         // listening TCP ports
	ToolVersions   map[string]string `json:"tool_versions"`        // tool → what it says of itself
	Compiler       string            `json:"compiler"`             // first line of cc --version; "" when none
	LogBytesFree   int64             `json:"disk_free_bytes"`      // where builds and logs go
	Agent          string            `json:"agent"`                // version hash of the agent
	StateDir       string            `json:"state_dir"`            // where the agent keeps journal and builds
}

// NIC is a network interface.
type NIC struct {
	Name       string `json:"name"`
	SpeedMbitS int    `json:"speed_mbit_per_s,omitempty"` // 0 when unknown
	Queues     int    `json:"queues,omitempty"`
	MTUBytes   int    `json:"mtu_bytes"`
}

// Rlimit is a resource limit of a process; -1 is none.
type Rlimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// FactsQuery is what Facts shall look up besides the fixed part.
type FactsQuery struct {
	Sysctls  []string  `json:"sysctls,omitempty"`
	Knobs    []Setting `json:"knobs,omitempty"` // knobs of a host other than sysctls, with the values asked for
	Commands []string  `json:"commands,omitempty"`
	Packages []string  `json:"packages,omitempty"`
	Users    []string  `json:"users,omitempty"`
	Brief    bool      `json:"brief,omitempty"` // only who answers: names, agent, architecture, state directory, root
}

// Holder is who holds a host's lock; zero when it is free.
type Holder struct {
	Owner    string     `json:"owner"` // who and where, for people: "ana@desk, process 4242"
	Campaign CampaignID `json:"campaign"`
	Since    time.Time  `json:"since"` // by the host's clock
}

// Cleaned is what was removed from a host.
type Cleaned struct {
	Removed    []string `json:"removed"` // paths on the host, in order
	FreedBytes int64    `json:"freed_bytes"`
}
