package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/store"
)

// withServer adds a run whose server and upstream were read back in full to a campaign, and returns its number.
func (c *command) withServer(id lab.CampaignID) {
	c.t.Helper()
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(c.dir, "lab.db"))
	must(c.t, err)
	defer func() { must(c.t, s.Close()) }()
	b := lab.Build{ID: "nginx-1.26.3-77aa", Recipe: "nginx", Version: "1.26.3", Compiler: "gcc (Debian 12.2.0-14) 12.2.0", MadeBy: "nobody", Distribution: "debian 12", Architecture: "amd64",
		From: "web2", Sources: map[string]string{"nginx_1.26.3.orig.tar.gz": "69ee2b237744036e61d24b836668aad3040dda461fe6f570f1787eab570c75aa"}, Notes: []string{"source package nginx 1.26.3-3"}}
	must(c.t, s.Commit(ctx, id, lab.Record{Build: &b}))
	p, err := s.Plan(ctx, id)
	must(c.t, err)
	r := measured(c.t, p.Cells[0].ID, 7, 1)
	r.Server = lab.Server{
		Serving: r.Cell.State, Build: b.ID, Modules: []string{"ngx_core_module", "ngx_http_ssl_module"}, User: "www-data", QUIC: true, Workers: []int{12},
		Libraries: []lab.Library{{Name: "libc.so.6", Version: "2.36-9"}, {Name: "libssl.so.3", Version: "3.0.15-1"}},
		TLS:       &lab.TLSState{Version: "TLS 1.3", Cipher: "TLS_AES_128_GCM_SHA256", Protocol: "h2", Key: "ecdsa", CertificateSHA256: "c0ffee0123456789"},
		Effective: "# configuration file {prefix}/nginx.conf:\nevents {}\n", EffectiveSHA: "21bb",
		Upstream: &lab.Server{Build: "other", Effective: "# of the upstream\n", EffectiveSHA: "33cc"},
	}
	must(c.t, s.Commit(ctx, id, lab.Record{Run: &r}))
}

func TestShowTellsWhatAnsweredInARun(t *testing.T) {
	for name, line := range map[string][]string{
		"show-server":        {"show", "19"},
		"show-server-config": {"show", "19", "--config"},
		"show-builds":        {"show"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			c.filled("small-20261130-171502", 1.3)
			c.withServer("small-20261130-171502")
			if code := c.run(line...); code != 0 {
				t.Errorf("exit code %d: %s", code, c.err)
			}
			c.golden(name, 0)
		})
	}
}

func TestRunInJSONHasItsBuildAndItsServer(t *testing.T) {
	c := newCommand(t)
	c.filled("small-20261130-171502", 1.3)
	c.withServer("small-20261130-171502")
	if code := c.run("show", "19", "--json"); code != 0 {
		t.Fatalf("exit code %d: %s", code, c.err)
	}
	var got struct {
		Campaign  lab.CampaignID `json:"campaign"`
		Build     lab.Build      `json:"build"`
		Flavor    string         `json:"flavor"`
		CountedBy string         `json:"counted_by"`
		Server    lab.Server     `json:"server"`
	}
	must(t, json.Unmarshal(c.out.Bytes(), &got))
	if got.Build.Version != "1.26.3" || got.Flavor != lab.FlavorNginx || got.CountedBy != "stub_status" || got.Server.TLS.Protocol != "h2" || len(got.Server.Libraries) != 2 ||
		got.Server.Effective == "" || got.Server.Upstream.Effective == "" || got.Campaign != "small-20261130-171502" {
		t.Errorf("got %+v", got)
	}
}

func TestListsOfModulesAreFoldedBetweenTheirNames(t *testing.T) {
	names := strings.Repeat("ngx_http_some_filter_module ", 40)
	lines := folded(names)
	for _, line := range lines {
		if len(line) > foldAt {
			t.Errorf("a line of %d", len(line))
		}
	}
	if len(lines) < 10 || strings.Join(lines, " ") != strings.TrimSpace(names) {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	if long := strings.Repeat("x", 200); folded(long)[0] != long {
		t.Error("a long word was broken")
	}
}
