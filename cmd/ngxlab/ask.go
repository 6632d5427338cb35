package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"ngxlab/hosts/ssh"
	"ngxlab/lab"
)

// terminalPath is the terminal of the person at the keyboard, also when the standard streams are pipes.
const terminalPath = "/dev/tty"

// asker asks for secrets on the terminal; nil when there is none.
func asker() ssh.Ask {
	tty, err := os.OpenFile(terminalPath, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	_ = tty.Close() // nothing was written
	return askSecret
}

// askSecret asks for a secret on the terminal without showing it. When ctx ends the terminal is as it was.
func askSecret(ctx context.Context, prompt string) (string, error) {
	tty, err := os.OpenFile(terminalPath, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer tty.Close() //nolint:errcheck // nothing is kept in it
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("ask on the terminal: %w", err)
	}
	_, _ = fmt.Fprintf(tty, "%s: ", prompt)
	defer fmt.Fprintln(tty) //nolint:errcheck // the line that the person ended is not shown
	type answer struct {
		secret []byte
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		secret, err := term.ReadPassword(fd)
		answers <- answer{secret, err}
	}()
	select {
	case a := <-answers:
		return string(a.secret), a.err
	case <-ctx.Done(): // the read goes on until the program ends
		_ = term.Restore(fd, before)
		return "", context.Cause(ctx)
	}
}

// agree asks a question that is answered by y or n; anything but y is no, as is the end of the input.
func (a *app) agree(ctx context.Context, question string) (bool, error) {
	_, _ = fmt.Fprintf(a.err, "%s [y/N] ", lab.Printable(question))
	answers := make(chan string, 1)
	go func() {
		line, _ := a.answers.ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case word := <-answers:
		return word == "y" || word == "yes", nil
	case <-ctx.Done(): // the read goes on until the program ends
		return false, ctx.Err()
	}
}
