package ssh

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/melbahja/goph"
)

// target is a destination with all that the configuration adds.
type target struct {
	written string // the host as the person wrote it
	address string // after HostName
	port    int
	user    string
	aliases []string // host:port under which its keys may be known, the best first
	files   []string // of keys, in order
	named   bool     // somebody named these files
	only    bool     // no other key of the agent is tried
	agent   string   // socket of the ssh-agent; "" = none
	jumps   []string
	known   []string // known_hosts files, the user's own first
	hashed  bool     // names in known_hosts are hashed
	timeout time.Duration
	home    string
}

const (
	defaultPort    = 22
	defaultTimeout = 10 * time.Second
)

// resolve reads the configuration for a destination.
func resolve(d Destination, o Options) (*target, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	values, err := configured(d, o, home)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of ssh: %w", err)
	}
	t := &target{written: d.Address, address: d.Address, home: home, user: values.first("user")}
	for _, set := range []func(settings, Destination, Options) error{
		t.setAddress, t.setKeys, t.setJumps, t.setKnown, t.setTimeout,
	} {
		if err := set(values, d, o); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// configured are the values for a destination; what it says itself wins.
func configured(d Destination, o Options, home string) (settings, error) {
	c := configuration{alias: d.Address, home: home, values: settings{}, fixed: settings{}}
	fix := func(keyword, value string) {
		if value != "" {
			c.fixed[keyword] = []string{value}
		}
	}
	fix("user", d.User)
	fix("identityfile", d.Key)
	fix("proxyjump", d.Jump)
	fix("proxycommand", d.Jump)
	if d.Port != 0 {
		fix("port", strconv.Itoa(d.Port))
	}
	files := o.Config
	if files == nil {
		files = []string{filepath.Join(home, ".ssh", "config"), "/etc/ssh/ssh_config"}
	}
	for _, path := range files {
		if err := c.file(path, "", 0); err != nil && (o.Config != nil || !errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
	}
	for keyword, value := range c.fixed {
		c.values[keyword] = value
	}
	return c.values, nil
}

func (t *target) setAddress(values settings, _ Destination, _ Options) (err error) {
	if name := values.first("hostname"); name != "" {
		if t.address, err = t.expand(name); err != nil {
			return fmt.Errorf("HostName %s: %w", name, err)
		}
	}
	t.port = defaultPort
	if port := values.first("port"); port != "" {
		if t.port, err = parsePort(port); err != nil {
			return fmt.Errorf("port: %w", err)
		}
	}
	if t.user == "" {
		me, err := user.Current()
		if err != nil {
			return err
		}
		t.user = me.Username
	}
	bare := strings.ToLower(t.address)
	t.aliases = []string{net.JoinHostPort(bare, strconv.Itoa(t.port))}
	if t.port != defaultPort {
		t.aliases = append(t.aliases, net.JoinHostPort(bare, strconv.Itoa(defaultPort))) // as OpenSSH, which asks there too
	}
	if alias := values.first("hostkeyalias"); alias != "" {
		t.aliases = []string{net.JoinHostPort(strings.ToLower(alias), strconv.Itoa(defaultPort))}
	}
	return nil
}

// setKeys finds the files of keys and the agent.
func (t *target) setKeys(values settings, d Destination, _ Options) error {
	t.only = d.Key != "" || strings.EqualFold(values.first("identitiesonly"), "yes")
	for _, file := range values["identityfile"] {
		if file == "none" {
			continue
		}
		path, err := t.expand(file)
		if err != nil {
			return fmt.Errorf("IdentityFile %s: %w", file, err)
		}
		t.files = append(t.files, path)
	}
	if t.named = len(values["identityfile"]) > 0; !t.named {
		for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
			t.files = append(t.files, filepath.Join(t.home, ".ssh", "id_"+kind))
		}
	}
	t.agent = os.Getenv("SSH_AUTH_SOCK")
	switch socket := values.first("identityagent"); {
	case socket == "none":
		t.agent = ""
	case strings.HasPrefix(socket, "$") && !strings.HasPrefix(socket, "${"):
		t.agent = os.Getenv(socket[1:])
	case socket != "" && socket != "SSH_AUTH_SOCK":
		path, err := t.expand(socket)
		if err != nil {
			return fmt.Errorf("IdentityAgent %s: %w", socket, err)
		}
		t.agent = path
	}
	return nil
}

func (t *target) setJumps(values settings, _ Destination, _ Options) error {
	jump := values.first("proxyjump")
	if command := values.first("proxycommand"); jump == "" && command != "" && command != "none" {
		return fmt.Errorf("ProxyCommand %q is not supported: use ProxyJump, or jump in the experiment's file", command)
	}
	if jump == "" || strings.EqualFold(jump, "none") {
		return nil
	}
	for one := range strings.SplitSeq(jump, ",") {
		if _, err := Parse(one); err != nil {
			return fmt.Errorf("ProxyJump %s: %w", jump, err)
		}
		t.jumps = append(t.jumps, strings.TrimSpace(one))
	}
	return nil
}

func (t *target) setKnown(values settings, _ Destination, o Options) error {
	t.hashed = strings.EqualFold(values.first("hashknownhosts"), "yes")
	if o.KnownHosts != nil {
		t.known = o.KnownHosts
		return nil
	}
	path, err := goph.DefaultKnownHostsPath()
	if err != nil {
		return err
	}
	own := []string{path, path + "2"}
	if set := values.first("userknownhostsfile"); set != "" {
		own = fields(set)
	}
	global := []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	if set := values.first("globalknownhostsfile"); set != "" {
		global = fields(set)
	}
	for _, file := range append(own, global...) {
		if file == "none" {
			continue
		}
		path, err := t.expand(file)
		if err != nil {
			return fmt.Errorf("known_hosts file %s: %w", file, err)
		}
		t.known = append(t.known, path)
	}
	return nil
}

func (t *target) setTimeout(values settings, _ Destination, o Options) error {
	t.timeout = o.ConnectTimeout
	if t.timeout > 0 {
		return nil
	}
	t.timeout = defaultTimeout
	text := values.first("connecttimeout")
	if text == "" || text == "none" {
		return nil
	}
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 {
		return fmt.Errorf("ConnectTimeout %s: not a time in seconds", values.first("connecttimeout"))
	}
	t.timeout = timeout
	return nil
}

// expand replaces ~, ${VARIABLE} and the tokens of ssh_config(5).
func (t *target) expand(text string) (string, error) {
	if text == "~" || strings.HasPrefix(text, "~/") {
		text = t.home + text[1:]
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "${") && strings.Contains(rest, "}"):
			name, _, _ := strings.Cut(rest[2:], "}")
			b.WriteString(os.Getenv(name))
			i += len(name) + 2
		case rest[0] == '%' && len(rest) > 1:
			value, err := t.token(rest[1])
			if err != nil {
				return "", err
			}
			b.WriteString(value)
			i++
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String(), nil
}

func (t *target) token(letter byte) (string, error) {
	switch letter {
	case '%':
		return "%", nil
	case 'd':
		return t.home, nil
	case 'h':
		return t.address, nil
	case 'n':
		return t.written, nil
	case 'p':
		return strconv.Itoa(t.port), nil
	case 'r':
		return t.user, nil
	case 'i':
		return strconv.Itoa(os.Getuid()), nil
	case 'u':
		me, err := user.Current()
		if err != nil {
			return "", err
		}
		return me.Username, nil
	}
	return "", fmt.Errorf("%%%c is not understood", letter)
}

// dialled is host:port as it is connected to.
func (t *target) dialled() string { return net.JoinHostPort(t.address, strconv.Itoa(t.port)) }
