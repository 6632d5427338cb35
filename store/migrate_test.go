package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ngxlab/lab"
)

// schema1 is the path of a database as the program before schema 2 left it.
func schema1(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab.db")
	dump, err := os.ReadFile("testdata/schema1.sql")
	must(t, err)
	db, err := sql.Open("sqlite3", path)
	must(t, err)
	_, err = db.Exec(string(dump) + fmt.Sprintf("; PRAGMA user_version = 1; PRAGMA application_id = %d", applicationID))
	must(t, errors.Join(err, db.Close()))
	return path
}

func TestRunsOfTheSchemaBeforeReadAsTheyWere(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, schema1(t))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	commit(t, s, "c", run("default", 2))
	res, err := s.Results(ctx, "c", Options{Samples: true, Raw: true})
	must(t, err)
	want := []lab.Run{run("default", 1), run("log off", 1), run("default", 2)}
	for i := range want {
		want[i].ID = int64(i + 1)
	}
	if !reflect.DeepEqual(res.Runs, want) {
		t.Errorf("got  %+v\nwant %+v", res.Runs, want)
	}
	if broken, err := s.Check(ctx, "c"); err != nil || len(broken) != 1 || !strings.Contains(broken[0], "experiment's text") { // whose hash is a stand-in
		t.Errorf("broken: %q, %v", broken, err)
	}
}

func TestReadingBringsAnOlderSchemaUpToDate(t *testing.T) {
	path := schema1(t)
	for range 2 {
		s, err := OpenReadOnly(context.Background(), path)
		must(t, err)
		res, err := s.Results(context.Background(), "c", Options{})
		if err != nil || len(res.Runs) != 2 {
			t.Errorf("%d runs, %v", len(res.Runs), err)
		}
		must(t, s.Close())
	}
}

// served is a run of a server with all that is read back of it.
func served(state string, round int) lab.Run {
	r := run(state, round)
	r.Server = lab.Server{
		Serving: state, Master: 10 * round, Workers: []int{10*round + 1}, Effective: strings.Repeat("# nginx.conf of "+state+"\n", 250), EffectiveSHA: "e",
		Build: "nginx-1.26.3-77", Modules: []string{"ngx_http_ssl_module"}, Libraries: []lab.Library{{Name: "libssl.so.3", Path: "/usr/lib/libssl.so.3", Version: "3.0.15"}},
		User: "www-data", QUIC: true, TLS: &lab.TLSState{Version: "TLS 1.3", Cipher: "TLS_AES_128_GCM_SHA256", Protocol: "h2", Key: "ecdsa", CertificateSHA256: "cc"},
		Upstream: &lab.Server{Serving: state, Build: "nginx-1.22.1-3f", Effective: "upstream's nginx.conf"},
	}
	return r
}

func TestServerComesBackWithEverythingReadFromIt(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	want := served("default", 1)
	commit(t, s, "c", want)
	got, err := s.Run(context.Background(), 1)
	must(t, err)
	if !reflect.DeepEqual(got.Server, want.Server) {
		t.Errorf("got  %+v\nwant %+v", got.Server, want.Server)
	}
	if want.Server.Upstream.Effective == "" {
		t.Error("the run that was committed has lost its upstream's configuration")
	}
}

func TestEqualConfigurationsAreKeptOnce(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	for round := range 20 {
		for _, state := range []string{"default", "log off"} {
			commit(t, s, "c", served(state, round+1))
		}
	}
	var servers, texts int
	must(t, s.read.QueryRow("SELECT (SELECT count(*) FROM servers), (SELECT count(*) FROM configurations)").Scan(&servers, &texts))
	if servers != 40 || texts != 3 {
		t.Errorf("%d servers, %d configurations; want 40 and 3", servers, texts)
	}
}

// TestBuildsAndServersCanBeAskedForInSQL: with sqlite3 and the views, as docs/builds.md shows.
func TestBuildsAndServersCanBeAskedForInSQL(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	build := lab.Build{ID: "nginx-1.26.3-77", Recipe: "new", Version: "1.26.3", Compiler: "gcc 12.2.0", Configured: "--with-http_ssl_module", MadeBy: "nobody", From: "web1",
		Sources: map[string]string{"nginx_1.26.3.orig.tar.gz": "69ee"}, Modules: []string{"ngx_core_module", "ngx_http_ssl_module"},
		Libraries: []lab.Library{{Name: "libc.so.6"}, {Name: "libssl.so.3", Version: "3.0.15"}}, Notes: []string{"-Wno-error"}}
	must(t, s.Commit(context.Background(), "c", lab.Record{Build: &build}))
	commit(t, s, "c", served("default", 1))
	for query, want := range map[string]string{
		"SELECT version || ', ' || compiler || ', ' || user || ', ' || tls || ', ' || length(config) || ', ' || length(config_sha256) FROM served": "1.26.3, gcc 12.2.0, www-data, TLS 1.3, TLS_AES_128_GCM_SHA256, h2, 6000, 64",
		"SELECT made_by || ' ' || copied_from || ' ' || configured || ' ' || notes FROM provenance":                                                "nobody web1 --with-http_ssl_module -Wno-error",
		"SELECT libraries FROM provenance":      "libc.so.6\nlibssl.so.3 3.0.15",
		"SELECT modules FROM provenance":        "ngx_core_module ngx_http_ssl_module",
		"SELECT sources_sha256 FROM provenance": "nginx_1.26.3.orig.tar.gz 69ee",
	} {
		var got string
		if err := s.read.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s\n got %q, %v\nwant %q", query, got, err, want)
		}
	}
}
