package server

import (
	"strconv"
	"strings"

	"ngxlab/lab"
)

// older reports whether a version such as "1.16.1" is known and below the numbers given; what it leaves out is 0.
func older(version string, than ...int) bool {
	if version == "" {
		return false
	}
	parts := strings.Split(version, ".")
	for i, n := range than {
		have := 0
		if i < len(parts) {
			var err error
			if have, err = strconv.Atoi(parts[i]); err != nil {
				return false
			}
		}
		if have != n {
			return have < n
		}
	}
	return false
}

// below is older for a version as it is written; nothing is below "".
func below(version, than string) bool { return than != "" && older(version, numbersOf(than)...) }

// numbersOf are those of a version of this package's own tables.
func numbersOf(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part) // the tables' own test holds that they are numbers
		all = append(all, n)
	}
	return all
}

// suites are the versions of nginx of Debian's stable releases, which stay what they are.
var suites = map[string]string{"buster": "1.14.2", "bullseye": "1.18.0", "bookworm": "1.22.1", "trixie": "1.26.3"}

// tengines are the versions of nginx that Tengine was made from, from each of its versions on (src/core/nginx.h of its
// releases; announcements of 2.3.0 and 3.1.0). "" is not known.
var tengines = []struct{ tengine, nginx string }{
	{"3.2.0", ""}, {"3.0.0", "1.24.0"}, {"2.3.4", ""}, {"2.3.3", "1.18.0"}, {"2.3.2", "1.17.3"}, {"2.3.1", "1.16.0"}, {"2.3.0", "1.15.9"},
	{"2.2.0", "1.8.1"}, {"2.1.0", "1.6.2"},
}

// NginxVersion is the version of nginx that a build has or was made from, as far as its recipe tells: its version, that
// of its suite, or Tengine's origin. "" is not known, and of a build that is not nginx.
func NginxVersion(r lab.Recipe) string {
	switch r.Flavor {
	case lab.FlavorTengine:
		return tengineOrigin(r.Version)
	case lab.FlavorBrpc, lab.FlavorCustom:
		return ""
	}
	switch {
	case r.Version != "":
		return r.Version
	case len(r.Package) > 0:
		return suites[r.Suite]
	case len(r.Sources) == 1 && r.Sources[0].Debian == "nginx":
		return suites[r.Sources[0].Suite]
	}
	return ""
}

func tengineOrigin(version string) string {
	for _, t := range tengines {
		if version != "" && !below(version, t.tengine) {
			return t.nginx
		}
	}
	return ""
}
