package hold

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestServerOverTLSIsTriedWithOneConnection(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
			http.NotFound(w, r)
		case "/sleep":
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	h := newHolder(t)
	for _, c := range []struct {
		url   string
		kind  lab.HoldKind
		want  int
		error string
	}{{"/", lab.HoldIdle, 1, ""}, {"/sleep", lab.HoldActive, 1, ""}, {"/none", lab.HoldIdle, 0, "response: status 404"}} {
		held := hold(t, h, lab.Hold{Kind: c.kind, Address: s.Listener.Addr().String(), URL: c.url, Connections: 1, TLS: true})
		if held.Answered != c.want || held.Failed != 1-c.want || held.Error != c.error {
			t.Errorf("%s: %+v", c.url, held)
		}
	}
	_, err := h.Hold(t.Context(), lab.Hold{Kind: lab.HoldIdle, Address: s.Listener.Addr().String(), URL: "/", Connections: 2, TLS: true})
	if err == nil || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("error %v", err)
	}
}
