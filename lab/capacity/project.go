package capacity

import (
	"fmt"
	"math"

	"ngxlab/lab"
)

const (
	// leastReserve is kept free when the experiment does not say (METHOD §6).
	leastReserve = 1 << 30
	// reserveShare of a memory size is kept free at least.
	reserveShare = 10
	// testedFactor is how far beyond the most connections tested a projection is not yet called extrapolation.
	testedFactor = 4
)

// project says how many connections fit in each memory size.
func project(p lab.Plan, total, server lab.CapacityFit, used []lab.CapacityLevel) []lab.CapacityProjection {
	spec := p.Experiment.Capacity
	if spec == nil || total.BytesPerConnection <= 0 {
		return nil
	}
	tested := 0
	for _, l := range used {
		tested = max(tested, l.Connections)
	}
	var all []lab.CapacityProjection
	for _, size := range spec.SizesBytes {
		one := fill(size, reserve(spec.ReserveBytes, size), total, server)
		one.FirstLimit, one.AtFirstLimit = firstLimit(p, one.Connections)
		one.Extrapolation = one.Connections > testedFactor*int64(tested)
		one.Users = map[int]int64{}
		for _, each := range spec.ConnectionsPerUser {
			if each > 0 {
				one.Users[each] = one.Connections / int64(each)
			}
		}
		all = append(all, one)
	}
	return all
}

// reserve is what stays free of a memory size: what the experiment says (1 GiB when it does not), and a tenth at least.
func reserve(asked, size int64) int64 {
	if asked <= 0 {
		asked = leastReserve
	}
	return max(asked, size/reserveShare)
}

// fill divides what is left after the reserve and the server's own memory at zero connections. Kernel memory at zero
// connections is the system's and part of the reserve.
func fill(size, reserve int64, total, server lab.CapacityFit) lab.CapacityProjection {
	left := math.Max(0, float64(size-reserve)-math.Max(0, server.InterceptBytes))
	one := lab.CapacityProjection{Kind: total.Kind, SizeBytes: size, ReserveBytes: reserve,
		Connections: int64(left / total.BytesPerConnection)}
	if one.NoInterval = total.NoInterval || total.Low <= 0; !one.NoInterval {
		one.Low, one.High = int64(left/total.High), int64(left/total.Low)
	}
	return one
}

// firstLimit is the first of the plan's limits and the memory to be reached.
func firstLimit(p lab.Plan, memory int64) (string, int64) {
	name, least := "memory", memory
	if p.Capacity == nil {
		return name, least
	}
	for _, l := range p.Capacity.Limits {
		if l.Connections < least {
			name, least = l.Name, l.Connections
		}
	}
	return name, least
}

// rules are the rules of thumb of the trade beside the measured figures of one kind. A KB in them is 1,000 bytes.
func rules(fits map[string]lab.CapacityFit) []lab.CapacityRule {
	const many = 200000
	kind := fits[lab.PartTotal].Kind
	all := []lab.CapacityRule{
		{Kind: kind, Rule: "a TCP connection costs the kernel 3 to 10 KB", Source: "capacity pages of a published tuning study",
			Of: "bytes per connection in the kernel", LowBytes: 3e3, HighBytes: 10e3, MeasuredBytes: fits[lab.PartKernel].BytesPerConnection},
		{Kind: kind, Rule: "200,000 connections need 2 GB for their sockets, 16 GB are recommended", Source: "the same study",
			Of: "bytes for 200,000 connections with the server", LowBytes: 2e9, HighBytes: 16e9,
			MeasuredBytes: many*fits[lab.PartTotal].BytesPerConnection + math.Max(0, fits[lab.PartServer].InterceptBytes)},
	}
	if kind == lab.HoldIdle {
		all = append(all, lab.CapacityRule{Kind: kind, Rule: "10,000 inactive keep-alive connections take about 2.5 MB in nginx",
			Source: "nginx.org, list of features", Of: "bytes per connection in the server", LowBytes: 250, HighBytes: 250,
			MeasuredBytes: fits[lab.PartServer].BytesPerConnection})
	}
	return all
}

// assumptions says what the figures rest on.
func assumptions(p lab.Plan, r lab.CapacityResult) []string {
	var notes []string
	if len(r.Projections) > 0 {
		notes = append(notes,
			"connections that fit = (memory − reserve − server at zero connections) ÷ measured bytes per connection: the rule (memory − system) ÷ memory per request with measured figures in it",
			"the server allocates its worker_connections at its start (nginx: about 450 bytes for each); a server configured for more connections than the one measured starts larger, and the projections do not have that")
	}
	if p.Capacity != nil && p.Capacity.SharedKernel {
		notes = append(notes, "both ends of every connection are on this kernel: kernel memory is divided by two, by assumption and not by measurement")
	}
	for _, f := range r.Fits {
		if f.NotLinear {
			notes = append(notes, fmt.Sprintf("%s, %s: memory does not grow in a straight line; the slope is an average over the tested range", f.Kind, f.Part))
		}
	}
	for _, x := range r.Projections {
		if x.NoInterval {
			notes = append(notes, fmt.Sprintf("%s: no interval can be given for the projections", x.Kind))
			break
		}
	}
	return notes
}
