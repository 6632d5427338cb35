package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"ngxlab/hosts/docker"
	"ngxlab/hosts/ssh"
	"ngxlab/lab"
)

// hostError is what went wrong with one host: with its place in the experiment file, and advice of its own, since
// several hosts may fail in different ways at once.
type hostError struct {
	err  error
	hint string
}

// Error is the error, then the advice on a line of its own.
func (e *hostError) Error() string {
	if e.hint == "" {
		return e.err.Error()
	}
	return e.err.Error() + "\nhint: " + e.hint
}

func (e *hostError) Unwrap() error { return e.err }

// engineError is why the Docker engine cannot be had: for all of its hosts alike.
type engineError struct{ err error }

func (e *engineError) Error() string { return e.err.Error() }
func (e *engineError) Unwrap() error { return e.err }

// atHosts joins what went wrong with the hosts of an experiment; errs has one entry for each, which names its host.
func atHosts(x lab.Experiment, errs []error) error {
	var all []error
	var engineless []lab.HostName
	for i, err := range errs {
		if down := new(engineError); errors.As(err, &down) {
			engineless = append(engineless, x.Hosts[i].Name)
		} else if err != nil {
			all = append(all, atHost(x, i, err))
		}
	}
	for i, err := range errs {
		if down := new(engineError); errors.As(err, &down) { // once for all
			return errors.Join(append([]error{atHost(x, i, fmt.Errorf("%s: %w", joinHosts(engineless), down))}, all...)...)
		}
	}
	return errors.Join(all...)
}

// atHost puts the line of the file before what went wrong with a host.
func atHost(x lab.Experiment, i int, err error) error {
	h := x.Hosts[i]
	at, known := position(x, fmt.Sprintf("hosts.%s", h.Name))
	return &hostError{err: fmt.Errorf("%s%w", place(x.File, at, known), err), hint: hostHint(x, h, err)}
}

// hostHint is the one place where what went wrong with a host becomes advice.
func hostHint(x lab.Experiment, h lab.Host, err error) string {
	var unknown *ssh.UnknownKeyError
	var changed *ssh.ChangedKeyError
	var login *ssh.AuthError
	var problem *docker.Problem
	var advised *hinted
	var usage *usageError
	var curable interface{ Cure() string } // a login shell, sudo
	switch {
	case errors.As(err, &advised):
		return advised.hint
	case errors.As(err, &usage):
		return usage.hint
	case inUse(err):
		return "wait until that campaign has ended, or end it"
	case errors.As(err, &unknown):
		return fmt.Sprintf("run %q, and compare the fingerprint", trustCommand(x, h, unknown.Host))
	case errors.As(err, &changed):
		return fmt.Sprintf("if the host was installed anew, remove its old key with %q; then run %q", forgetCommand(changed), trustCommand(x, h, changed.Host))
	case errors.As(err, &login):
		return loginHint(login)
	case errors.As(err, &problem):
		return problem.Cure
	case errors.As(err, &curable):
		return curable.Cure()
	}
	return ""
}

// trustCommand shows and adds the keys of a host, or of the jump that was refused on the way to it.
func trustCommand(x lab.Experiment, h lab.Host, refused string) string {
	switch {
	case refused != h.Address:
		return "ngxlab hosts trust " + jumpNamed(h, refused)
	case stands(x.File):
		return "ngxlab hosts trust " + x.File
	}
	line := append([]string{"ngxlab", "hosts", "trust"}, accessWords(lab.Host{Jump: h.Jump})...)
	return strings.Join(append(line, sshDestination(h).String()), " ")
}

// jumpNamed is a jump as the file has it, with user and port; one of ~/.ssh/config by its name.
func jumpNamed(h lab.Host, name string) string {
	for _, jump := range strings.Split(h.Jump, ",") {
		if d, err := ssh.Parse(jump); err == nil && d.Address == name {
			return jump
		}
	}
	return name
}

// forgetCommand removes the known keys of a host.
func forgetCommand(e *ssh.ChangedKeyError) string {
	name, file := e.Address, ""
	if len(e.Known) > 0 {
		file = " -f " + e.Known[0].File
	}
	if host, port, err := net.SplitHostPort(e.Address); err == nil {
		if name = host; port != "22" {
			name = fmt.Sprintf("[%s]:%s", host, port)
		}
	}
	return fmt.Sprintf("ssh-keygen -R %s%s", name, file)
}

func loginHint(e *ssh.AuthError) string {
	switch {
	case len(e.Locked) > 0:
		return "load the key into an ssh-agent (ssh-add), or give its passphrase in " + ssh.Passphrase
	case len(e.Broken) > 0:
		return fmt.Sprintf("%s is no private key that can be read: name the file of the key that %s takes (key: PATH, or --key)", joined(e.Broken), e.Host)
	}
	return fmt.Sprintf("name the key that %s takes (key: PATH, or --key), and the user (user: NAME, or NAME@HOST)", e.Host)
}
