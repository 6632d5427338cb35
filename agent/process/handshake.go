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
	"slices"
	"strings"

	"ngxlab/lab"
)

// site is where this server is asked, by HTTP/1.1.
func (sv *serving) site() site { return sv.siteOf("http/1.1") }

// siteOf is where it is asked by a client that offers protocols, the one it likes best first.
func (sv *serving) siteOf(protocols ...string) site {
	if sv.asked.TLS == nil {
		return site{port: sv.asked.Port}
	}
	// The certificate is compared with the very one that was put there, which is more than a chain could say.
	return site{port: sv.asked.Port, tls: &tls.Config{InsecureSkipVerify: true, NextProtos: protocols, ServerName: "localhost"}} //nolint:gosec // see above
}

// shaken connects as a client would that knows all that was asked for, and notes what was agreed on.
func (sv *serving) shaken(ctx context.Context) error {
	if sv.asked.TLS == nil {
		return nil
	}
	protocols := []string{"http/1.1"}
	if sv.asked.TLS.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	conn, err := sv.siteOf(protocols...).dial(ctx)
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
	return nil
}

// quick finds out whether the server speaks HTTP/3, as far as it shows without a client for it: it has a UDP socket on the
// port, and tells its clients so (RFC 7838).
func (sv *serving) quick(ctx context.Context) error {
	if sv.asked.TLS == nil || !sv.asked.TLS.HTTP3 {
		return nil
	}
	sockets, err := udpSockets(sv.asked.Port)
	if err != nil {
		return err
	}
	all, err := processes()
	if err != nil {
		return err
	}
	held := heldBy(append(all.below(sv.pid), sv.pid))
	if sv.server.QUIC = slices.ContainsFunc(sockets, func(inode string) bool { return held[inode] }); !sv.server.QUIC {
		return fmt.Errorf("port %d does not speak HTTP/3: no UDP socket of the server is bound to it", sv.asked.Port)
	}
	_, header, err := ask(ctx, sv.site(), sv.asked.URLs[0])
	if err != nil {
		return err
	}
	if told := header.Get("Alt-Svc"); !strings.Contains(told, "h3=") {
		return fmt.Errorf("port %d does not tell its clients of HTTP/3: Alt-Svc is %q", sv.asked.Port, told)
	}
	return nil
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

// udpSockets are the inodes of the UDP sockets that are bound to a port (/proc/net/udp and udp6, proc_pid_net(5): the
// second field is the local address and port, hexadecimal, the tenth the inode).
func udpSockets(port int) ([]string, error) {
	var inodes []string
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				inodes = append(inodes, f[9])
			}
		}
	}
	return inodes, nil
}

// heldBy are the inodes of the sockets that processes have open, as far as they can be seen.
func heldBy(pids []int) map[string]bool {
	held := map[string]bool{}
	for _, pid := range pids {
		dir := procPath(pid, "fd")
		entries, _ := os.ReadDir(dir) // nil: gone, or another user's
		for _, e := range entries {
			target, _ := os.Readlink(filepath.Join(dir, e.Name()))
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				held[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return held
}
