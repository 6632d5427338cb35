package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/build"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// modern has TLS with all versions of HTTP, and a dynamic module; the end-to-end tests share its binary.
func modern() lab.Recipe {
	return server.Recipe(lab.Recipe{
		Name: "modern", Flavor: lab.FlavorNginx, Version: "1.26.3", Sources: []lab.BuildSource{{Debian: "nginx", Suite: "trixie"}},
		Modules: []string{"stub_status", "ssl", "v2", "v3", "echo"}, Dynamic: []string{"echo"},
	})
}

func made(t *testing.T, r lab.Recipe) lab.Build {
	t.Helper()
	testlab.Require(t, "cc", "make")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	b, err := build.Cache{Dir: testlab.CacheDir(t)}.Build(ctx, r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sited(t *testing.T, r lab.Recipe, spec lab.ServerSpec, nginx map[string]string) server.Input {
	t.Helper()
	spec.Port, spec.Nginx = testlab.FreePort(t), nginx
	return server.Input{Spec: spec, State: lab.State{Name: "baseline"}, Target: lab.Host{Name: "here", Local: true}, Recipe: r}
}

// mustTake asks nginx itself, and returns what it says beside that the configuration is well.
func mustTake(t *testing.T, b lab.Build, in server.Input) string {
	t.Helper()
	s, err := server.Serving(in)
	if err != nil {
		t.Fatal(err)
	}
	prefix := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(prefix, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.NewReplacer("{prefix}", prefix, "{build}", b.Dir).Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("nginx.conf", s.Config)
	put("logs/error.log", "")
	for name, text := range s.Files {
		put(name, text)
	}
	certificate, key := certified(t)
	put("tls/cert.pem", certificate)
	put("tls/key.pem", key)
	out, err := exec.CommandContext(t.Context(), b.Binary, "-t", "-p", prefix+"/", "-c", filepath.Join(prefix, "nginx.conf")).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s in\n%s", err, out, s.Config)
	}
	return string(out)
}

func certified(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, &of, &of, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", signed), text("PRIVATE KEY", bytes)
}

// behind is an upstream of a site.
func behind(t *testing.T, site string) *lab.Serving {
	t.Helper()
	up, err := server.Serving(sited(t, testlab.Recipe(), lab.ServerSpec{Site: site}, nil))
	if err != nil {
		t.Fatal(err)
	}
	return &up
}

func TestNginxTakesEverySite(t *testing.T) {
	b := testlab.Nginx(t)
	for _, site := range []string{"empty-gif", "hello", "echo", "sleep", "file"} {
		mustTake(t, b, sited(t, testlab.Recipe(), lab.ServerSpec{Site: site, SleepS: 0.5, User: "nobody"}, nil))
	}
	for _, keep := range []int{0, 32} {
		in := sited(t, testlab.Recipe(), lab.ServerSpec{Site: "proxy", Upstream: &lab.Upstream{Host: "back", KeepAlive: keep}}, map[string]string{"proxy_buffering": "off", "proxy_buffers": "16 16k"})
		in.Upstream, in.Via = behind(t, "hello"), "10.0.0.7"
		mustTake(t, b, in)
	}
	in := sited(t, testlab.Recipe(), lab.ServerSpec{Site: "template", Template: map[string]string{
		"nginx.conf": "worker_processes 1; daemon on;\nevents {}\nhttp {\n  include mime.types;\n  include {prefix}/conf.d/*.conf;\n}\n",
		"mime.types": "types { text/html html; }\n", "conf.d/a.conf": "server { listen 127.0.0.1:{port}; set ${x} \"{\"; location / { return 200 a; } }\n",
	}}, map[string]string{"location.keepalive_timeout": "5", "worker_connections": "2048", "listen.backlog": "64", "tcp_nopush": "on"})
	in.Spec.Template["conf.d/a.conf"] = strings.Replace(in.Spec.Template["conf.d/a.conf"], "set ${x} \"{\";", "set $x \"${host}{\";", 1)
	mustTake(t, b, in)
}

func TestNginxTakesTLSAndItsVersionsOfHTTPAndDynamicModules(t *testing.T) {
	r := modern()
	b := made(t, r)
	all := &lab.TLS{Key: lab.KeyECDSA, HTTP2: true, HTTP3: true}
	in := sited(t, r, lab.ServerSpec{Site: "echo", TLS: all}, map[string]string{"listen.backlog": "64", "listen.reuseport": "on", "listen.deferred": "on"})
	if out := mustTake(t, b, in); strings.Contains(out, "warn") {
		t.Errorf("nginx warns: %s", out)
	}
	r.Version = "" // then the parameter of listen, which this version still takes
	in = sited(t, r, lab.ServerSpec{Site: "hello", TLS: all}, nil)
	if out := mustTake(t, b, in); !strings.Contains(out, "http2") {
		t.Errorf("nginx does not say that the parameter is deprecated: %s", out)
	}
	in = sited(t, modern(), lab.ServerSpec{Site: "template", TLS: all, Template: map[string]string{
		"nginx.conf": "events {}\nhttp { server { listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key \"{key}\"; location / { echo a; } } }\n",
	}}, nil)
	mustTake(t, b, in)
}
