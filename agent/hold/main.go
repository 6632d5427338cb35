package hold

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// Main is a holder process: the agent's command "hold". It reads demands from in and answers each on out; it returns
// when in ends, and all its connections are closed then.
func Main(args []string, in io.Reader, out io.Writer) error {
	l, err := newLoop(args)
	if err != nil {
		return err
	}
	defer l.close()
	demands := make(chan demand, 1)
	go l.listen(in, demands)
	answers := json.NewEncoder(out)
	for d := range l.until(demands) {
		r := l.fill(d.Connections)
		debug.FreeOSMemory() // what opening took is no longer needed: holding takes a byte per connection
		r.RSSBytes = rss()
		if err := answers.Encode(r); err != nil {
			return fmt.Errorf("hold: answer: %w", err)
		}
	}
	return nil
}

// newLoop makes a holder from its command line.
func newLoop(args []string) (*loop, error) {
	f := flag.NewFlagSet("hold", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	kind := f.String("kind", string(lab.HoldIdle), "idle or active")
	server := f.String("server", "", "address:port")
	host := f.String("host", "", "Host header")
	url := f.String("url", "/", "path")
	sources := f.String("sources", "", "source addresses, separated by commas")
	part := f.Int("part", 0, "number of this holder")
	parts := f.Int("parts", 1, "number of holders")
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("hold: %w", err)
	}
	address, err := netip.ParseAddrPort(*server)
	if err != nil {
		return nil, fmt.Errorf("hold: %w", err)
	}
	if k := lab.HoldKind(*kind); k != lab.HoldIdle && k != lab.HoldActive {
		return nil, fmt.Errorf("hold: unknown kind %q", *kind)
	}
	p, err := newPorts(address, *sources, *part, *parts)
	if err != nil {
		return nil, err
	}
	l := &loop{kind: lab.HoldKind(*kind), family: unix.AF_INET, server: sockaddr(address), ports: p}
	if address.Addr().Is6() {
		l.family = unix.AF_INET6
	}
	l.request = []byte("GET " + *url + " HTTP/1.1\r\nHost: " + *host + "\r\n\r\n")
	return l, l.open()
}

// listen reads demands and wakes the loop after each, and at the end.
func (l *loop) listen(in io.Reader, demands chan<- demand) {
	defer l.wakeUp()
	defer l.ended.Store(true)
	defer close(demands)
	d := json.NewDecoder(in)
	for {
		var next demand
		if d.Decode(&next) != nil {
			return // ended, or not in our language
		}
		demands <- next
		l.wakeUp()
	}
}

func (l *loop) wakeUp() {
	one := [8]byte{1}
	_, _ = unix.Write(l.wake, one[:]) // full means awake
}

// rss is the resident memory of this process (/proc/self/statm, second number, in pages).
func rss() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

var errClosed = errors.New("closed by the server")
