// Command ngxlab runs reproducible tuning studies of web servers; see "ngxlab help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// version is set when the program is linked.
var version = "unversioned"

// main lets the first interrupt cancel what is being done, so that the hosts are put back; the second leaves at once, and so
// does Ctrl-\.
func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.terminal = term.IsTerminal(int(os.Stderr.Fd()))
	a.asks = term.IsTerminal(int(os.Stdin.Fd()))
	a.ssh.Ask = asker()
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	done := make(chan int, 1)
	go func() { done <- a.execute(ctx, os.Args[1:]) }()
	os.Exit(wait(a, done, signals, cancel))
}

// wait returns the exit code of what is done, or that of leaving before it is.
func wait(a *app, done <-chan int, signals <-chan os.Signal, cancel context.CancelFunc) int {
	select {
	case code := <-done:
		return code
	case s := <-signals:
		if s == syscall.SIGQUIT {
			return a.leave()
		}
		cancel()
	}
	a.interrupted()
	select {
	case code := <-done:
		return code
	case <-signals:
		return a.leave()
	}
}
