package process

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ngxlab/lab"
)

// site is where this server is asked, by HTTP/1.1.
func (sv *serving) site() site { return sv.siteOf("http/1.1") }

func (sv *serving) siteOf(protocol string) site {
	if sv.asked.TLS == nil {
		return site{port: sv.asked.Port}
	}
	// The certificate is compared with the very one that was put there, which is more than a chain could say.
	return site{port: sv.asked.Port, tls: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, ServerName: "localhost"}} //nolint:gosec // see above
}

// shaken connects as a client would that knows all that was asked for, and notes what was agreed on.
func (sv *serving) shaken(ctx context.Context) error {
	if sv.asked.TLS == nil {
		return nil
	}
	protocol := "http/1.1"
	if sv.asked.TLS.HTTP2 {
		protocol = "h2"
	}
	conn, err := sv.siteOf(protocol).dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // only the handshake counts
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return fmt.Errorf("port %d does not speak TLS", sv.asked.Port)
	}
	if sv.server.TLS, err = stateOf(secure.ConnectionState()); err != nil {
		return err
	}
	return sv.agreed(*sv.server.TLS)
}

// agreed holds what was agreed on against what was asked for.
func (sv *serving) agreed(got lab.TLSState) error {
	text, err := os.ReadFile(filepath.Join(sv.prefix, certificateFile))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(pemBytes(text))
	switch want := hex.EncodeToString(sum[:]); {
	case got.CertificateSHA256 != want:
		return fmt.Errorf("port %d proves itself with another certificate than the one it was given", sv.asked.Port)
	case sv.asked.TLS.HTTP2 && got.Protocol != "h2":
		return fmt.Errorf("port %d does not speak HTTP/2: a client that offers it is answered %q", sv.asked.Port, got.Protocol)
	}
	if !sv.asked.TLS.HTTP3 {
		return nil
	}
	if sv.server.QUIC, err = hearsUDP(sv.asked.Port); err == nil && !sv.server.QUIC {
		err = fmt.Errorf("port %d does not speak HTTP/3: no UDP socket is bound to it", sv.asked.Port)
	}
	return err
}

func stateOf(s tls.ConnectionState) (*lab.TLSState, error) {
	if len(s.PeerCertificates) == 0 {
		return nil, fmt.Errorf("the server shows no certificate")
	}
	c := s.PeerCertificates[0]
	sum := sha256.Sum256(c.Raw)
	return &lab.TLSState{
		Version: tls.VersionName(s.Version), Cipher: tls.CipherSuiteName(s.CipherSuite), Protocol: s.NegotiatedProtocol,
		Key: keyName(c), CertificateSHA256: hex.EncodeToString(sum[:]),
	}, nil
}

func keyName(c *x509.Certificate) string {
	switch key := c.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return fmt.Sprintf("ECDSA %s", key.Curve.Params().Name)
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d bits", key.N.BitLen())
	}
	return c.PublicKeyAlgorithm.String()
}

// hearsUDP reports whether a UDP socket is bound to a port (/proc/net/udp and udp6, proc_pid_net(5): the second field is
// the local address and port, hexadecimal).
func hearsUDP(port int) (bool, error) {
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				return true, nil
			}
		}
	}
	return false, nil
}
