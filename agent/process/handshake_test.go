package process

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// secureServing is a substitute that speaks TLS with the files that it is given.
func secureServing(t *testing.T, modes string, want lab.TLS) lab.Serving {
	t.Helper()
	s := substituteServing(t, modes)
	s.TLS = &want
	s.Command.Env["CERT"], s.Command.Env["KEY"] = "{cert}", "{key}"
	return s
}

func TestServerProvesItselfWithTheKeptCertificate(t *testing.T) {
	r := serverRunner(t)
	var before string
	for _, c := range []struct {
		key, want, protocol string
		http2               bool
	}{{lab.KeyECDSA, "ECDSA P-256", "http/1.1", false}, {lab.KeyECDSA, "ECDSA P-256", "h2", true}, {lab.KeyRSA, "RSA 2048 bits", "h2", true}} {
		started, stop := serve(t, r, secureServing(t, "", lab.TLS{Key: c.key, HTTP2: c.http2}))
		got := started.TLS
		if got == nil || got.Version != "TLS 1.3" || got.Cipher == "" || got.Protocol != c.protocol || got.Key != c.want || len(got.CertificateSHA256) != 64 {
			t.Fatalf("%+v: %+v", c, got)
		}
		if p := started.Probes["/"]; p.Status != 200 || p.BodyBytes != 10 {
			t.Errorf("probe over TLS: %+v", p)
		}
		if again := before == got.CertificateSHA256; again != (c.key == lab.KeyECDSA && c.http2) {
			t.Errorf("%+v: the certificate of the server before is used: %v", c, again)
		}
		before = got.CertificateSHA256
		info, err := os.Stat(filepath.Join(started.Prefix, keyFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("key: %v, %v", info.Mode(), err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestCertificateIsGoodForTenYearsAndAllAddresses(t *testing.T) {
	r := runner(t)
	file, key, err := r.certificate(lab.KeyECDSA)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(pemBytes(text))
	if err != nil {
		t.Fatal(err)
	}
	if years := time.Until(c.NotAfter).Hours() / 24 / 365; years < 9.9 || years > 10.1 {
		t.Errorf("good for %g years", years)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if err := c.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n := a.(*net.IPNet); !slices.ContainsFunc(c.IPAddresses, n.IP.Equal) && !n.IP.IsLoopback() {
			t.Errorf("not for %v", n.IP)
		}
	}
	if err := os.WriteFile(key, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.certificate(lab.KeyECDSA); err != nil || !usable(file, key) {
		t.Errorf("a damaged key is not made anew: %v", err)
	}
	if _, _, err := r.certificate("dsa"); err == nil || !strings.Contains(err.Error(), `no kind of key "dsa"`) {
		t.Errorf("error: %v", err)
	}
}

func TestHTTP3ShowsInAUDPSocketAndAltSvc(t *testing.T) {
	want := lab.TLS{Key: lab.KeyECDSA, HTTP2: true, HTTP3: true}
	started, _ := serve(t, serverRunner(t), secureServing(t, "udp,alt-svc", want))
	if !started.QUIC || started.TLS.Protocol != "h2" {
		t.Errorf("QUIC %v, TLS %+v", started.QUIC, started.TLS)
	}
}

func TestProtocolsThatAreNotSpokenAreRefused(t *testing.T) {
	want := lab.TLS{Key: lab.KeyECDSA, HTTP2: true, HTTP3: true}
	own := func(s *lab.Serving) { // another certificate than the one that it was given
		dir := t.TempDir()
		cert, key, err := (&Runner{Dir: dir}).certificate(lab.KeyECDSA)
		if err != nil {
			t.Fatal(err)
		}
		s.Command.Env["CERT"], s.Command.Env["KEY"] = cert, key
	}
	taken := func(s *lab.Serving) {
		c, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(s.Port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	for _, c := range []struct {
		name, modes string
		change      func(*lab.Serving)
		want        string
	}{
		{"no HTTP/2", "http1,udp,alt-svc", nil, `does not speak HTTP/2: a client that offers it is answered "http/1.1"`},
		{"no UDP socket", "alt-svc", nil, "does not speak HTTP/3: no UDP socket"},
		{"no Alt-Svc", "udp", nil, `does not tell its clients of HTTP/3: Alt-Svc is ""`},
		{"plain HTTP", "", func(s *lab.Serving) { delete(s.Command.Env, "CERT"); s.Command.Within = lab.Seconds(0.5) }, "TLS: "},
		{"another certificate", "", own, "proves itself with another certificate"},
		{"UDP port in use", "udp,alt-svc", taken, "is in use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := secureServing(t, c.modes, want)
			if c.change != nil {
				c.change(&s)
			}
			refuses(t, serverRunner(t), s, c.want)
		})
	}
}
