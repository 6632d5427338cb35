package build

import "strings"

// compareVersions orders Debian versions, negative when a is older than b: deb-version(7).
func compareVersions(a, b string) int {
	aEpoch, aRest := epoch(a)
	bEpoch, bRest := epoch(b)
	if c := compareParts(aEpoch, bEpoch); c != 0 {
		return c
	}
	aUp, aRev := revision(aRest)
	bUp, bRev := revision(bRest)
	if c := compareParts(aUp, bUp); c != 0 {
		return c
	}
	return compareParts(aRev, bRev)
}

func epoch(v string) (epoch, rest string) {
	if before, after, ok := strings.Cut(v, ":"); ok {
		return before, after
	}
	return "0", v
}

func revision(v string) (upstream, revision string) {
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return v[:i], v[i+1:]
	}
	return v, "0"
}

// compareParts compares runs of non-digits and of digits in turn.
func compareParts(a, b string) int {
	for a != "" || b != "" {
		var aRun, bRun string
		aRun, a = run(a, false)
		bRun, b = run(b, false)
		if c := compareText(aRun, bRun); c != 0 {
			return c
		}
		aRun, a = run(a, true)
		bRun, b = run(b, true)
		if c := compareDigits(aRun, bRun); c != 0 {
			return c
		}
	}
	return 0
}

// run splits the leading run of digits, or of anything else, from the rest.
func run(s string, digits bool) (run, rest string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9') == digits {
		i++
	}
	return s[:i], s[i:]
}

// compareText: a tilde is before the end, the end before letters, letters before everything else.
func compareText(a, b string) int {
	for i := 0; i < len(a) || i < len(b); i++ {
		if c := weight(a, i) - weight(b, i); c != 0 {
			return c
		}
	}
	return 0
}

func weight(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z':
		return int(s[i])
	}
	return int(s[i]) + 256
}

func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
