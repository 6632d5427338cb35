package observe

import (
	"testing"

	"ngxlab/lab"
)

// What the target turned away is its result; a server that never keeps a connection was not measured with keep-alive.
func TestFewerConnectionsAndKeepAliveTellTheTargetFromTheLoad(t *testing.T) {
	for _, c := range []struct {
		name, code string
		change     func(*Observation)
		want       string
	}{
		{"no more descriptors at the server", "fewer-connections", func(o *Observation) {
			o.Counts.ActiveMedian, o.ErrorLog = known(52), []string{"accept4() failed (24: Too many open files)"}
		}, "warned"},
		{"nobody knows why", "fewer-connections", func(o *Observation) { o.Counts.ActiveMedian = known(52) }, "invalid"},
		{"ab kept nothing", "keepalive-ineffective", func(o *Observation) { o.Figures[lab.KeptAlive], o.Counts.Accepts = 0, known(300000) }, "invalid"},
		{"ab kept most", "keepalive-ineffective", func(o *Observation) { o.Figures[lab.KeptAlive] = 0.97 * 300000 }, "warned"},
		{"ab kept all, the server counts more", "keepalive-ineffective", func(o *Observation) {
			o.Figures[lab.KeptAlive], o.Counts.Accepts = 300000, known(100+0.02*300000)
		}, "warned"},
		{"all kept", "keepalive-ineffective", func(o *Observation) { o.Figures[lab.KeptAlive] = 300000 }, "quiet"},
	} {
		o := quietScene().observe()
		c.change(&o)
		if f := finding(o, c.code); word(f) != c.want {
			t.Errorf("%s: %s: %s", c.name, word(f), f.Evidence)
		}
	}
}
