package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// The waiting process and its runner speak over two pipes. The waiting process tells one letter at a time:
// ready (it stands in its limits and has found the command), then released with two numbers (its release instant and
// the CPU time it had used itself, both in ns), or failed with a text. The pipe closes by itself at exec. The runner
// sends one number: the instant.
const (
	tellReady    = 'R'
	tellReleased = 'G'
	tellFailed   = 'E'
	fdInstant    = 3 // the waiting process reads the instant here
	fdTell       = 4
	spin         = 100 * time.Microsecond // awake this long before the instant: a sleep ends 50 to 100 µs late
)

// hardToo follows an open-file limit that is the hard one as well: programs in Go raise theirs up to that.
const hardToo = "!"

// WaitCommand is the hidden subcommand of the agent that calls Wait.
const WaitCommand = "wait"

// Wait is what every command is at first: a small process in the command's group, limits and affinity that becomes the
// command (exec) at one instant. args are nice value, open-file limit (0 = leave), process limit (0 = leave), CPUs ("0,2",
// "" = all), who it becomes (as identity writes it, "" = stays), and the command. It returns only on failure, which the
// runner is told too.
func Wait(args []string) error {
	tell := os.NewFile(fdTell, "tell")
	instant := os.NewFile(fdInstant, "instant")
	syscall.CloseOnExec(fdTell)
	syscall.CloseOnExec(fdInstant)
	err := wait(args, instant, tell)
	if _, e := tell.Write(append([]byte{tellFailed}, err.Error()...)); e != nil {
		return errors.Join(err, e)
	}
	return err
}

func wait(args []string, instant io.Reader, tell io.Writer) error {
	if len(args) < 6 {
		return errors.New("nice value, open-file limit, process limit, CPUs, user and a command are needed")
	}
	runtime.LockOSThread() // affinity and nice value belong to the thread that calls exec
	// A handler, even one that does nothing, replaces an inherited "ignore"; exec turns it into the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT)
	if err := standIn(args[0], args[1], args[3]); err != nil {
		return err
	}
	argv := args[5:]
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("find %s: %w", argv[0], err)
	}
	if _, err := tell.Write([]byte{tellReady}); err != nil {
		return fmt.Errorf("tell that it is ready: %w", err)
	}
	var at lab.Instant
	if err := binary.Read(instant, binary.NativeEndian, &at); err != nil {
		return fmt.Errorf("read the instant: %w", err) // the agent is gone
	}
	if err := sleepUntil(at); err != nil {
		return err
	}
	if err := limitProcesses(args[2]); err != nil { // last: this program starts threads, which count
		return err
	}
	if err := become(args[4]); err != nil {
		return err
	}
	if err := tellRelease(tell); err != nil {
		return err
	}
	if err := syscall.Exec(path, argv, os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// standIn takes the nice value, the open-file limit and the affinity that the command shall have.
func standIn(nice, nofile, cpus string) error {
	n, err := strconv.Atoi(nice)
	if err != nil {
		return fmt.Errorf("nice value: %w", err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, n); err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("set nice value %d: %w", n, err)
	}
	if err := limitFiles(nofile); err != nil {
		return err
	}
	if cpus == "" {
		return nil
	}
	var set unix.CPUSet
	for _, text := range strings.Split(cpus, ",") {
		cpu, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("CPU: %w", err)
		}
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("run on CPUs %s: %w", cpus, err)
	}
	return nil
}

func limitFiles(nofile string) error {
	text, hard := strings.CutSuffix(nofile, hardToo)
	return limit("open-file limit", syscall.RLIMIT_NOFILE, text, hard)
}

// limitProcesses sets how many processes and threads the user of the command may have (RLIMIT_NPROC). The kernel holds
// nobody to it who has CAP_SYS_RESOURCE or CAP_SYS_ADMIN, and never root (setrlimit(2)).
func limitProcesses(nproc string) error {
	return limit("process limit", unix.RLIMIT_NPROC, nproc, false)
}

func limit(name string, resource int, text string, hard bool) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n == 0 {
		return nil
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(resource, &limit); err != nil {
		return fmt.Errorf("read the %s: %w", name, err)
	}
	// syscall's own Setrlimit: it tells the runtime not to put the old soft limit of open files back at exec.
	limit = syscall.Rlimit{Cur: n, Max: max(n, limit.Max)}
	if hard {
		limit.Max = n
	}
	if err := syscall.Setrlimit(resource, &limit); err != nil {
		return fmt.Errorf("set the %s to %d: %w", name, n, err)
	}
	return nil
}

// sleepUntil returns at the instant or later, never earlier.
func sleepUntil(at lab.Instant) error {
	early := unix.NsecToTimespec(int64(at.Add(-spin)))
	for Now() < at.Add(-spin) {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &early, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("sleep until the instant: %w", err)
		}
	}
	for Now() < at {
	}
	return nil
}

func tellRelease(tell io.Writer) error {
	var cpu unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &cpu); err != nil {
		return fmt.Errorf("read own CPU time: %w", err)
	}
	message := []byte{tellReleased}
	message = binary.NativeEndian.AppendUint64(message, uint64(Now()))
	message = binary.NativeEndian.AppendUint64(message, uint64(cpu.Nano()))
	if _, err := tell.Write(message); err != nil {
		return fmt.Errorf("tell the release: %w", err)
	}
	return nil
}
