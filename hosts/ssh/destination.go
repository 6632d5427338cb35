package ssh

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Destination is a host as a person names it. What is "" or 0 is as ~/.ssh/config says, then the default of OpenSSH.
type Destination struct {
	Address string // name, address or the alias of a Host block
	Port    int
	User    string
	Key     string // file of a private key, the only one then tried; ~ is the home directory
	Jump    string // hosts to go through, as for ssh -J: "a" or "user@a:2222,b"; "none" = none, whatever the configuration says
}

// Parse reads [user@]host, [user@]host:port, [user@][v6]:port, a bare IPv6 address, and ssh://[user@]host[:port].
func Parse(text string) (Destination, error) {
	d, err := parse(strings.TrimSpace(text))
	if err == nil && (d.Address == "" || strings.ContainsAny(d.Address, " \t,/@[]")) {
		err = fmt.Errorf("%q is no host's name or address", d.Address)
	}
	if err != nil {
		return Destination{}, fmt.Errorf("destination %q: %w", text, err)
	}
	return d, nil
}

func parse(text string) (d Destination, err error) {
	if strings.HasPrefix(text, "ssh://") {
		return parseURL(text)
	}
	host := text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		if d.User, host = text[:i], text[i+1:]; d.User == "" {
			return d, fmt.Errorf("no user before @")
		}
	}
	if strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "[") || !strings.ContainsAny(host, ":[") {
		d.Address = host // a bare IPv6 address, or no port
		return d, nil
	}
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		d.Address = strings.TrimSuffix(inner, "]")
		return d, nil
	}
	address, port, err := net.SplitHostPort(host)
	if err != nil {
		return d, err
	}
	d.Address = address
	d.Port, err = parsePort(port)
	return d, err
}

func parseURL(text string) (d Destination, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return d, err
	}
	if u.Path != "" && u.Path != "/" {
		return d, fmt.Errorf("nothing may follow the host: %s", u.Path)
	}
	d.Address, d.User = u.Hostname(), u.User.Username()
	if u.Port() != "" {
		d.Port, err = parsePort(u.Port())
	}
	return d, err
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("%q is no port: 1 to 65535", text)
	}
	return int(port), nil
}

// String is the destination as Parse reads it, without key and jump.
func (d Destination) String() string {
	text := d.Address
	switch {
	case d.Port != 0:
		text = net.JoinHostPort(d.Address, strconv.Itoa(d.Port))
	case strings.Contains(text, ":"):
		text = "[" + text + "]"
	}
	if d.User != "" {
		text = d.User + "@" + text
	}
	return text
}
