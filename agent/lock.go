package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/agent/wire"
)

// hostLock is the lock of the host: flock(2) on a file that says who holds it. The lock belongs to the open file,
// which guard and worker share: it is free when both are gone, or when the session that holds it releases it.
type hostLock struct {
	mu   sync.Mutex
	file *os.File
	held bool
}

// openLockFile opens, and makes when missing, the lock file of a state directory.
func openLockFile(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the host lock: %w", err)
	}
	return file, nil
}

func openLock(o Options) (*hostLock, error) {
	if o.Lock != nil {
		return &hostLock{file: o.Lock}, nil
	}
	file, err := openLockFile(o.Dir)
	if err != nil {
		return nil, err
	}
	return &hostLock{file: file}, nil
}

func (l *hostLock) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// claim takes the lock, or notes another campaign when this session has it already. When another session has it, the
// error tells whose it is.
func (l *hostLock) claim(c wire.Claim) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(c)
}

func (l *hostLock) take(c wire.Claim) error {
	for {
		err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			return wire.Locked(l.holder())
		}
		if err != nil {
			return fmt.Errorf("lock the host: %w", err)
		}
		break
	}
	text, err := json.Marshal(wire.Lock{Owner: c.Owner, Campaign: c.Campaign, Since: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = l.write(append(text, '\n'))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("note the holder of the host lock: %w", err), l.free())
	}
	l.held = true
	return nil
}

func (l *hostLock) write(text []byte) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt(text, 0)
	return err
}

// holder reads who holds the lock. The holder writes that just after taking it, so an empty file is read again.
func (l *hostLock) holder() wire.Lock {
	var text [4096]byte
	late := time.After(100 * time.Millisecond)
	for {
		n, _ := l.file.ReadAt(text[:], 0) // the end of the file comes with every read
		var holder wire.Lock
		if json.Unmarshal(text[:n], &holder) == nil {
			return holder
		}
		select {
		case <-late:
			return wire.Lock{Owner: "another session that has not said who it is"}
		case <-time.After(time.Millisecond):
		}
	}
}

// release frees the lock, if this session has it.
func (l *hostLock) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		return nil
	}
	return l.free()
}

func (l *hostLock) free() error {
	l.held = false
	err := l.write(nil)
	for {
		unlock := unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
		if !errors.Is(unlock, unix.EINTR) {
			return errors.Join(err, unlock)
		}
	}
}

// during runs do while this session holds the lock, which it takes and frees unless it has it already.
func (l *hostLock) during(c wire.Claim, do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return do()
	}
	if err := l.take(c); err != nil {
		return err
	}
	return errors.Join(do(), l.free())
}

func (l *hostLock) close() error { return errors.Join(l.release(), l.file.Close()) }
