package fingerprint

// Request is what the command inside is asked: to kill, to run a command, or, when it is empty, for a fingerprint.
type Request struct {
	Kill []string `json:"kill,omitempty"` // texts of command lines
	One  bool     `json:"one,omitempty"`  // only one process of each text
	Run  []string `json:"run,omitempty"`
}

// Answer is the answer to a Request.
type Answer struct {
	Killed      []string    `json:"killed,omitempty"` // command lines
	Output      string      `json:"output,omitempty"`
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
	Error       string      `json:"error,omitempty"`
}
