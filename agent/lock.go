package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// hostLock is the lock of the host: flock(2) on a file that says who holds it. The lock belongs to the open file,
// which guard and worker share: it is free when both are gone, or when the session that holds it releases it.
type hostLock struct {
	mu   sync.Mutex
	file *os.File
	held bool
	wall func() time.Time
}

// errReadOnly is of a host whose lock cannot be taken: nobody changes anything there.
var errReadOnly = fmt.Errorf("lock the host: the state directory is on a %w", unix.EROFS)

// locks reports whether the file is one: of a read-only file system it is not.
func (l *hostLock) locks() bool {
	info, err := l.file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// cleaning is how long a holder without a campaign is waited for.
const cleaning = time.Second

func openLock(o Options) (*hostLock, error) {
	if o.Lock != nil {
		return &hostLock{file: o.Lock, wall: wallClock(o)}, nil
	}
	file, err := openLockFile(o.Dir)
	if err != nil {
		return nil, err
	}
	return &hostLock{file: file, wall: wallClock(o)}, nil
}

// wallClock is the clock of everything that is written down for people.
func wallClock(o Options) func() time.Time {
	if o.Wall == nil {
		return time.Now
	}
	return o.Wall
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

// take waits a moment for a holder without a campaign: an agent that cleans up at its start, say.
func (l *hostLock) take(c wire.Claim) error {
	if !l.locks() {
		return errReadOnly
	}
	for late := time.Now().Add(cleaning); ; <-time.After(10 * time.Millisecond) {
		err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return l.sign(c)
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("lock the host: %w", err)
		}
		if holder := l.holder(); holder.Campaign != "" || time.Now().After(late) {
			return wire.Locked(holder)
		}
	}
}

// sign notes who holds the lock. That is for people: a full disk keeps nobody from restoring.
func (l *hostLock) sign(c wire.Claim) error {
	text, err := json.Marshal(wire.Lock{Owner: c.Owner, Campaign: c.Campaign, Since: l.wall().UTC().Truncate(time.Second)})
	if err == nil {
		err = l.write(append(text, '\n'))
	}
	if err != nil && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
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
			holder.Owner, holder.Campaign = printable(holder.Owner), lab.CampaignID(printable(string(holder.Campaign)))
			return holder
		}
		select {
		case <-late:
			return wire.Lock{Owner: "another session that has not said who it is"}
		case <-time.After(time.Millisecond):
		}
	}
}

// whose tells who holds the lock, the zero Holder when nobody does. It waits a moment for a holder without a campaign.
func (l *hostLock) whose() (lab.Holder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return lab.Holder(l.holder()), nil
	}
	err := l.take(wire.Claim{Owner: "a session that asks who has the host"})
	if err == nil {
		return lab.Holder{}, l.free()
	}
	if errors.Is(err, errReadOnly) {
		return lab.Holder{}, nil
	}
	var taken *wire.Error
	if errors.As(err, &taken) && taken.Lock != nil {
		return lab.Holder(*taken.Lock), nil
	}
	return lab.Holder{}, err
}

// printable is what a terminal can be shown of a text that any user may have written.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
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
