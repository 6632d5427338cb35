package process

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"ngxlab/lab"
)

const (
	rsaBits         = 2048
	certificateLife = 10 * 365 * 24 * time.Hour
)

// putCertificate puts the certificate that is kept for the kind of key into the server's directory; its key may be read
// by the agent's user alone.
func (sv *serving) putCertificate() error {
	if sv.asked.TLS == nil {
		return nil
	}
	cert, key, err := sv.r.certificate(sv.asked.TLS.Key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(sv.prefix, filepath.Dir(certificateFile)), 0o755); err != nil {
		return err
	}
	return errors.Join(copyFile(cert, filepath.Join(sv.prefix, certificateFile), 0o644), copyFile(key, filepath.Join(sv.prefix, keyFile), 0o600))
}

// certificate returns the files of the certificate for a kind of key, which are made once and kept, so that every server
// of this host proves itself with the same.
func (r *Runner) certificate(kind string) (cert, key string, err error) {
	dir := filepath.Join(r.Dir, "certs")
	cert, key = filepath.Join(dir, kind+".pem"), filepath.Join(dir, kind+".key")
	if usable(cert, key) {
		return cert, key, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	signer, err := newKey(kind)
	if err != nil {
		return "", "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return "", "", err
	}
	der, err := selfSigned(signer)
	if err != nil {
		return "", "", err
	}
	// The key first: a certificate without its key is made anew.
	return cert, key, errors.Join(writePEM(key, "PRIVATE KEY", private, 0o600), writePEM(cert, "CERTIFICATE", der, 0o644))
}

// usable reports whether a certificate and its key are there, belong together and are good for a month more.
func usable(cert, key string) bool {
	certText, err := os.ReadFile(cert)
	keyText, bad := os.ReadFile(key)
	if errors.Join(err, bad) != nil {
		return false
	}
	c, k := pemBytes(certText), pemBytes(keyText)
	parsed, err := x509.ParseCertificate(c)
	if err != nil || time.Until(parsed.NotAfter) < 30*24*time.Hour {
		return false
	}
	private, err := x509.ParsePKCS8PrivateKey(k)
	signer, ok := private.(crypto.Signer)
	if err != nil || !ok {
		return false
	}
	public, ok := parsed.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(signer.Public())
}

func pemBytes(text []byte) []byte {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	return block.Bytes
}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case lab.KeyECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case lab.KeyRSA:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return nil, fmt.Errorf("there is no kind of key %q; known are %s and %s", kind, lab.KeyECDSA, lab.KeyRSA)
}

// selfSigned is a certificate for this host under all its addresses.
func selfSigned(signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "ngxlab"}, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(lab.Loopback), net.IPv6loopback},
		BasicConstraintsValid: true,
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		c.DNSNames = append(c.DNSNames, name)
	}
	if addresses, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addresses {
			if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() {
				c.IPAddresses = append(c.IPAddresses, network.IP)
			}
		}
	}
	return x509.CreateCertificate(rand.Reader, &c, &c, signer.Public(), signer)
}

// writePEM writes a file whole or not at all.
func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	err = errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
