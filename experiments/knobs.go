package experiments

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// Patterns of what knobs of a host are called. An interface's name has at most 15 bytes and no slash (linux/if.h,
// IFNAMSIZ); a unit's is as systemd.unit(5) has it.
const (
	sysctlPattern  = `^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+$`
	sysfsPattern   = `^/(sys|proc)/[^\s]+$`
	ethtoolPattern = `^[^\s/]{1,15}\.(rings|channels|coalesce|features)\.[A-Za-z0-9-]+$`
	filePattern    = `^/[^\n]+$`
	servicePattern = `^[A-Za-z0-9:_.\\@-]+$`
	unitPattern    = `^[A-Za-z0-9:_.\\@-]+\.service\.(LimitNOFILE|LimitNPROC)$`
	modePattern    = `^[0-7]{3,4}$`
	ownerPattern   = `^[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*$`
)

// sections are the keys of a step whose knobs have a kind of another name.
var sections = map[string]string{"files": lab.KnobFile, "services": lab.KnobService, "units": lab.KnobUnit, "commands": lab.KnobCommand}

// knobs is a key of a step whose values are knobs of a host.
func knobs(name, doc string, v value[[]lab.Setting]) key[lab.Step] {
	return key[lab.Step]{name: name, doc: doc, schema: v.schema, read: func(d *decoding, path string, n ast.Node, s *lab.Step) {
		all, ok := v.read(d, path, n)
		if !ok {
			return
		}
		s.Knobs = append(s.Knobs, all...)
		slices.SortFunc(s.Knobs, func(a, b lab.Setting) int {
			return cmp.Or(cmp.Compare(a.Knob.Kind, b.Knob.Kind), cmp.Compare(a.Knob.Name, b.Knob.Name))
		})
	}}
}

// settings is a mapping of the names of knobs of one kind to their values.
func settings(kind string, of names, v value[string]) value[[]lab.Setting] {
	return anyKeys(of, v, noSettings, setting(kind))
}

func noSettings() []lab.Setting { return nil }

func setting(kind string) func(all []lab.Setting, name, value string) []lab.Setting {
	return func(all []lab.Setting, name, value string) []lab.Setting {
		return append(all, lab.Setting{Knob: lab.KnobID{Kind: kind, Name: name}, Value: value})
	}
}

// sysctls are kept by their dotted names.
var sysctls = anyKeys(names{what: "the name of a sysctl", pattern: sysctlPattern}, words, func() map[string]string { return map[string]string{} },
	func(m map[string]string, name, value string) map[string]string {
		m[dotted(name)] = value
		return m
	})

// dotted is the one name of a sysctl, which may be written with slashes; as in sysctl(8) the first separator says which
// is meant, and the other one stands for a dot in the name of an interface.
func dotted(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

// words is one value, or several of a knob that has several, which are joined by spaces.
var words = value[string]{schema{"type": []string{"string", "number", "array"}}, func(d *decoding, path string, n ast.Node) (string, bool) {
	all, ok := list(text).read(d, path, n)
	return strings.Join(all, " "), ok
}}

var sysfs = settings(lab.KnobSysfs, names{what: "a file of the kernel", pattern: sysfsPattern, refuse: refuseSysfs}, words)

func refuseSysfs(name string) (message, hint string) {
	below, is := strings.CutPrefix(name, "/proc/sys/")
	switch {
	case is && strings.ContainsAny(below, "*?["):
		return fmt.Sprintf("%s are sysctls", name), "write each of them under sysctl, by its name"
	case is:
		return fmt.Sprintf("%s is a sysctl", name), "write it under sysctl: " + dotted(below)
	case strings.HasPrefix(name, "/") && path.Clean(name) != name:
		return fmt.Sprintf("%q is not the plain path of a file", name), "write " + path.Clean(name)
	case !strings.HasPrefix(name, "/sys/") && !strings.HasPrefix(name, "/proc/"):
		return fmt.Sprintf("%q is not a file of the kernel: those are below /sys and /proc", name), "write other files under files"
	}
	return "", ""
}

var ethtool = settings(lab.KnobEthtool, names{
	what: "a setting of a network interface", pattern: ethtoolPattern,
	like: "it is INTERFACE.GROUP.NAME, and GROUP is rings, channels, coalesce or features: eth0.rings.rx",
}, switched)

// switched is a text or number; true and false are on and off.
var switched = value[string]{schema{"type": []string{"string", "number", "boolean"}}, func(d *decoding, path string, n ast.Node) (string, bool) {
	if b, ok := n.(*ast.BoolNode); ok {
		return map[bool]string{true: "on", false: "off"}[b.Value], true
	}
	return text.read(d, path, n)
}}

var services = settings(lab.KnobService, names{what: "the name of a service", pattern: servicePattern, refuse: refuseService}, oneOf("started", "stopped"))

// refuseService holds that a service has one name; sockets, timers and paths are started and stopped alike.
func refuseService(name string) (message, hint string) {
	switch whole, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name); ext {
	case ".service":
		return fmt.Sprintf("%q has a suffix too many", name), "write " + whole
	case ".target", ".mount", ".automount", ".slice", ".scope", ".swap", ".device":
		return fmt.Sprintf("%q is not a service", name), "units of that kind can be started and stopped under commands"
	}
	return "", ""
}

var units = settings(lab.KnobUnit, names{
	what: "a limit of a unit", pattern: unitPattern,
	like: "it is SERVICE.service.LimitNOFILE or SERVICE.service.LimitNPROC",
}, text)

// files are texts, or content with mode and owner; a file that shall not be there is null.
var files = keysAndNulls(names{what: "a file", pattern: filePattern, refuse: refuseFile}, fileValue, noSettings, setting(lab.KnobFile),
	func(all []lab.Setting, name string) []lab.Setting {
		return append(all, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobFile, Name: name}, Absent: true})
	})

func refuseFile(name string) (message, hint string) {
	switch {
	case !strings.HasPrefix(name, "/"):
		return fmt.Sprintf("%q is not an absolute path", name), "it begins with /"
	case path.Clean(name) != name || name == "/":
		return fmt.Sprintf("%q is not the plain path of a file", name), "write " + path.Clean(name)
	case strings.HasPrefix(name, "/sys/"), strings.HasPrefix(name, "/proc/"), strings.HasPrefix(name, "/dev/"):
		return fmt.Sprintf("%s is a file of the kernel", name), "write it under sysfs, or under sysctl when it is below /proc/sys"
	}
	return "", ""
}

var fileValue = value[string]{schema{"anyOf": []schema{content.schema, fileParts.schema}}, func(d *decoding, path string, n ast.Node) (string, bool) {
	if n.Type() != ast.MappingType {
		text, ok := content.read(d, path, n)
		return lab.FileValue{}.WithContent([]byte(text)).String(), ok
	}
	f, ok := fileParts.read(d, path, n)
	if ok && f == (lab.FileValue{}) {
		d.wrong(n, "content, mode or owner", "null says that there shall be no such file")
		return "", false
	}
	return f.String(), ok
}}

var fileParts = object(func() lab.FileValue { return lab.FileValue{} },
	key[lab.FileValue]{name: "content", doc: "of the file, default as it is", schema: content.schema, read: func(d *decoding, path string, n ast.Node, f *lab.FileValue) {
		if text, ok := content.read(d, path, n); ok {
			*f = f.WithContent([]byte(text))
		}
	}},
	key[lab.FileValue]{name: "mode", doc: "octal, default as it is, or 0644 of a new file", schema: fileMode.schema, read: func(d *decoding, path string, n ast.Node, f *lab.FileValue) {
		if mode, ok := fileMode.read(d, path, n); ok {
			f.Mode = strings.Repeat("0", 4-len(mode)) + mode
		}
	}},
	has("owner", "user:group, default as it is, or the agent's own", matching("user:group, such as root:root", ownerPattern), func(f *lab.FileValue) *string { return &f.Owner }),
)

var fileMode = matching(`a mode in octal, such as "0644"`, modePattern)

// content is a text to the byte, which may be empty.
var content = value[string]{schema{"type": []string{"string", "number"}}, func(d *decoding, path string, n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	}
	return text.read(d, path, n)
}}

// How long the commands of one knob may take, each of them.
const (
	commandTimeout    = time.Minute
	maxCommandTimeout = 10 * time.Minute
)

var commands = settings(lab.KnobCommand, names{what: "the name of a command", pattern: stepPattern}, commandValue)

var commandParts = object(func() lab.CommandValue {
	return lab.CommandValue{Timeout: lab.Duration{Duration: commandTimeout}, Applied: true}
},
	has("apply", "puts it in force: a line of the shell, or a list of arguments", command, func(c *lab.CommandValue) *[]string { return &c.Apply }),
	has("verify", "ends with 0 when it is in force, with 1 when it is not", command, func(c *lab.CommandValue) *[]string { return &c.Verify }),
	has("revert", "takes it back", command, func(c *lab.CommandValue) *[]string { return &c.Revert }),
	has("timeout", "how long each of them may take, default 60s, at most 10m", duration, func(c *lab.CommandValue) *lab.Duration { return &c.Timeout }),
)

// commandValue holds that all three commands are there: without them the lab could not keep its promise.
var commandValue = value[string]{required(commandParts.schema, "apply", "verify", "revert"), func(d *decoding, path string, n ast.Node) (string, bool) {
	c, ok := commandParts.read(d, path, n)
	if !ok {
		return "", false
	}
	missing := slices.DeleteFunc([]string{"apply", "verify", "revert"}, func(key string) bool { return d.given(path + "." + key) })
	switch {
	case len(missing) > 0:
		d.add(position(n), "a command needs apply, verify and revert, and lacks "+strings.Join(missing, " and "),
			"what cannot be verified may not have taken effect, and what has no revert cannot be put back")
	case c.Timeout.Duration <= 0 || c.Timeout.Duration > maxCommandTimeout:
		d.problem(path+".timeout", "", "a command may take from 1ms to %v, not %s", maxCommandTimeout, c.Timeout)
	}
	return c.String(), len(missing) == 0
}}

func required(s schema, keys ...string) schema {
	with := schema{"required": keys}
	for name, v := range s {
		with[name] = v
	}
	return with
}

// command is an argument list; a text is a line for the shell.
var command = value[[]string]{schema{"anyOf": []schema{text.schema, listOnly(text).schema}}, func(d *decoding, path string, n ast.Node) ([]string, bool) {
	if n.Type() == ast.SequenceType {
		return listOnly(text).read(d, path, n)
	}
	line, ok := text.read(d, path, n)
	return []string{"/bin/sh", "-c", line}, ok
}}
