package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// listener is a listening TCP socket as sock_diag(7) tells it.
type listener struct {
	port    int
	backlog int // in force: what listen(2) was given, at most net.core.somaxconn
	inode   uint32
}

// Sizes and offsets of struct inet_diag_req_v2 and inet_diag_msg (linux/inet_diag.h).
const (
	diagFamily   = 20 // SOCK_DIAG_BY_FAMILY
	diagRequest  = 56
	diagMessage  = 72
	diagPort     = 4
	diagBacklog  = 60 // idiag_wqueue of a listening socket
	diagInode    = 68
	stateListen  = 1 << 10 // TCP_LISTEN
	diagStatesAt = 4
)

// listeners dumps the listening TCP sockets of both families.
func listeners() ([]listener, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("read the listening sockets: %w", err)
	}
	var all []listener
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, diagRequest)
		request[0], request[1] = family, unix.IPPROTO_TCP
		binary.NativeEndian.PutUint32(request[diagStatesAt:], stateListen)
		messages, err := conn.Execute(netlink.Message{
			Header: netlink.Header{Type: diagFamily, Flags: netlink.Request | netlink.Dump}, Data: request,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read the listening sockets: %w", err), conn.Close())
		}
		for _, m := range messages {
			if len(m.Data) >= diagMessage {
				all = append(all, listener{
					port:    int(binary.BigEndian.Uint16(m.Data[diagPort:])),
					backlog: int(binary.NativeEndian.Uint32(m.Data[diagBacklog:])),
					inode:   binary.NativeEndian.Uint32(m.Data[diagInode:]),
				})
			}
		}
	}
	return all, conn.Close()
}

// backlog returns the smallest backlog in force of the sockets that listen on a port.
func backlog(port int) (int, error) {
	all, err := listeners()
	if err != nil {
		return 0, err
	}
	smallest := -1
	for _, l := range all {
		if l.port == port && (smallest < 0 || l.backlog < smallest) {
			smallest = l.backlog
		}
	}
	if smallest < 0 {
		return 0, fmt.Errorf("read the backlog of port %d: nothing listens there", port)
	}
	return smallest, nil
}

// portsFree returns an error that names who listens on one of the ports, as far as it can be seen.
func portsFree(ports ...int) error {
	all, err := listeners()
	if err != nil {
		return err
	}
	for _, l := range all {
		if slices.Contains(ports, l.port) {
			return fmt.Errorf("port %d is in use by %s", l.port, owner(l.inode))
		}
	}
	return nil
}

// owner names the process that has a socket open; sockets of other users' processes can be seen by root alone.
func owner(inode uint32) string {
	all, err := procfs.AllProcs()
	if err != nil {
		return "another process"
	}
	socket := fmt.Sprintf("socket:[%d]", inode)
	for _, p := range all {
		targets, err := p.FileDescriptorTargets()
		if err != nil || !slices.Contains(targets, socket) {
			continue
		}
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if err != nil {
			continue
		}
		return fmt.Sprintf("process %d (%s)", p.PID, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
	}
	return "a process of another user"
}
