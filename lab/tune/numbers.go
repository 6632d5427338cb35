package tune

import (
	"regexp"
	"strconv"
	"strings"
)

// otherwise is a number that the kernel reads to another base than ten (lib/kstrtox.c, simple_strtoul with base 0), and
// writes back in decimals.
var otherwise = regexp.MustCompile(`^-?0([0-9]+|[xX][0-9a-fA-F]+)$`)

// notNumbers are sysctls whose value is no number.
var notNumbers = []string{"net.ipv4.tcp_fastopen_key", "kernel.core_pattern", "kernel.modprobe"}

// checkDecimal refuses octal and hexadecimal numbers, which would read back as others.
func checkDecimal(name, value string) error {
	for _, text := range notNumbers {
		if name == text {
			return nil
		}
	}
	for _, word := range strings.Fields(value) {
		if otherwise.MatchString(word) {
			return &ValueError{Value: value, Want: "written in decimal digits: the kernel reads a leading 0 as octal and 0x as hexadecimal"}
		}
	}
	return nil
}

const maxPort = 65535

// checkPorts holds that a value is ports and ranges of ports, with commas or blanks between; none at all is a value too.
func checkPorts(value string) error {
	split := func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }
	for _, part := range strings.FieldsFunc(value, split) {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		if err != nil || err2 != nil || first > last || last > maxPort {
			return &ValueError{Value: value, Want: "ports and ranges such as 8080,9000-9010"}
		}
	}
	return nil
}
