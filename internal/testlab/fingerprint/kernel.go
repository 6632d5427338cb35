package fingerprint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// sysctls notes every kernel parameter that can be read, dots in place of slashes.
func (f taken) sysctls(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		name := "sysctl " + strings.ReplaceAll(strings.TrimPrefix(path, root+"/"), "/", ".")
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o444 == 0 || f.leftOut.has(name) {
			return nil // gone, or only to be written to
		}
		if text, err := os.ReadFile(path); err == nil { // else it has no value now
			f.note(name, strings.TrimSpace(string(text)))
		}
		return nil
	})
}

// limits notes those of the first process and those that a new login gets.
func (f taken) limits(ctx context.Context) error {
	first, err := os.ReadFile("/proc/1/limits")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(first)) {
		if name, values, ok := strings.Cut(line, "  "); ok {
			f.note("limit of process 1: "+name, strings.Join(strings.Fields(values), " "))
		}
	}
	out, err := exec.CommandContext(ctx, "su", "-", "root", "-s", "/bin/sh", "-c", "ulimit -S -a; echo; ulimit -H -a").Output()
	if err != nil {
		return fmt.Errorf("limits of a login: %w", err)
	}
	soft, hard, _ := strings.Cut(string(out), "\n\n")
	f.note("soft limits of a login", strings.Join(strings.Fields(soft), " "))
	f.note("hard limits of a login", strings.Join(strings.Fields(hard), " "))
	return nil
}

// mounts notes what is mounted where, and how.
func (f taken) mounts() error {
	return eachLine("/proc/self/mountinfo", func(fields []string) {
		if len(fields) > 6 { // proc(5): the first three are numbers of the mount
			f.note("mount "+fields[4], fields[3]+" "+strings.Join(fields[5:], " "))
		}
	})
}

// interfaces notes the network's, with addresses.
func (f taken) interfaces() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			return err
		}
		features, err := features(i.Name)
		if errors.Is(err, syscall.ENODEV) {
			continue // gone since the list was made: a container of another test had it
		}
		if err != nil {
			return err
		}
		f.note("interface "+i.Name, fmt.Sprintf("index=%d mtu=%d flags=%s address=%s addresses=%v %s", i.Index, i.MTU, i.Flags, i.HardwareAddr, addresses, features))
	}
	return nil
}

func (f taken) routes() error {
	return eachLine("/proc/self/net/route", func(fields []string) {
		if len(fields) > 7 {
			f.count("route " + strings.Join(append(fields[:4:4], fields[6:]...), " ")) // without counters
		}
	})
}

// listeners notes sockets that wait for somebody: TCP in state LISTEN (0A), UDP not connected (07), Unix accepting.
func (f taken) listeners() error {
	var errs []error
	for name, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		errs = append(errs, eachLine("/proc/self/net/"+name, func(fields []string) {
			if len(fields) > 3 && fields[3] == state {
				f.count("listener " + name + " " + fields[1])
			}
		}))
	}
	errs = append(errs, eachLine("/proc/self/net/unix", func(fields []string) {
		if len(fields) > 7 && fields[3] == "00010000" { // __SO_ACCEPTCON
			f.count("listener unix " + fields[7])
		}
	}))
	return errors.Join(errs...)
}

// eachLine calls each with the fields of every line of a file; one that is not there has none.
func eachLine(path string, each func(fields []string)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		each(strings.Fields(lines.Text()))
	}
	return lines.Err()
}
