package lab

import "testing"

func TestNearestNamesOnlyWhatIsNear(t *testing.T) {
	known := []string{"baseline", "wrk", "ab", "net.core.somaxconn", "net.core.netdev_max_backlog"}
	for word, want := range map[string]string{
		"baselin": "baseline", "BASELINE": "baseline", "wkr": "wrk", "wr": "wrk", "xy": "", "net.core.somaxcon": "net.core.somaxconn",
		"net.netfilter.nf_conntrack_max": "", "keepalive": "", "": "",
	} {
		if got, near := Nearest(word, known); got != want || near != (want != "") {
			t.Errorf("%q: %q %v, want %q", word, got, near, want)
		}
	}
	if got, _ := Nearest("steq", []string{"step", "stem"}); got != "step" {
		t.Errorf("of two equally near %q, want the first", got)
	}
}

func TestDistanceCountsInsertionsRemovalsAndReplacements(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"wkr", "wrk", 2}} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("%q to %q is %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
