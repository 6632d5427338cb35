package lab

// Metric names a figure; the name carries the unit.
type Metric string

// Figures are the numbers of a run or a report. A figure that is unknown is absent.
type Figures map[Metric]float64

// The metrics. Latency is what the tool measured, in seconds.
const (
	Goodput       Metric = "goodput_per_s"            // responses as the probe promised, per second of the window
	CPUPerRequest Metric = "server_cpu_per_request_s" // all server processes over the window ÷ requests the server counted
	ErrorRatio    Metric = "error_ratio"              // (errors + unexpected statuses) ÷ attempts
	Requests      Metric = "requests"                 // completed
	Failed        Metric = "failed"                   // transport errors and time-outs, overlaps removed
	NonSuccess    Metric = "non_2xx"                  // responses of an unexpected status
	Connections   Metric = "connections"
	DurationS     Metric = "duration_s"
	RequestRate   Metric = "requests_per_s" // as the tool prints it
	MeanS         Metric = "mean_s"
	StdevS        Metric = "stdev_s"
	MinS          Metric = "min_s"
	P50S          Metric = "p50_s"
	P75S          Metric = "p75_s"
	P90S          Metric = "p90_s"
	P95S          Metric = "p95_s"
	P99S          Metric = "p99_s"
	P999S         Metric = "p999_s"
	MaxS          Metric = "max_s"
	BytesRead     Metric = "bytes_read"
	BodyBytes     Metric = "body_bytes"
	BytesRate     Metric = "bytes_per_s"

	ErrConnect    Metric = "errors_connect"
	ErrRead       Metric = "errors_read"
	ErrWrite      Metric = "errors_write"
	ErrTimeout    Metric = "errors_timeout"
	ErrLength     Metric = "errors_length"
	ErrException  Metric = "errors_exception"
	KeptAlive     Metric = "keepalive_requests"
	Corrections   Metric = "histogram_excess_ratio" // Σ histogram counts ÷ requests − 1 (wrk)
	DocumentBytes Metric = "document_bytes"
	ConnectMeanS  Metric = "connect_mean_s"
	WaitMeanS     Metric = "waiting_mean_s"

	ServerCPU       Metric = "server_cpu_cores"            // CPU seconds of all server processes per second
	ServerCPUWorker Metric = "server_cpu_worker_max_cores" // busiest worker
	ClientCPU       Metric = "client_cpu_cores"            // all load processes
	ClientThreadMax Metric = "client_thread_max_cores"     // busiest load thread
	ClientBusy      Metric = "client_cpus_busy_ratio"      // busy share of the CPUs in the generators' affinity
	ServerBusy      Metric = "server_cpus_busy_ratio"      // busy share of the CPUs the server may use
	ForeignCPU      Metric = "foreign_cpu_cores"
	ClientCPUPerReq Metric = "client_cpu_per_request_s"
	ServerRequests  Metric = "server_requests" // counted by the server, own polls subtracted
	ServerAccepts   Metric = "server_accepts"
	LittleRatio     Metric = "little_ratio"
	ServerPSS       Metric = "server_pss_bytes"

	ServerThrottledS Metric = "server_throttled_s"             // waited for the target's CPU quota within the window, summed over CPUs
	ServerThrottled  Metric = "server_throttled_periods_ratio" // share of the quota's periods in which it was used up
	ClientThrottledS Metric = "client_throttled_s"             // of the load host that waited most
	ClientThrottled  Metric = "client_throttled_periods_ratio" // of the load host with the largest

	YardstickS Metric = "yardstick_s" // mean CPU time of the fixed work before and after
)

// IsLatency reports whether m is a time that requests took.
func (m Metric) IsLatency() bool {
	switch m {
	case MeanS, StdevS, MinS, P50S, P75S, P90S, P95S, P99S, P999S, MaxS, ConnectMeanS, WaitMeanS:
		return true
	}
	return false
}

// Grade says how well the good responses of a run are evidenced (METHOD §2).
type Grade string

// The grades.
const (
	GradeA Grade = "A" // every response checked
	GradeB Grade = "B" // status, and byte total against the probe
	GradeC Grade = "C" // status only
	GradeD Grade = "D" // a count only
)
