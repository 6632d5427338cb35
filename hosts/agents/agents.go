// Package agents holds the agent's binaries, one per architecture. They are put into the folder built by `make build`;
// in a program that was built without them For says so.
package agents

import (
	"bytes"
	"compress/gzip"
	"embed"
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

// gzipMagic is how a compressed agent begins (RFC 1952, section 2.3.1).
var gzipMagic = []byte{0x1f, 0x8b}

func from(files fs.FS, arch string) ([]byte, error) {
	name := "built/ngxlab-agent-linux-" + arch
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
