package agent

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"ngxlab/agent/process"
)

const (
	fdLock     = 3 // the lock file in the worker
	sweepLimit = 4 * time.Second
)

// guard starts the worker and waits. When the worker has ended, however it did, the guard kills every descendant that
// is left. The lock file is open in both, so that the host stays locked until both are gone.
func guard(dir string) error {
	runtime.LockOSThread() // the worker is told when the thread that started it ends
	if err := process.Subreaper(); err != nil {
		return err
	}
	lock, err := openLockFile(dir)
	if err != nil {
		return err
	}
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	worker, err := startWorker(dir, lock)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	go func() {
		for range ask {
			_ = syscall.Kill(worker, syscall.SIGTERM) // it may have ended: then the guard is about to
		}
	}()
	status, err := reapUntil(worker)
	err = errors.Join(err, process.KillDescendants(sweepLimit), lock.Close())
	if status.Signaled() {
		err = errors.Join(fmt.Errorf("the worker was ended by signal: %s", status.Signal()), err)
	}
	if err == nil && status.ExitStatus() != 0 {
		return errReported
	}
	return err
}

// errReported is the error of a guard whose worker has said already what went wrong.
var errReported = errors.New("the worker failed")

func startWorker(dir string, lock *os.File) (pid int, err error) {
	p, err := os.StartProcess("/proc/self/exe", []string{"ngxlab-agent", commandWorker, "--dir", dir}, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, lock},
		// A signal that it can catch: it has descendants to kill first.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM},
	})
	if err != nil {
		return 0, fmt.Errorf("start the worker: %w", err)
	}
	return p.Pid, nil
}

// reapUntil reaps children, those inherited too, until pid has ended.
func reapUntil(pid int) (syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return status, fmt.Errorf("wait for the worker: %w", err)
		case got == pid:
			return status, nil
		}
	}
}
