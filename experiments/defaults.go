package experiments

import (
	"fmt"
	"time"

	"ngxlab/lab"
)

// The defaults of METHOD §8 and DESIGN §3. A key that the file leaves out has them.

func newExperiment() lab.Experiment {
	return lab.Experiment{
		Builds: map[string]lab.Recipe{}, Ladder: lab.Ladder{Kind: lab.Cumulative}, Repeat: newRepeat(),
		Order: lab.Interleaved, Cannot: lab.CannotFail,
	}
}

// newRecipe: nginx from the distribution's source package, with what the sites and the monitors need.
func newRecipe() lab.Recipe {
	return lab.Recipe{Flavor: lab.FlavorNginx, Modules: []string{"stub_status", "echo"}, Sources: []lab.BuildSource{{Debian: "nginx"}}}
}

// newLoadSpec: 10 s, warmed up for 3 s before the first load point of a state and round and for 1 s before each further
// one, keep-alive, one process on every load host.
func newLoadSpec() lab.LoadSpec {
	return lab.LoadSpec{
		KeepAlive: []bool{true}, Duration: lab.Seconds(10),
		WarmupFirst: lab.Seconds(3), Warmup: lab.Seconds(1), Processes: 1,
	}
}

// newRepeat: 6 to 20 rounds, until intervals are narrower than ±2 %; effects below 2 % do not matter; 0.5 s of rest
// after each run; with control.
func newRepeat() lab.Repeat {
	return lab.Repeat{
		Min: 6, Max: 20, Precision: 0.02, Effect: 0.02,
		CoolDown: lab.Duration{Duration: 500 * time.Millisecond}, Control: true,
	}
}

// newCapacity: idle connections at the levels of METHOD §8 in 3 ramps, projected to 8, 16 and 32 GiB.
func newCapacity() lab.CapacitySpec {
	return lab.CapacitySpec{
		Connections: []int{0, 1000, 2000, 5000, 10000, 20000}, Kinds: []lab.HoldKind{lab.HoldIdle}, Ramps: 3,
		SizesBytes: []int64{8 << 30, 16 << 30, 32 << 30}, ReserveBytes: 1 << 30, ConnectionsPerUser: []int{2, 4, 6},
	}
}

// siteURL is what a site serves.
var siteURL = map[string]string{
	"empty-gif": "/empty.gif", "hello": "/hello", "echo": "/echo", "sleep": "/sleep", "file": "/file", "template": "/",
}

// fill gives a value to what depends on other keys; given says what the file has.
func fill(e *lab.Experiment, given func(path string) bool) {
	if len(e.Builds) == 0 && e.Server.Build == "" {
		name, r := defaultBuild(e.Server.Command)
		e.Builds[name] = r
	}
	for name, r := range e.Builds {
		r.Name = name
		e.Builds[name] = filledRecipe(r)
		if len(e.Builds) == 1 && e.Server.Build == "" {
			e.Server.Build = name
		}
	}
	fillServer(&e.Server, defaultPort)
	if u := e.Server.Upstream; u != nil {
		if u.Server.Build == "" {
			u.Server.Build = e.Server.Build
		}
		fillServer(&u.Server, upstreamPort)
	}
	url := defaultURL(*e, given)
	for i := range e.Load {
		l := &e.Load[i]
		if l.URL == "" {
			l.URL = url
		}
		if l.Requests > 0 && !given(fmt.Sprintf("load[%d].duration", i)) {
			l.Duration = lab.Duration{}
		}
	}
	fillRounds(&e.Repeat, given)
}

// defaultBuild is the one build of an experiment without any: nginx, or the program of its server's command.
func defaultBuild(c *lab.ServerCommand) (name string, r lab.Recipe) {
	if c == nil || len(c.Start) == 0 {
		return "nginx", newRecipe()
	}
	return "server", lab.Recipe{Flavor: lab.FlavorCustom, Installed: c.Start[0]}
}

// defaultURL is what load asks for when it does not say: what the site serves, of a proxy that of its upstream. A server that
// is not nginx, when the file names no site, is asked for the path that tells that it is ready.
func defaultURL(e lab.Experiment, given func(path string) bool) string {
	sited := given("server.site")
	if u := e.Server.Upstream; e.Server.Site == "proxy" && u != nil {
		sited = given("server.upstream.server.site")
		e.Server = u.Server
	}
	r := e.Builds[e.Server.Build]
	command := e.CommandOf(r)
	switch nginx := r.IsNginx() && command == nil; {
	case (sited || nginx) && siteURL[e.Server.Site] != "":
		return siteURL[e.Server.Site]
	case command != nil && command.Ready != "":
		return command.Ready
	}
	return "/"
}

// The ports of servers.
const (
	defaultPort  = 8081
	upstreamPort = 8181
)

func fillServer(s *lab.ServerSpec, port int) {
	if s.Port == 0 {
		s.Port = port
	}
	if s.StatusPort == 0 {
		s.StatusPort = s.Port + 1
	}
	if s.Site == "" {
		s.Site = "empty-gif"
	}
	if s.Restart == "" {
		s.Restart = lab.RestartAlways
	}
	if s.Site == "file" && s.BodyBytes == 0 {
		s.BodyBytes = 1 << 10
	}
	if s.Site == "sleep" && s.SleepS == 0 {
		s.SleepS = 0.1
	}
}

// fillRounds keeps the defaults of min and max out of the way of the one that the file gives.
func fillRounds(r *lab.Repeat, given func(path string) bool) {
	switch {
	case given("repeat.min") && !given("repeat.max"):
		r.Max = max(r.Max, r.Min)
	case given("repeat.max") && !given("repeat.min"):
		r.Min = min(r.Min, r.Max)
	}
}
