package watch

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// Of linux/inet_diag.h and linux/sock_diag.h.
const (
	sockDiagByFamily = 20
	tcpListen        = 10
	infoSkMeminfo    = 7
	skMeminfoDrops   = 8 // index of SK_MEMINFO_DROPS in the array of uint32
	requestSize      = 56
	messageSize      = 72
)

// listeners asks the kernel (sock_diag) for the listening TCP sockets of this network namespace, and for no others:
// LISTEN has a table of its own, any other state costs a walk of all sockets. One element per socket, so that
// SO_REUSEPORT gives several per port; sorted by port.
func listeners() ([]lab.Listener, error) {
	c, err := netlink.Dial(unix.NETLINK_INET_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	defer c.Close() //nolint:errcheck // only asked
	var all []lab.Listener
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		ms, err := c.Execute(netlink.Message{
			Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump},
			Data:   listenRequest(family),
		})
		if err != nil {
			return nil, fmt.Errorf("sock_diag: %w", err)
		}
		for _, m := range ms {
			if l, ok := parseListener(m.Data); ok {
				all = append(all, l)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b lab.Listener) int { return a.Port - b.Port })
	return all, nil
}

// listenRequest is a struct inet_diag_req_v2 for listening TCP sockets with their memory information.
func listenRequest(family byte) []byte {
	r := make([]byte, requestSize)
	r[0], r[1], r[2] = family, unix.IPPROTO_TCP, 1<<(infoSkMeminfo-1)
	binary.NativeEndian.PutUint32(r[4:], 1<<tcpListen)
	return r
}

// parseListener reads a struct inet_diag_msg. Of a listening socket, its receive queue is the number of connections
// waiting to be accepted, and its send queue the backlog in force (net/ipv4/tcp_diag.c).
func parseListener(data []byte) (lab.Listener, bool) {
	if len(data) < messageSize || data[1] != tcpListen {
		return lab.Listener{}, false
	}
	l := lab.Listener{
		Port:    int(binary.BigEndian.Uint16(data[4:])),
		Queue:   int(binary.NativeEndian.Uint32(data[56:])),
		Backlog: int(binary.NativeEndian.Uint32(data[60:])),
	}
	attributes, err := netlink.NewAttributeDecoder(data[messageSize:])
	if err != nil {
		return l, true
	}
	for attributes.Next() {
		if b := attributes.Bytes(); attributes.Type() == infoSkMeminfo && len(b) >= 4*(skMeminfoDrops+1) {
			l.Drops = uint64(binary.NativeEndian.Uint32(b[4*skMeminfoDrops:]))
		}
	}
	return l, true
}

// onPorts are the listeners on the given ports; nil when they cannot be read.
func onPorts(ports []int) []lab.Listener {
	all, err := listeners()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(l lab.Listener) bool { return !slices.Contains(ports, l.Port) })
}
