package lab

// Hold asks a host to hold connections. It is absolute: a later call with more Connections opens the difference;
// 0 closes all and ends the holders.
type Hold struct {
	Kind        HoldKind   `json:"kind"`
	Address     string     `json:"address"` // host:port
	URL         string     `json:"url"`     // path
	Connections int        `json:"connections"`
	Processes   int        `json:"processes"`
	Sources     []string   `json:"sources,omitempty"` // source addresses; default the route's own
	Campaign    CampaignID `json:"campaign,omitempty"`
	TLS         bool       `json:"tls,omitempty"` // the server speaks TLS: one connection is tried and let go, none are held
}

// Held is what became of a Hold.
type Held struct {
	Open     int     `json:"open"`
	Answered int     `json:"answered"` // requests answered in this call, also on connections that the server then closed
	Failed   int     `json:"failed"`
	Error    string  `json:"error,omitempty"` // the first failure
	TookS    float64 `json:"took_s"`
	RSSBytes int64   `json:"rss_bytes"` // of the holders
}

// The parts of memory that are not slab caches; those go by the cache's name. Levels are measured with server and
// socket memory, the sums are added when a capacity is concluded.
const (
	PartServer       = "server"        // PSS of all server processes, or their anonymous resident memory where the level says so
	PartSocketMemory = "socket memory" // /proc/net/sockstat TCP mem, pages × page size
	PartKernel       = "kernel"        // all kernel parts that count
	PartFloor        = "floor"         // TCP + filp + epoll: what a connection costs at the very least
	PartTotal        = "total"         // server + kernel
)

// CapacityLevel is the settled memory at one level of one ramp. Parts are totals in bytes, not per connection.
type CapacityLevel struct {
	Kind        HoldKind         `json:"kind"`
	Ramp        int              `json:"ramp"` // from 1
	Asked       int              `json:"asked"`
	Connections int              `json:"connections"` // established, as the server counts them
	Parts       map[string]int64 `json:"parts_bytes"`
	SettledS    float64          `json:"settled_s"` // time until PSS and slab changed < 0.5 % over 2 s
	Unsettled   bool             `json:"unsettled,omitempty"`
	Anonymous   bool             `json:"server_anonymous,omitempty"` // the server's part is its anonymous resident memory: its PSS could not be read
	Problem     string           `json:"problem,omitempty"`          // why the level cannot be used
}

// CapacityFit is bytes per connection of one part: one slope per ramp, interval by t over ramps.
type CapacityFit struct {
	Kind               HoldKind  `json:"kind"`
	Part               string    `json:"part"`
	Slopes             []float64 `json:"slopes_bytes_per_connection"` // one per ramp
	BytesPerConnection float64   `json:"bytes_per_connection"`
	Low                float64   `json:"low_bytes_per_connection"`
	High               float64   `json:"high_bytes_per_connection"`
	InterceptBytes     float64   `json:"intercept_bytes"`
	NotLinear          bool      `json:"not_linear,omitempty"`
	NoInterval         bool      `json:"no_interval,omitempty"`      // fewer than two ramps: Low and High are meaningless
	Divided            bool      `json:"divided_by_two,omitempty"`   // kernel memory of a shared kernel, split between the ends by assumption
	Anonymous          bool      `json:"server_anonymous,omitempty"` // of the server, or with it: its memory is its anonymous resident memory
}

// CapacityProjection is how many connections fit in one memory size.
type CapacityProjection struct {
	Kind          HoldKind      `json:"kind"`
	SizeBytes     int64         `json:"size_bytes"`
	ReserveBytes  int64         `json:"reserve_bytes"`
	Connections   int64         `json:"connections"`
	Low           int64         `json:"low_connections"`
	High          int64         `json:"high_connections"`
	NoInterval    bool          `json:"no_interval,omitempty"` // Low and High are meaningless
	Users         map[int]int64 `json:"users"`                 // connections per user → users
	FirstLimit    string        `json:"first_limit"`
	AtFirstLimit  int64         `json:"at_first_limit_connections"`
	Extrapolation bool          `json:"extrapolation"` // beyond 4 × the tested range
}

// CapacityRule is a rule of thumb beside the measured figure.
type CapacityRule struct {
	Kind          HoldKind `json:"kind"`
	Rule          string   `json:"rule"`   // in words
	Source        string   `json:"source"` // who says so
	Of            string   `json:"of"`     // what the figures are: "bytes per connection", "bytes for 200,000 connections"
	LowBytes      float64  `json:"low_bytes"`
	HighBytes     float64  `json:"high_bytes"`
	MeasuredBytes float64  `json:"measured_bytes"`
}

// CapacityResult is everything the capacity part concludes. Its levels have the parts that count, as used in the fits
// (kernel parts already divided by two on a shared kernel), with the sums added where known.
type CapacityResult struct {
	Levels      []CapacityLevel      `json:"levels"`
	Rules       []CapacityRule       `json:"rules,omitempty"`
	Fits        []CapacityFit        `json:"fits"`
	Projections []CapacityProjection `json:"projections"`
	Notes       []string             `json:"notes,omitempty"`
	Problem     string               `json:"problem,omitempty"` // why nothing can be concluded
}
