package lab

// KnobID names one thing that can be set and read back: {"sysctl","net.core.somaxconn"},
// {"nginx","events.accept_mutex"}, {"nofile",""}, {"build",""}.
type KnobID struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// String is "kind name", or the kind alone.
func (k KnobID) String() string {
	if k.Name == "" {
		return k.Kind
	}
	return k.Kind + " " + k.Name
}

// The knob kinds.
const (
	KnobSysctl = "sysctl" // set on the host through its journal
	KnobNginx  = "nginx"  // in force through a fresh server
	KnobNofile = "nofile" // in force through a fresh server, verified in /proc/PID/limits
	KnobBuild  = "build"  // in force through a fresh server
)

// Value is a knob's value; it tells absent (the knob has no value) from empty.
type Value struct {
	Text   string `json:"text"`
	Absent bool   `json:"absent,omitempty"`
}

// Setting is a knob and the value a state gives it.
type Setting struct {
	Knob       KnobID `json:"knob"`
	Value      string `json:"value"`
	BestEffort bool   `json:"best_effort,omitempty"`
	Step       string `json:"step,omitempty"` // the step that gave this value
}

// State is the full set of knob values in force on every host.
type State struct {
	Name     string                 `json:"name"`
	Step     string                 `json:"step,omitempty"`    // the step whose effect Over shows
	Over     string                 `json:"over,omitempty"`    // the state it is compared with; "" for the baseline
	Without  bool                   `json:"without,omitempty"` // this state lacks Step and Over has it: the step's effect is Over ÷ this state
	Control  bool                   `json:"control,omitempty"` // the baseline measured a second time
	Steps    []string               `json:"steps"`             // all steps in force, in order
	Settings map[HostName][]Setting `json:"settings"`          // sorted by knob
}

// Change is one ordered difference between two states on one host.
type Change struct {
	Knob       KnobID `json:"knob"`
	From       Value  `json:"from"`
	To         Value  `json:"to"`
	BestEffort bool   `json:"best_effort,omitempty"`
}

// Applied is what became of a change: the value read back after the write.
type Applied struct {
	Change   Change `json:"change"`
	ReadBack Value  `json:"read_back"`
	Differs  bool   `json:"differs,omitempty"` // read back ≠ asked; only a best-effort change may
}

// Restored is what became of one journal entry.
type Restored struct {
	Knob     KnobID `json:"knob"`
	Original Value  `json:"original"`
	Found    Value  `json:"found"`
	Outcome  string `json:"outcome"` // one of the Restore… words
	Error    string `json:"error,omitempty"`
}

// What became of a journal entry.
const (
	RestoreDone     = "restored" // written back
	RestoreAlready  = "already"  // found at its original value
	RestoreForeign  = "foreign"  // found at a value that is neither ours nor the original: kept
	RestoreRebooted = "rebooted" // the host was started anew since, and its sysctls with it
	RestoreFailed   = "error"    // the entry stays pending
)

// Pending is a journal entry that is not restored.
type Pending struct {
	Knob     KnobID     `json:"knob"`
	Original Value      `json:"original"`
	Ours     []Value    `json:"ours"` // every value the lab wrote, oldest first
	Campaign CampaignID `json:"campaign"`
	Since    string     `json:"since"` // RFC 3339, UTC
}

// Refusal is a knob, tool or limit that the plan found impossible, with the cure.
type Refusal struct {
	Host   HostName `json:"host,omitempty"`
	Step   string   `json:"step,omitempty"`
	Knob   KnobID   `json:"knob"`
	Path   string   `json:"path"` // into Experiment.Where
	Reason string   `json:"reason"`
	Cure   string   `json:"cure"`
	Fatal  bool     `json:"fatal"` // the campaign cannot run; otherwise the knob is skipped
}

// Warning is something the plan says before anything changes, without refusing.
type Warning struct {
	Host HostName `json:"host,omitempty"`
	Path string   `json:"path,omitempty"`
	Text string   `json:"text"`
}
