package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"ngxlab/agent/process"
)

// worker serves on standard input and output. It ends when they close, on a signal, and when its guard dies; before
// that it kills every descendant.
func worker(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	if err := process.Subreaper(); err != nil {
		return err
	}
	if err := os.Setenv("PATH", process.SearchPath()); err != nil { // every part finds the commands that another found
		return err
	}
	syscall.CloseOnExec(fdLock)
	conn, err := takeStandard()
	if err != nil {
		return err
	}
	hash, err := ownHash()
	if err != nil {
		return err
	}
	err = Serve(ctx, conn, Options{Dir: dir, Hash: hash, Nice: raisePriority(), Lock: os.NewFile(fdLock, "lock")})
	return errors.Join(err, process.KillDescendants(sweepLimit))
}

// pipes is a connection over two descriptors.
type pipes struct{ in, out *os.File }

func (p pipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

// takeStandard moves standard input and output to other descriptors and leaves the null device and standard error in
// their places: nothing else can write into the protocol, and a broken pipe is an error instead of a signal.
func takeStandard() (io.ReadWriteCloser, error) {
	in, err := moved(0, "input")
	if err != nil {
		return nil, err
	}
	out, err := moved(1, "output")
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	err = errors.Join(unix.Dup3(int(null.Fd()), 0, 0), unix.Dup3(2, 1, 0), null.Close())
	return pipes{in: in, out: out}, err
}

// moved returns a copy of fd that the runtime polls, so that closing it ends a read.
func moved(fd int, name string) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, fdLock+1)
	if err != nil {
		return nil, fmt.Errorf("move standard %s: %w", name, err)
	}
	if err := unix.SetNonblock(n, true); err != nil {
		return nil, fmt.Errorf("move standard %s: %w", name, err)
	}
	return os.NewFile(uintptr(n), name), nil
}

// ownHash is the SHA-256 of this binary.
func ownHash() (string, error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("open the agent's binary: %w", err)
	}
	defer file.Close() //nolint:errcheck // opened for reading
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read the agent's binary: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// agentNice keeps the agent's answers and samples in time on a busy host; its work is small.
const agentNice = -5

// raisePriority gives all threads of this process agentNice where that is allowed, and returns the nice value from
// before, which the commands get.
func raisePriority() int {
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	renice(agentNice)
	return 20 - before // getpriority(2): the system call gives 20 − nice
}

// ordinaryPriority takes back what a holder inherited of raisePriority: it is load, not the agent.
func ordinaryPriority() {
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && 20-now == agentNice {
		renice(0)
	}
}

// renice sets the nice value of every thread; threads to come inherit it. An ordinary user may not lower it: then it
// stays as it was.
func renice(nice int) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		if tid, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
	}
}
