// Package agents holds the agent's binaries, one per architecture. They are put into the folder built by `make build`;
// in a program that was built without them For says so.
package agents

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

//go:embed all:built
var built embed.FS

// ErrMissing is returned when this program was built without the agent asked for.
var ErrMissing = errors.New(`this program was built without its agents: run "make build"`)

// For returns the agent for linux on an architecture ("amd64", "arm64").
func For(arch string) ([]byte, error) { return from(built, arch) }

// Hash returns the SHA-256 of what For returns, in hexadecimal. It is kept beside the agent: to unpack one for its hash
// takes longer than to greet a host.
func Hash(arch string) (string, error) { return hashFrom(built, arch) }

func hashFrom(files fs.FS, arch string) (string, error) {
	if text, err := fs.ReadFile(files, nameOf(arch)+".sha256"); err == nil && len(bytes.TrimSpace(text)) == 2*sha256.Size {
		return string(bytes.TrimSpace(text)), nil
	}
	content, err := from(files, arch)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

func nameOf(arch string) string { return "built/ngxlab-agent-linux-" + arch }

// gzipMagic is how a compressed agent begins (RFC 1952, section 2.3.1).
var gzipMagic = []byte{0x1f, 0x8b}

func from(files fs.FS, arch string) ([]byte, error) {
	name := nameOf(arch)
	content, err := fs.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = fs.ReadFile(files, name+".gz")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("agent for linux on %s: %w", arch, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("agent for linux on %s: %w", arch, err)
	}
	if !bytes.HasPrefix(content, gzipMagic) {
		return content, nil
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err == nil {
		content, err = io.ReadAll(unpacked)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack the agent for linux on %s: %w", arch, err)
	}
	return content, nil
}
