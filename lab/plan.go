package lab

// Plan is complete, pure, seeded data: what a campaign will do. It is stored, printed by `plan`, obeyed by `run`.
type Plan struct {
	Experiment  Experiment                    `json:"experiment"`
	Facts       map[HostName]Facts            `json:"facts"`
	Seed        uint64                        `json:"seed"`
	Part        int                           `json:"part"`     // from 1; a resume under other conditions begins a new part
	Original    State                         `json:"original"` // values found on the hosts for every knob that is set on a host
	States      []State                       `json:"states"`   // baseline first, control (if any) last
	Loads       []LoadPoint                   `json:"loads"`
	Cells       []Cell                        `json:"cells"`
	Rounds      [][]CellID                    `json:"rounds"` // Repeat.Max rounds; cells of one target and state stand together: one fresh server
	Builds      []Recipe                      `json:"builds"`
	Built       map[string]map[HostName]Build `json:"built,omitempty"`    // recipe → host → the build that it has already, of hosts that were asked
	Packages    map[HostName][]string         `json:"packages,omitempty"` // missing, to be installed
	Servings    []Serving                     `json:"servings"`           // one per target and state
	Drivings    []Driving                     `json:"drivings"`           // one per target and load point
	Changes     map[HostName][]StateChange    `json:"changes,omitempty"`  // what each state changes on each host, from the values there now
	Refused     []Refusal                     `json:"refused,omitempty"`
	Warnings    []Warning                     `json:"warnings,omitempty"`
	Kernels     [][]HostName                  `json:"shared_kernels,omitempty"` // groups of hosts on one kernel
	Capacity    *CapacityPlan                 `json:"capacity,omitempty"`
	Estimate    Duration                      `json:"estimate_s"`     // Repeat.Min rounds, capacity and builds not yet made
	EstimateMax Duration                      `json:"estimate_max_s"` // Repeat.Max rounds
}

// StateChange is the change of one knob by one state, for people: Now is the value on the host before the campaign.
type StateChange struct {
	State  string `json:"state"`
	Step   string `json:"step"`
	Knob   KnobID `json:"knob"`
	Now    Value  `json:"now"`    // on the host before the campaign
	Before Value  `json:"before"` // in the state that this one is compared with; of the baseline as Now
	To     Value  `json:"to"`
	Same   bool   `json:"same,omitempty"` // already at the value: the change is empty
	Note   string `json:"note,omitempty"` // e.g. weakens security, clamped
}

// State returns the state of that name.
func (p Plan) State(name string) (State, bool) {
	for _, s := range p.States {
		if s.Name == name {
			return s, true
		}
	}
	return State{}, false
}

// LoadAddress is where load generators reach a host: what the file tells of a host that is here or has a load_address,
// else what its link found, else its address in the file; "" when none is known.
func (p Plan) LoadAddress(name HostName) string {
	found := p.Facts[name].Address
	for _, h := range p.Experiment.Hosts {
		if h.Name == name && (h.LoadAt != "" || h.Local || found == "") {
			return h.LoadAddress()
		}
	}
	return found
}

// Baseline returns the first state.
func (p Plan) Baseline() State { return p.States[0] }

// Load returns the load point of that name.
func (p Plan) Load(name string) (LoadPoint, bool) {
	for _, l := range p.Loads {
		if l.Name == name {
			return l, true
		}
	}
	return LoadPoint{}, false
}

// Fatal returns the refusals that forbid the campaign.
func (p Plan) Fatal() []Refusal {
	var fatal []Refusal
	for _, r := range p.Refused {
		if r.Fatal {
			fatal = append(fatal, r)
		}
	}
	return fatal
}

// CapacityPlan is the capacity part of a plan: per kind and ramp a fresh server and ascending levels.
type CapacityPlan struct {
	Target       HostName             `json:"target"`
	LoadHosts    []HostName           `json:"load_hosts"`
	State        string               `json:"state"`
	Servings     map[HoldKind]Serving `json:"servings"`
	Levels       []int                `json:"levels"`
	Kinds        []HoldKind           `json:"kinds"`
	Ramps        int                  `json:"ramps"`
	Holders      int                  `json:"holders"`       // processes per load host
	Limits       []CapacityLimit      `json:"limits"`        // every known bound on connections, smallest first
	SharedKernel bool                 `json:"shared_kernel"` // both ends on one kernel: kernel memory is split by two
}

// CapacityLimit is one bound on the number of connections.
type CapacityLimit struct {
	Name        string `json:"name"` // "hard nofile", "worker_connections", "conntrack_max", "ports" …
	Connections int64  `json:"connections"`
	Detail      string `json:"detail"`
}
