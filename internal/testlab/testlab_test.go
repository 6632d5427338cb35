package testlab_test

import (
	"debug/elf"
	"net"
	"strconv"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
)

func TestNginxHasStubStatusAndEcho(t *testing.T) {
	b := testlab.Nginx(t)
	for _, flag := range []string{"http_stub_status_module", "--add-module=../echo"} {
		if !strings.Contains(b.Configured, flag) {
			t.Errorf("-V does not name %s:\n%s", flag, b.Configured)
		}
	}
	if again := testlab.Nginx(t); !again.Cached || again.ID != b.ID || again.TookS > 1 {
		t.Errorf("second use: cached %v, id %s (first %s), %.1f s; want cached, equal, at most 1 s", again.Cached, again.ID, b.ID, again.TookS)
	}
}

func TestAgentIsStaticAndBuiltOnce(t *testing.T) {
	path := testlab.Agent(t)
	if again := testlab.Agent(t); again != path {
		t.Errorf("second use: %s, first %s", again, path)
	}
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := binary.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("it needs %v, %v", libraries, err)
	}
	if err := binary.Close(); err != nil {
		t.Error(err)
	}
}

func TestFreePortsAreFree(t *testing.T) {
	port := testlab.FreePort(t)
	for _, p := range []int{port, port + 1} {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
