package conduct

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/hosts"
	"ngxlab/hosts/docker"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

// starts is how many common starts are measured (DESIGN §14).
const starts = 50

// BenchmarkCommonStart lets three hosts start a process at one instant, 50 times: agents of this machine, hosts of a
// Docker lab reached through its engine, and the same over SSH.
func BenchmarkCommonStart(b *testing.B) {
	b.Run("local", func(b *testing.B) {
		benchStarts(b, func(name lab.HostName) (*hosts.Host, error) {
			return hosts.Local(b.Context(), hosts.Options{Name: name, Dir: testlab.StateDir(b), Agent: testlab.Agent(b)})
		})
	})
	e, l, containers := dockerlab.Lab(b, startHosts...)
	b.Run("docker", func(b *testing.B) {
		benchStarts(b, func(name lab.HostName) (*hosts.Host, error) {
			door, err := e.Enter(b.Context(), l.Name, string(name))
			return entered(b, name, door, err)
		})
	})
	b.Run("ssh", func(b *testing.B) {
		benchStarts(b, func(name lab.HostName) (*hosts.Host, error) {
			c := containers[slices.Index(startHosts, name)]
			door, err := ssh.Dial(b.Context(), ssh.Destination{Address: c.Address, User: docker.RootUser, Key: c.Key},
				ssh.Options{Config: []string{}, KnownHosts: []string{c.KnownHosts}})
			return entered(b, name, door, err)
		})
	})
}

var startHosts = []lab.HostName{"gen1", "gen2", "gen3"}

// entered is the host behind a door, if there is one.
func entered[D hosts.Door](b *testing.B, name lab.HostName, door D, err error) (*hosts.Host, error) {
	b.Helper()
	if err != nil {
		return nil, err
	}
	return hosts.Enter(b.Context(), door, hosts.Options{Name: name, Agent: testlab.Agent(b)})
}

// benchStarts opens the hosts, which are left at the end, and measures.
func benchStarts(b *testing.B, open func(lab.HostName) (*hosts.Host, error)) {
	all := map[lab.HostName]Machine{}
	for _, name := range startHosts {
		host, err := open(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = host.Close() })
		if err := host.Claim(b.Context(), "bench", "make bench"); err != nil {
			b.Fatal(err)
		}
		all[name] = Machine{Tuner: host, Builder: host, Runner: host, Watcher: host}
	}
	for b.Loop() {
		measureStarts(b, all, starts)
	}
	b.ReportMetric(0, "ns/op")
}

// measureStarts starts a process on all hosts at one instant, n times, each time with the clocks read anew, and reports
// the median, and of two the 90th percentile and the worst, in ms:
//
//   - asked: how far a release was from the instant its host was asked for (the host's own part);
//   - off: how far a release was from the instant meant, read from this machine's CLOCK_MONOTONIC, with what the
//     clocks' offsets were wrong by; only for hosts of this kernel, whose clock is the same (agents here, containers);
//   - spread: from the first to the last release of one start, by the same clock, or else by the measured offsets;
//   - doubt: what a clock may be wrong by, as it was told.
func measureStarts(b *testing.B, all map[lab.HostName]Machine, n int) {
	c := &campaign{id: "bench", hosts: bound(lab.Plan{}, all), rec: &fakeStore{}, emit: ignore, clocks: map[lab.HostName]lab.Clock{}}
	commands := map[lab.HostName][]lab.Command{}
	for name := range all {
		commands[name] = []lab.Command{{Argv: []string{"true"}, Deadline: lab.Seconds(10)}}
	}
	m := startTimes{here: thisKernel(b, c)}
	for range n {
		if err := c.clock(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		err := c.armed(b.Context(), commands, func(sets map[lab.HostName]set) error {
			at := time.Now().Add(c.lead())
			processes, err := c.fire(b.Context(), sets, at)
			m.add(c, at, processes)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	m.report(b)
}

// thisKernel reports whether all hosts have this machine's boot id, and so its clock.
func thisKernel(b *testing.B, c *campaign) bool {
	own, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		b.Fatal(err)
	}
	here := true
	for _, host := range c.hosts {
		err := host.Watch(b.Context(), lab.Watch{Once: true}, func(s lab.Sample) { here = here && s.BootID == strings.TrimSpace(string(own)) })
		if err != nil {
			b.Fatal(err)
		}
	}
	return here
}

// startTimes are what many starts took, in ms.
type startTimes struct {
	here                      bool
	asked, off, spread, doubt []float64
}

func (m *startTimes) add(c *campaign, at time.Time, processes []lab.Process) {
	var offs []float64
	for _, p := range processes {
		m.asked = append(m.asked, math.Abs(milliseconds(p.Released.Sub(p.Asked))))
		off := p.Released.Sub(c.clocks[p.Host].Instant(at))
		if m.here {
			off = p.Released.Sub(monotonic(at))
			m.off = append(m.off, math.Abs(milliseconds(off)))
		}
		offs = append(offs, milliseconds(off))
		m.doubt = append(m.doubt, c.clocks[p.Host].UncertaintyS*1000)
	}
	m.spread = append(m.spread, slices.Max(offs)-slices.Min(offs))
}

// monotonic is what this machine's CLOCK_MONOTONIC reads at a local time.
func monotonic(at time.Time) lab.Instant {
	var ts unix.Timespec
	before := time.Now()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // it exists on every Linux
	}
	between := before.Add(time.Since(before) / 2)
	return lab.Instant(ts.Nano()).Add(at.Sub(between))
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func (m *startTimes) report(b *testing.B) {
	for name, all := range map[string][]float64{"asked": m.asked, "off": m.off, "spread": m.spread, "doubt": m.doubt} {
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name+"-median-ms")
		if name == "off" || name == "spread" {
			b.ReportMetric(all[len(all)*9/10], name+"-p90-ms")
			b.ReportMetric(all[len(all)-1], name+"-worst-ms")
		}
	}
}
