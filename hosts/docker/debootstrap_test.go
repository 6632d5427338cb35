package docker

import (
	"reflect"
	"strings"
	"testing"
)

// In the form that apt 2.6.1 prints: of a Debian 12 with a third party's archive, and of an Ubuntu 24.04.
const (
	debianTargets = `http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm contrib
http://mirror.example/debian/ bookworm-updates main
http://security.example/debian-security/ bookworm-security main
https://other.example/linux/ stable main
http://mirror.example/debian/ bookworm main
`
	ubuntuTargets = `http://archive.example/ubuntu/ noble-updates main
http://archive.example/ubuntu/ noble main
http://archive.example/ubuntu/ noble universe
`
)

func TestSourcesOfThisMachineAreThoseOfItsRelease(t *testing.T) {
	t.Parallel()
	d, err := parseDistribution(strings.NewReader(debianTargets), []byte("ID=debian\nVERSION_CODENAME=bookworm\n"))
	want := distribution{suite: "bookworm", mirror: "http://mirror.example/debian/", entries: []source{
		{"http://mirror.example/debian/", "bookworm", []string{"main", "contrib"}}, {"http://mirror.example/debian/", "bookworm-updates", []string{"main"}},
		{"http://security.example/debian-security/", "bookworm-security", []string{"main"}},
	}}
	if err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, %v; want %+v", d, err, want)
	}
	if list := string(d.list()); !strings.HasPrefix(list, "deb http://mirror.example/debian/ bookworm main contrib\n") || strings.Count(list, "\n") != 3 {
		t.Errorf("as a list of sources:\n%s", list)
	}
	d, err = parseDistribution(strings.NewReader(ubuntuTargets), []byte("VERSION_CODENAME=\"noble\"\n"))
	if err != nil || d.suite != "noble" || d.mirror != "http://archive.example/ubuntu/" || d.components() != "main,universe" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := parseDistribution(strings.NewReader(""), []byte("ID=alpine\n")); err == nil {
		t.Error("a release without a code name has sources")
	}
}
