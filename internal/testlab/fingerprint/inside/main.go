// Command inside is what chaos tests have in a container host: it takes fingerprints, kills processes by what is in
// their command lines and runs commands, one request per line of its standard input, one answer per line of its output.
// Called "inside systemd" it stands in for systemd, and under the name systemctl for systemctl.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ngxlab/internal/testlab/fingerprint"
)

func main() {
	ctx, code := context.Background(), 1
	var err error
	switch {
	case filepath.Base(os.Args[0]) == "systemctl":
		code, err = systemctl(ctx, os.Args[1:], os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == "systemd":
		err = serveSystemd(ctx)
	default:
		code, err = 0, answerAll(ctx, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // this is main, of another program
}

// answerAll answers requests until there are no more.
func answerAll(ctx context.Context, r io.Reader, w io.Writer) error {
	in, out := json.NewDecoder(r), json.NewEncoder(w)
	for {
		var q fingerprint.Request
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(answer(ctx, q)); err != nil {
			return err
		}
	}
}

// answer does what is asked.
func answer(ctx context.Context, q fingerprint.Request) (a fingerprint.Answer) {
	var err error
	switch {
	case len(q.Kill) > 0:
		a.Killed, err = kill(q.Kill, q.One)
	case len(q.Run) > 0:
		var out []byte
		out, err = exec.CommandContext(ctx, q.Run[0], q.Run[1:]...).CombinedOutput() //nolint:gosec // a test says what
		a.Output = string(out)
	default:
		a.Fingerprint, err = fingerprint.Take(ctx, fingerprint.Options{})
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// kill ends every process, or only the first, whose command line has one of the texts, but the host's first and this one.
func kill(texts []string, one bool) ([]string, error) {
	var killed []string
	var errs []error
	for _, text := range texts {
		found, err := withText(text)
		errs = append(errs, err)
		for _, p := range found {
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err == nil {
				killed = append(killed, p.line)
			} else if !errors.Is(err, syscall.ESRCH) { // it has just ended
				errs = append(errs, fmt.Errorf("kill %s: %w", p.line, err))
			}
			if one {
				break
			}
		}
	}
	return killed, errors.Join(errs...)
}

type process struct {
	pid  int
	line string
}

func withText(text string) ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []process
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))) // the pattern has digits only
		line, err := os.ReadFile(file)
		line = bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		if err == nil && pid > 1 && pid != os.Getpid() && strings.Contains(string(line), text) {
			found = append(found, process{pid, string(line)})
		}
	}
	return found, err
}
