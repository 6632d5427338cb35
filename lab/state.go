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

// Served reports whether a fresh server brings the knob; every other is set on the host itself, through its journal.
func (k KnobID) Served() bool {
	switch k.Kind {
	case KnobNginx, KnobNofile, KnobNproc, KnobBuild:
		return true
	}
	return false
}

// The knob kinds.
const (
	KnobSysctl  = "sysctl"  // set on the host through its journal, as all up to KnobCommand
	KnobSysfs   = "sysfs"   // a file of the kernel by its absolute path below /sys or /proc; a pattern names several
	KnobEthtool = "ethtool" // "eth0.rings.rx", "eth0.channels.combined", "eth0.coalesce.rx-usecs", "eth0.features.gro"
	KnobFile    = "file"    // by absolute path; the value is a FileValue
	KnobService = "service" // a service of systemd: started or stopped
	KnobUnit    = "unit"    // a limit of a systemd unit: "nginx.service.LimitNOFILE"
	KnobCommand = "command" // by the name that the file gives it; the value is a CommandValue
	KnobNginx   = "nginx"   // in force through a fresh server
	KnobNofile  = "nofile"  // in force through a fresh server, verified in /proc/PID/limits
	KnobNproc   = "nproc"   // as nofile, for processes of the server's user
	KnobBuild   = "build"   // in force through a fresh server
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
	Absent     bool   `json:"absent,omitempty"` // the knob shall have no value: a directive or file is removed
	BestEffort bool   `json:"best_effort,omitempty"`
	Step       string `json:"step,omitempty"` // the step that gave this value
	At         string `json:"at,omitempty"`   // only in Serving.Expect: a directive's name with its context, where Knob has none
}

// Naming returns settings that name knobs and give no values, for reading them. The knobs of commands need theirs.
func Naming(knobs ...KnobID) []Setting {
	settings := make([]Setting, len(knobs))
	for i, k := range knobs {
		settings[i].Knob = k
	}
	return settings
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
	Outcome  string `json:"outcome"`        // one of the Restore… words
	Note     string `json:"note,omitempty"` // worth knowing: what did not come back, whose the value found is
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

// Standing is how a knob stands that the lab has changed and not yet put back.
type Standing struct {
	Knob     KnobID     `json:"knob"`
	Expected Value      `json:"expected"` // what the lab wrote last, as it was read back
	Found    Value      `json:"found"`
	Drifted  bool       `json:"drifted,omitempty"` // someone else changed it
	Campaign CampaignID `json:"campaign"`
	Since    string     `json:"since"` // RFC 3339, UTC: of the first change
	Error    string     `json:"error,omitempty"`
}

// KnobFact is what a host says of a knob that an experiment sets, before anything is changed.
type KnobFact struct {
	Asked     Setting `json:"asked"`               // knob and value as the experiment has them; a pattern has one fact per match
	Knob      KnobID  `json:"knob"`                // on this host
	Now       Value   `json:"now"`                 // at present; Absent when the host has no such knob, or no such file
	To        Value   `json:"to"`                  // what the value comes to on this host: owners as numbers, a file's mode filled in
	Reason    string  `json:"reason,omitempty"`    // why the host cannot have it; "" when it can
	Cure      string  `json:"cure,omitempty"`      // of Reason
	Privilege bool    `json:"privilege,omitempty"` // another user could have it
	Note      string  `json:"note,omitempty"`      // worth knowing: what it costs, what stays
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
