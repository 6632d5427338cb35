package hold

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ports gives every connection a source address and port of its own. Left to the kernel, the search for a free port
// is linear once half of the range is taken; and holders never compete, for each has every nth port, or on the
// loopback network, which has 16 million addresses, addresses of its own.
type ports struct {
	sources     []netip.Addr
	more        func(n int) netip.Addr // the nth source when those before are used up; nil when there are no more
	first, last int
	step        int

	source, port int
}

const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// errNoPort is returned when every port of every source address was tried.
var errNoPort = errors.New("no source port is left")

func newPorts(server netip.AddrPort, sources string, part, parts int) (*ports, error) {
	p := &ports{first: 32768, last: 60999, step: max(parts, 1)}
	if text, err := os.ReadFile(portRange); err == nil {
		if _, err := fmt.Sscan(string(text), &p.first, &p.last); err != nil {
			return nil, fmt.Errorf("hold: %s: %w", portRange, err)
		}
	}
	switch {
	case sources != "":
		for text := range strings.SplitSeq(sources, ",") {
			a, err := netip.ParseAddr(text)
			if err != nil || a.Is4() != server.Addr().Is4() {
				return nil, fmt.Errorf("hold: source address %q does not fit %s", text, server)
			}
			p.sources = append(p.sources, a)
		}
	case server.Addr().Is4() && server.Addr().IsLoopback():
		p.step = 1
		p.more = func(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 1, byte(part + 1), byte(n + 1)}) }
		p.sources, part = []netip.Addr{p.more(0)}, 0
	default:
		a, err := routeSource(server)
		if err != nil {
			return nil, err
		}
		p.sources = []netip.Addr{a}
	}
	p.first += part
	p.port = p.first
	return p, nil
}

// routeSource is the address from which the kernel would reach the server; no packet is sent.
func routeSource(server netip.AddrPort) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("hold: route to %s: %w", server, err)
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone(""), nil
}

// size is how many ports one source has.
func (p *ports) size() int { return (p.last-p.first)/p.step + 1 }

// next binds a socket to the next source port that is free.
func (p *ports) next(fd int) error {
	for range p.size() * (len(p.sources) + 1) {
		a := netip.AddrPortFrom(p.sources[p.source], uint16(p.port))
		p.advance()
		err := unix.Bind(fd, sockaddr(a))
		if err == nil || !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return errNoPort
}

// advance goes on to the next port, and past the last one to the next source.
func (p *ports) advance() {
	if p.port += p.step; p.port <= p.last {
		return
	}
	p.port = p.first
	p.source++
	if p.source < len(p.sources) {
		return
	}
	if p.more != nil && p.source < 250 { // as many as the last byte of an address has room for
		p.sources = append(p.sources, p.more(p.source))
		return
	}
	p.source = 0
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
