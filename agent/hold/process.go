package hold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"ngxlab/lab"
)

// demand is what a holder is told on its standard input, one JSON object per line.
type demand struct {
	Connections int `json:"connections"`
}

// reply is what it answers on its standard output when it is done with a demand.
type reply struct {
	Open     int    `json:"open"`
	Answered int    `json:"answered"` // since the reply before
	Failed   int    `json:"failed"`
	Error    string `json:"error,omitempty"`
	RSSBytes int64  `json:"rss_bytes"`
}

// holder is one process that holds connections.
type holder struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *json.Decoder
	problems *bytes.Buffer
}

// spawn starts a holder in its own process group. It outlives the call, and ends when its input is closed and with the
// calling thread.
func spawn(ctx context.Context, self string, args []string, campaign lab.CampaignID) (*holder, error) {
	p := &holder{cmd: exec.CommandContext(context.WithoutCancel(ctx), self, args...), problems: &bytes.Buffer{}}
	p.cmd.Env = minimal(campaign)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr, p.cmd.WaitDelay = p.problems, time.Second
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	return p, nil
}

// fill has the holder hold so many connections.
func (p *holder) fill(connections int) (reply, error) {
	var r reply
	err := json.NewEncoder(p.in).Encode(demand{Connections: connections})
	if err == nil {
		err = p.out.Decode(&r)
	}
	if err != nil {
		return r, fmt.Errorf("holder %d ended: %w", p.cmd.Process.Pid, err)
	}
	return r, nil
}

// end closes the holder's input and waits for it; one that does not end in time is killed. Its error is what it said last,
// when it ended by itself before.
func (p *holder) end(limit time.Duration) error {
	_ = p.in.Close() // it may have ended already
	kill := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return fmt.Errorf("holder %d: %s: %w", p.cmd.Process.Pid, strings.TrimSpace(p.problems.String()), err)
	}
	return nil
}
