package lab

// Word is what the data say of a comparison.
type Word string

// The verdict words (METHOD §4).
const (
	Helps         Word = "helps"
	Hurts         Word = "hurts"
	NoDifference  Word = "no difference larger than ±δ"
	Undecided     Word = "undecided"
	AtLeast       Word = "at least"       // the tuned state was generator-limited: a lower bound of the gain
	NotMeasurable Word = "not measurable" // with the finding that prevents it

	Holds         Word = "holds"
	Reproduced    Word = "reproduced"
	Contradicted  Word = "contradicted"
	NotComparable Word = "not comparable"
)

// Comparison is the paired comparison of one state with another on one metric.
type Comparison struct {
	Target     HostName  `json:"target"`
	State      string    `json:"state"`
	Over       string    `json:"over"`
	Load       string    `json:"load,omitempty"` // "" = the one figure per step: mean log ratio over the load points
	Metric     Metric    `json:"metric"`
	Pairs      int       `json:"pairs"` // rounds in which both are valid
	Lost       int       `json:"lost"`  // rounds in which one is not
	Ratio      float64   `json:"ratio"` // exp(mean paired log ratio); 0 when Pairs is 0
	Low        float64   `json:"low"`
	High       float64   `json:"high"`
	SD         float64   `json:"sd"` // of the paired log ratios
	P          float64   `json:"p"`
	AdjustedP  float64   `json:"adjusted_p"` // Holm within its family
	HLLow      float64   `json:"hodges_lehmann_low"`
	HLHigh     float64   `json:"hodges_lehmann_high"`
	Stopping   bool      `json:"allowing_for_stopping"` // interval by the 97.5 % t quantile of METHOD §4
	LowerBound bool      `json:"lower_bound,omitempty"` // State generator-limited, Over not
	LogRatios  []float64 `json:"log_ratios"`            // per round, sorted by round
	Mixed      bool      `json:"mixed,omitempty"`       // load points disagree in sign
	Prevented  string    `json:"prevented,omitempty"`   // why the figures cannot be compared; "" = they can
	Part       int       `json:"part,omitempty"`        // of the campaign that was compared

	LeftOut map[string]string `json:"left_out,omitempty"` // load points that the one figure is without → why
	Doubts  []string          `json:"doubts,omitempty"`   // findings that qualify the figures: "foreign-cpu in 3 of 12 runs"
}

// Verdict is a comparison with its word, or a claim with its word.
type Verdict struct {
	Comparison Comparison `json:"comparison"`
	Family     string     `json:"family"`         // "steps", "where", "claims", "control"
	Step       string     `json:"step,omitempty"` // whose effect it shows; "" = several steps together
	Word       Word       `json:"word"`
	Text       string     `json:"text"` // the full sentence part: "helps: +38% (+36% … +41%)"
	MoreRounds int        `json:"more_rounds,omitempty"`
	Claim      string     `json:"claim,omitempty"` // name
	Published  float64    `json:"published,omitempty"`
	Reasons    []string   `json:"reasons,omitempty"` // findings that prevent or qualify it; conditions that differ
}

// Reason says why a campaign stopped or goes on.
type Reason string

// The reasons to stop.
const (
	ReasonPrecise  Reason = "every headline comparison is narrower than the precision asked for"
	ReasonMax      Reason = "the maximum of rounds is reached"
	ReasonBudget   Reason = "the time budget is used up"
	ReasonContinue Reason = "not yet precise"
	ReasonMinimum  Reason = "fewer rounds than the minimum"
)
