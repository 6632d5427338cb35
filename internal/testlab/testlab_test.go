package testlab_test

import (
	"strings"
	"testing"

	"ngxlab/internal/testlab"
)

func TestNginxHasStubStatusAndEcho(t *testing.T) {
	b := testlab.Nginx(t)
	for _, flag := range []string{"http_stub_status_module", "--add-module=../echo"} {
		if !strings.Contains(b.Configured, flag) {
			t.Errorf("-V does not name %s:\n%s", flag, b.Configured)
		}
	}
	if again := testlab.Nginx(t); !again.Cached || again.ID != b.ID || again.TookS > 1 {
		t.Errorf("second use: cached %v, id %s (first %s), %.1f s; want cached, equal, at most 1 s", again.Cached, again.ID, b.ID, again.TookS)
	}
}
