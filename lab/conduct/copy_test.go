package conduct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// severalTargets are web, web2 and web3 of one distribution, and old of another.
func severalTargets(t *testing.T) (*cluster, lab.Plan) {
	c := &cluster{all: map[lab.HostName]*fakeHost{}, store: &fakeStore{}}
	p := smallPlan(1)
	served := p.Servings[0]
	p.Experiment.Hosts, p.Cells, p.Rounds, p.Servings = nil, nil, nil, nil
	for name, distribution := range map[lab.HostName]string{web: "debian 12", "web2": "debian 12", "web3": "debian 12", "old": "debian 11"} {
		c.all[name] = newFakeHost(t)
		c.all[name].name = name
		p.Experiment.Hosts = append(p.Experiment.Hosts, lab.Host{Name: name, Address: string(name), Roles: []lab.Role{lab.RoleTarget}})
		p.Facts[name] = lab.Facts{Host: name, Distribution: distribution, Architecture: "amd64"}
		served.Target = name
		p.Servings = append(p.Servings, served)
	}
	return c, p
}

func (c *cluster) count(name lab.HostName, call string) int {
	n := 0
	for _, made := range c.all[name].calls {
		if made == call {
			n++
		}
	}
	return n
}

func TestBuildIsMadeOncePerDistributionAndCopied(t *testing.T) {
	c, p := severalTargets(t)
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for name, builds := range map[lab.HostName]int{web: 1, "web2": 0, "web3": 0, "old": 1} {
		if c.count(name, "build") != builds || c.count(name, "import") != 0 && builds == 1 || c.count(name, "import") != 1 && builds == 0 {
			t.Errorf("%s: calls %v", name, c.all[name].calls)
		}
	}
	texts := c.texts(lab.EventBuilt)
	slices.Sort(texts)
	want := []string{"old: nginx 1.22.1 in 0.0 s", "web2: nginx 1.22.1, copied from web in 0.0 s", "web3: nginx 1.22.1, copied from web in 0.0 s", "web: nginx 1.22.1 in 0.0 s"}
	if !slices.Equal(texts, want) {
		t.Errorf("said %q", texts)
	}
	c.said = nil
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if c.count("web2", "import") != 1 || !slices.Contains(c.texts(lab.EventBuilt), "web2: nginx 1.22.1, the same as on web before") {
		t.Errorf("second campaign: calls %v, said %q", c.all["web2"].calls, c.texts(lab.EventBuilt))
	}
}

func TestHostThatCannotTakeACopyBuildsForItself(t *testing.T) {
	c, p := severalTargets(t)
	c.all["web3"].before = func(_ int, call string) error {
		if call == "import" {
			return errors.New("the server needs libraries that this host lacks: libpcre2-8.so.0")
		}
		return nil
	}
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if c.count("web3", "build") != 1 || c.count("web2", "build") != 0 {
		t.Errorf("web3: calls %v", c.all["web3"].calls)
	}
	want := "web3: cannot take the build nginx from web, and builds for itself: web3: import: the server needs libraries that this host lacks: libpcre2-8.so.0"
	if got := c.texts(lab.EventProblem); !slices.Equal(got, []string{want}) {
		t.Errorf("said %q", got)
	}
}

func TestHostLostWhileABuildIsCopiedIsNamed(t *testing.T) {
	for name, call := range map[lab.HostName]string{web: "export", "web2": "import"} {
		c, p := severalTargets(t)
		c.all[name].before = func(_ int, made string) error {
			if made == call {
				return lab.ErrLost
			}
			return nil
		}
		_, err := c.run(t.Context(), p)
		want := fmt.Sprintf("copy the build nginx from web to web2: %s: %s: ", name, call)
		if !errors.Is(err, lab.ErrLost) || !strings.Contains(err.Error(), want) || c.count("web2", "build") > 0 {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// cutShort exports half of a build and fails; whole imports what comes until then.
type cutShort struct{ *fakeHost }

func (c cutShort) Export(context.Context, lab.Build, io.Writer) error {
	return errors.New("web: export: disk trouble")
}

func TestExportThatFailsIsNotTakenForAWholeBuild(t *testing.T) {
	c, p := severalTargets(t)
	machines := map[lab.HostName]Machine{}
	for name, host := range c.all {
		machines[name] = host.machine()
	}
	broken := machines[web]
	broken.Builder = cutShort{c.all[web]}
	machines[web] = broken
	if _, err := Run(t.Context(), "small-1", p, machines, c.store, func(e lab.Event) { c.said = append(c.said, e) }); err != nil {
		t.Fatal(err)
	}
	if c.count("web2", "build") != 1 || len(c.texts(lab.EventProblem)) != 2 || !strings.Contains(c.texts(lab.EventProblem)[0], "disk trouble") {
		t.Errorf("calls %v, said %q", c.all["web2"].calls, c.texts(lab.EventProblem))
	}
}

func TestBuildsOfSeveralDistributionsAreMadeAtTheSameTime(t *testing.T) {
	c, p := severalTargets(t)
	both := make(chan struct{}, 2)
	meet := func(_ int, call string) error {
		if call != "build" {
			return nil
		}
		both <- struct{}{}
		for limit := time.Now().Add(10 * time.Second); len(both) < 2; <-time.After(time.Millisecond) {
			if time.Now().After(limit) {
				return errors.New("the other was not begun meanwhile")
			}
		}
		return nil
	}
	c.all[web].before, c.all["old"].before = meet, meet
	if _, err := c.run(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// lends is the small plan on web, whose builds are lent by here when it cannot make them; it returns how often here was
// let go.
func lends(t *testing.T, there, here error) (c *cluster, left int, err error) {
	c, p := severalTargets(t)
	p.Experiment.Hosts = p.Experiment.Hosts[:0]
	for name := range c.all {
		if name != web {
			delete(c.all, name)
		}
	}
	p.Servings = slices.DeleteFunc(p.Servings, func(s lab.Serving) bool { return s.Target != web })
	p.Experiment.Hosts = append(p.Experiment.Hosts, lab.Host{Name: web, Address: "web", Roles: []lab.Role{lab.RoleTarget}})
	lender := newFakeHost(t)
	for host, fails := range map[*fakeHost]error{c.all[web]: there, lender: here} {
		host.before = func(_ int, call string) error {
			if call == "build" {
				return fails
			}
			return nil
		}
	}
	m := c.all[web].machine()
	m.Lender = &Lender{Name: "here", Open: func(context.Context) (Builder, func() error, error) {
		return lender, func() error { left++; return nil }, nil
	}}
	_, err = Run(t.Context(), "small-1", p, map[lab.HostName]Machine{web: m}, c.store, func(e lab.Event) { c.said = append(c.said, e) })
	return c, left, err
}

func TestBuildThatAHostCannotMakeIsLent(t *testing.T) {
	noSource := errors.New("build: no source")
	for name, tc := range map[string]struct {
		there, here error
		asked       bool
		built       []string
		err         error
	}{
		"made there":   {nil, nil, false, []string{"web: nginx 1.22.1 in 0.0 s"}, nil},
		"made here":    {noSource, nil, true, []string{"web: nginx 1.22.1, made on here and copied"}, nil},
		"made nowhere": {noSource, errors.New("build: no compiler"), true, nil, noSource},
		"host lost":    {lab.ErrLost, nil, false, nil, lab.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			c, left, err := lends(t, tc.there, tc.here)
			if !errors.Is(err, tc.err) || !slices.Equal(c.texts(lab.EventBuilt), tc.built) {
				t.Errorf("error %v, want %v; said %q", err, tc.err, c.texts(lab.EventBuilt))
			}
			said := strings.Join(c.texts(lab.EventProblem), "; ")
			if tc.asked != (left == 1) || tc.asked != strings.Contains(said, "web: cannot make the build nginx; trying to make it on here") {
				t.Errorf("the lender was let go %d times; said %q", left, said)
			}
			if tc.here != nil && !strings.Contains(said, "no compiler") {
				t.Errorf("said %q, not why it could not be lent", said)
			}
		})
	}
}
