package lab

import "time"

// EventKind is what happened.
type EventKind string

// The events of a campaign, in their usual order.
const (
	EventBegin    EventKind = "begin"   // campaign begun or resumed
	EventInstall  EventKind = "install" // packages being installed on a host
	EventBuild    EventKind = "build"   // a build begun, or a line of its log
	EventBuilt    EventKind = "built"
	EventState    EventKind = "state"  // moving to a state
	EventChange   EventKind = "change" // a knob written and read back
	EventServer   EventKind = "server" // a server started and probed
	EventClock    EventKind = "clock"  // the clocks of several hosts read, with what they may be wrong by
	EventWarmup   EventKind = "warmup"
	EventRun      EventKind = "run"      // a run begun
	EventRunDone  EventKind = "run_done" // with figures and findings
	EventRetry    EventKind = "retry"    // an invalid run will be repeated
	EventRound    EventKind = "round"    // a round ended
	EventStop     EventKind = "stop"     // no more rounds, with the reason
	EventCapacity EventKind = "capacity" // a level held and settled
	EventRestore  EventKind = "restore"  // a knob put back
	EventRestored EventKind = "restored" // a host is as it was
	EventProblem  EventKind = "problem"  // something went wrong; the campaign may go on
	EventWait     EventKind = "wait"     // cool-down beyond the ordinary
	EventSplit    EventKind = "split"    // resumed under other conditions: a new part
	EventEnd      EventKind = "end"
)

// Event is one thing that happened; cmd prints it, the store keeps it.
type Event struct {
	At       time.Time  `json:"at"`
	Kind     EventKind  `json:"kind"`
	Campaign CampaignID `json:"campaign,omitempty"`
	Host     HostName   `json:"host,omitempty"`
	Cell     *CellID    `json:"cell,omitempty"`
	Round    int        `json:"round,omitempty"`
	Text     string     `json:"text,omitempty"`
	Done     int        `json:"done,omitempty"`  // runs done
	Total    int        `json:"total,omitempty"` // runs expected as known now
	Left     Duration   `json:"left_s,omitempty"`
	Figures  Figures    `json:"figures,omitempty"`
	Findings []string   `json:"findings,omitempty"` // codes with consequence warned or worse
	Validity Validity   `json:"validity,omitempty"`
}

// Outcome is how a campaign ended.
type Outcome struct {
	Campaign   CampaignID              `json:"campaign"`
	Status     CampaignStatus          `json:"status"`
	Reason     Reason                  `json:"reason,omitempty"`
	Rounds     int                     `json:"rounds"`
	Runs       int                     `json:"runs"`
	Invalid    int                     `json:"invalid"`
	Unrestored map[HostName][]Restored `json:"unrestored,omitempty"` // what could not be put back
	Kept       map[HostName][]Restored `json:"kept,omitempty"`       // what someone else changed meanwhile, and was left so
}

// CampaignStatus of a campaign.
type CampaignStatus string

// The statuses.
const (
	StatusRunning     CampaignStatus = "running"
	StatusDone        CampaignStatus = "done"
	StatusUnrestored  CampaignStatus = "unrestored" // done, but for a host that could not be put back
	StatusFailed      CampaignStatus = "failed"
	StatusInterrupted CampaignStatus = "interrupted"
)

// Measured reports whether a campaign did all that it set out to measure.
func (s CampaignStatus) Measured() bool { return s == StatusDone || s == StatusUnrestored }

// Campaign is one execution of an experiment, as listings show it.
type Campaign struct {
	ID       CampaignID     `json:"id"`
	Name     string         `json:"name"`
	Title    string         `json:"title,omitempty"`
	Hash     string         `json:"experiment_hash"`
	Began    time.Time      `json:"began"`
	Ended    *time.Time     `json:"ended,omitempty"`
	Status   CampaignStatus `json:"status"`
	Reason   Reason         `json:"reason,omitempty"`
	Parts    int            `json:"parts"`
	Runs     int            `json:"runs"`
	Invalid  int            `json:"invalid"`
	Findings int            `json:"findings"` // fired, warned or worse
}

// Results is everything a report needs of one campaign.
type Results struct {
	Campaign Campaign        `json:"campaign"`
	Plan     Plan            `json:"plan"`
	Builds   []Build         `json:"builds"`
	Runs     []Run           `json:"runs"` // by part, round, time; without raw output and samples unless asked for
	Events   []Event         `json:"events,omitempty"`
	Levels   []CapacityLevel `json:"capacity_levels,omitempty"`
	Capacity *CapacityResult `json:"capacity,omitempty"` // concluded from Levels by lab/capacity; absent until somebody asks
	Verdicts []Verdict       `json:"verdicts,omitempty"` // as stored at the end of the campaign
	Version  string          `json:"version"`            // of ngxlab that ran it
}

// Done is what a campaign already has when it is begun or resumed.
type Done struct {
	Runs   []Run           // with figures and findings, without raw output and samples
	Levels []CapacityLevel // of the capacity part
}

// Record is one thing to commit to the store; exactly one field is set.
type Record struct {
	Run     *Run
	Build   *Build
	Level   *CapacityLevel
	Outcome *Outcome
}
