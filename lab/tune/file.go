package tune

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// fileBytes is the largest content of a file knob: it goes into the journal, twice.
const fileBytes = 1 << 20

// normaliseFile writes the JSON in one way: a mode of four digits, root as 0, text as text when it is UTF-8. What
// cannot be read stays as it is.
func normaliseFile(_, value string) string {
	f, err := lab.ParseFileValue(value)
	if err != nil {
		return value
	}
	if mode, err := strconv.ParseUint(f.Mode, 8, 32); err == nil {
		f.Mode = fmt.Sprintf("%04o", mode)
	}
	f.Owner = numericRoot(f.Owner)
	if content, err := f.Bytes(); err == nil && content != nil {
		f = f.WithContent(content)
	}
	return f.String()
}

// numericRoot writes the one user and the one group that have the same number everywhere as numbers.
func numericRoot(owner string) string {
	parts := strings.Split(owner, ":")
	for i, p := range parts {
		if p == "root" {
			parts[i] = "0"
		}
	}
	return strings.Join(parts, ":")
}

func checkFile(name, value string) error {
	if err := checkFileName(name); err != nil {
		return err
	}
	f, err := lab.ParseFileValue(value)
	if err != nil {
		return err
	}
	if mode, err := strconv.ParseUint(f.Mode, 8, 32); f.Mode != "" && (err != nil || mode > 0o7777) {
		return &ValueError{Value: f.Mode, Want: "an octal mode of at most 7777"}
	}
	if user, group, ok := strings.Cut(f.Owner, ":"); f.Owner != "" && (!ok || user == "" || group == "" || strings.Contains(group, ":")) {
		return &ValueError{Value: f.Owner, Want: "an owner written as user:group"}
	}
	content, err := f.Bytes()
	if err != nil {
		return fmt.Errorf("content of %s: %w", name, err)
	}
	if len(content) > fileBytes {
		return &ValueError{Value: fmt.Sprintf("%d bytes", len(content)), Want: "a content of at most 1 MiB"}
	}
	return nil
}

func checkFileName(name string) error {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsAny(name, "\n\x00") {
		return &ValueError{Value: name, Want: "an absolute path without . and .. in it"}
	}
	for _, kernel := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(name, kernel) {
			return &ValueError{Value: name, Want: "a file that a disk holds: the kernel's own are sysctl and sysfs knobs"}
		}
	}
	return nil
}

// normaliseCommand writes the JSON in one way. What cannot be read stays as it is.
func normaliseCommand(_, value string) string {
	c, err := lab.ParseCommandValue(value)
	if err != nil {
		return value
	}
	return c.String()
}

func checkCommand(name, value string) error {
	c, err := lab.ParseCommandValue(value)
	if err != nil {
		return err
	}
	if name == "" {
		return &ValueError{Value: name, Want: "a name of a command"}
	}
	for _, part := range []struct {
		what string
		args []string
	}{{"apply", c.Apply}, {"verify", c.Verify}, {"revert", c.Revert}} {
		if len(part.args) == 0 || part.args[0] == "" {
			return &ValueError{Value: name, Want: "a command that can be taken back: " + part.what + " is missing"}
		}
	}
	if c.Timeout.Duration <= 0 {
		return &ValueError{Value: name, Want: "a command with a timeout above 0"}
	}
	return nil
}

// applied reports whether the value of a command says that it is in force.
func applied(v lab.Value) bool {
	c, err := lab.ParseCommandValue(v.Text)
	return err == nil && c.Applied
}

// defined is what a command does, whether it is applied or not.
func defined(value string) string {
	c, err := lab.ParseCommandValue(value)
	if err != nil {
		return value
	}
	c.Applied = false
	return c.String()
}
