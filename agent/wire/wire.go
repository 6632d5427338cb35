// Package wire is what the agent on a host and the program that asks it share: the greeting, the paths, the requests
// and the replies. Every request is a POST with one JSON value as its body, over HTTP/1.1 on a yamux session.
package wire

import (
	"time"

	"ngxlab/lab"
)

// Protocol is the version of all that follows. Both ends must have the same.
const Protocol = 3

// The paths, each with its request and the type of its Reply, or of the items of its stream of Lines.
const (
	PathFacts     = "/facts"     // lab.FactsQuery → Reply[lab.Facts]
	PathRead      = "/read"      // []lab.Setting → Reply[[]lab.Value]
	PathApply     = "/apply"     // Apply → Reply[[]lab.Applied]
	PathRestore   = "/restore"   // None → Reply[[]lab.Restored]
	PathPending   = "/pending"   // None → Reply[[]lab.Pending]
	PathStanding  = "/standing"  // None → Reply[[]lab.Standing]
	PathInstall   = "/install"   // Install → stream of log lines and one None; it goes on to its end when the asker leaves
	PathBuild     = "/build"     // lab.Recipe → stream of log lines and one lab.Build
	PathExport    = "/export"    // lab.Build → a build as one stream of bytes: see EndTrailer
	PathImport    = "/import"    // a line of JSON with a lab.Build, then the stream of PathExport → Reply[lab.Build]: see below
	PathBuilds    = "/builds"    // None → Reply[[]lab.KeptBuild]
	PathUnbuild   = "/unbuild"   // Unbuild → Reply[lab.Cleaned]
	PathTry       = "/try"       // lab.Trial → Reply[lab.Tried]
	PathServe     = "/serve"     // lab.Serving → stream of one lab.Server, kept open until the server shall stop
	PathArm       = "/arm"       // []lab.Command → Reply[lab.Armed]; no commands: ends every set that still waits
	PathFire      = "/fire"      // Fire → Reply[[]lab.Process]
	PathHold      = "/hold"      // lab.Hold → Reply[lab.Held]
	PathWatch     = "/watch"     // lab.Watch → stream of lab.Sample
	PathClock     = "/clock"     // None → Reply[Clock]
	PathYardstick = "/yardstick" // None → Reply[lab.Yardstick]
	PathClaim     = "/claim"     // Claim → Reply[None]
	PathRelease   = "/release"   // None → Reply[None]
	PathHolder    = "/holder"    // None → Reply[lab.Holder]
	PathClean     = "/clean"     // None → Reply[lab.Cleaned]
)

// A build on its way from host to host is a tar archive compressed with zstandard, with the SHA-256 of every file inside.
// It is the body of an answer or of a request in chunks, so that neither end holds more than a part of it.
//
// PathExport answers 200 with the stream (application/zstd), whatever happens; what did happen stands in the trailer
// EndTrailer, as the JSON of a Reply[None], and is known when the body has been read to its end. A body that is cut off
// ends with an error or without that trailer: then the stream is not whole, and must not be passed on as if it were.
//
// PathImport takes as its body one line of JSON, the lab.Build as the exporting host describes it, and then the stream to
// its end. A body that is cut off, or that does not hold what its hash list says, leaves nothing on the host. The answer is
// the build as it is there: Binary and Log are paths of that host. A host that has this build already takes no byte of
// the stream, which may then be empty: so a lab asks first. The agent reads the body to its end before it answers,
// also with an error.

// EndTrailer is the HTTP trailer in which the answer to PathExport says how the stream ended.
const EndTrailer = "Ngxlab-End"

// Both ends send a keep-alive each KeepAlive and give the link up when none was answered within GiveUp: a cut link is
// noticed within the sum of both.
const (
	KeepAlive = time.Second
	GiveUp    = 3 * time.Second
)

// The names of files that the program puts on a host, for who removes them there.
const (
	AgentPrefix     = "ngxlab-agent-" // then the beginning of the agent's hash: 16 hexadecimal digits
	TemporaryPrefix = ".ngxlab-put-"  // of a file that is not whole yet
)

// None is an empty request or result.
type None struct{}

// Apply asks to change knobs in order.
type Apply struct {
	Campaign lab.CampaignID `json:"campaign"`
	Changes  []lab.Change   `json:"changes"`
}

// Install asks for packages of the host's package manager.
type Install struct {
	Packages []string `json:"packages"`
}

// Unbuild asks to remove builds from the host's cache, by their IDs or beginnings of them that fit one build only.
type Unbuild struct {
	IDs []string `json:"ids"`
}

// Fire asks to let an armed set go.
type Fire struct {
	Armed lab.Armed   `json:"armed"`
	At    lab.Instant `json:"at_ns"`
}

// Clock is what the host's clocks read at one moment.
type Clock struct {
	At     lab.Instant `json:"at_ns"`   // CLOCK_MONOTONIC
	WallNS int64       `json:"wall_ns"` // CLOCK_REALTIME: nanoseconds since 1970
}

// Claim asks for the host's lock, without which nothing is changed or started.
type Claim struct {
	Campaign lab.CampaignID `json:"campaign"`
	Owner    string         `json:"owner"` // who and where, for people: "ana@desk pid 4242"
}

// Reply is the answer to a request that has one. A result may come with an error: what was done before it.
type Reply[T any] struct {
	Result T      `json:"result"`
	Error  *Error `json:"error,omitempty"`
}

// Line is one line of an answer that is a stream (a JSON value per line). A stream that was not cut off ends with a
// line whose End is true, or with an error.
type Line[T any] struct {
	Log   string `json:"log,omitempty"`
	Item  *T     `json:"item,omitempty"`
	Error *Error `json:"error,omitempty"`
	End   bool   `json:"end,omitempty"`
}
