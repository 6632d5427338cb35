package agents

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAgentIsReturnedPlainOrUnpacked(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("arm")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"built/ngxlab-agent-linux-amd64":    {Data: []byte("\x7fELF")},
		"built/ngxlab-agent-linux-arm64.gz": {Data: packed.Bytes()},
		"built/ngxlab-agent-linux-riscv64":  {Data: packed.Bytes()[:12]},
	}
	for arch, want := range map[string]string{"amd64": "\x7fELF", "arm64": "arm"} {
		if got, err := from(files, arch); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", arch, got, err)
		}
	}
	if _, err := from(files, "riscv64"); err == nil {
		t.Error("a cut archive is no error")
	}
}

func TestMissingAgentNamesTheCure(t *testing.T) {
	_, err := from(fstest.MapFS{}, "amd64")
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "make build") || !strings.Contains(err.Error(), "amd64") {
		t.Errorf("error %v", err)
	}
}

func TestEmbeddedAgentsAreWholeOrMissing(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		content, err := For(arch)
		if err == nil && !bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("%s: not a program", arch)
		}
		if err != nil && !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", arch, err)
		}
		if hash, hashErr := Hash(arch); err == nil && (hashErr != nil || hash != sum(content)) {
			t.Errorf("%s: its hash is said to be %s, %v", arch, hash, hashErr)
		}
	}
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestHashIsTheOneBesideTheAgentOrThatOfTheAgent(t *testing.T) {
	said := sum([]byte("said"))
	files := fstest.MapFS{
		"built/ngxlab-agent-linux-amd64":        {Data: []byte("amd")},
		"built/ngxlab-agent-linux-amd64.sha256": {Data: []byte(said + "\n")},
		"built/ngxlab-agent-linux-arm64":        {Data: []byte("arm")},
		"built/ngxlab-agent-linux-arm64.sha256": {Data: []byte("cut off\n")},
	}
	for arch, want := range map[string]string{"amd64": said, "arm64": sum([]byte("arm"))} {
		if got, err := hashFrom(files, arch); err != nil || got != want {
			t.Errorf("%s: %q, %v", arch, got, err)
		}
	}
	if _, err := hashFrom(files, "riscv64"); !errors.Is(err, ErrMissing) {
		t.Errorf("error %v", err)
	}
}
