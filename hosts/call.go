package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"ngxlab/agent/wire"
)

// open sends a request and returns the body of the answer, which ends with ctx.
func (h *Host) open(ctx context.Context, path string, request any) (io.ReadCloser, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, h.failed(ctx, path, err)
	}
	answer, err := h.post(ctx, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// post sends a body to the agent and returns its answer, which ends with ctx.
func (h *Host) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, body)
	if err != nil {
		return nil, h.failed(ctx, path, err)
	}
	answer, err := h.client.Do(r)
	if err != nil {
		return nil, h.failed(ctx, path, err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // only read
		return nil, h.failed(ctx, path, fmt.Errorf("the agent answers %s", answer.Status))
	}
	return answer, nil
}

// failed is the error of a call: what the agent said, that ctx ended, or that the link is gone.
func (h *Host) failed(ctx context.Context, path string, err error) error {
	var sent *wire.Error
	switch {
	case errors.As(err, &sent) && ctx.Err() != nil: // the agent may still say what was interrupted there
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case errors.As(err, &sent):
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case silent(err), h.ended():
		err = h.gone(err)
	}
	return fmt.Errorf("%s: %s: %w", h.name, strings.TrimPrefix(path, "/"), err)
}

// ended reports whether the session has ended, or does now: a call may fail a moment before.
func (h *Host) ended() bool {
	select {
	case <-h.session.CloseChan():
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// call asks for one result. With an error the result holds what was done before it.
func call[Res any](ctx context.Context, h *Host, path string, request any) (Res, error) {
	body, err := h.open(ctx, path, request)
	if err != nil {
		var none Res
		return none, err
	}
	return reply[Res](ctx, h, path, body)
}

// reply reads the one result of an answer.
func reply[Res any](ctx context.Context, h *Host, path string, body io.ReadCloser) (Res, error) {
	var answer wire.Reply[Res]
	defer body.Close() //nolint:errcheck // only read
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return answer.Result, h.failed(ctx, path, fmt.Errorf("the answer is cut off: %w", err))
	}
	if answer.Error != nil {
		return answer.Result, h.failed(ctx, path, answer.Error)
	}
	return answer.Result, nil
}

// answer is a stream of lines under way.
type answer[Item any] struct {
	host *Host
	path string
	body io.ReadCloser
	json *json.Decoder
}

func ask[Item any](ctx context.Context, h *Host, path string, request any) (*answer[Item], error) {
	body, err := h.open(ctx, path, request)
	if err != nil {
		return nil, err
	}
	return &answer[Item]{host: h, path: path, body: body, json: json.NewDecoder(body)}, nil
}

// next returns the next item, nil at the end; what is log goes to log.
func (a *answer[Item]) next(ctx context.Context, log io.Writer) (*Item, error) {
	for {
		var line wire.Line[Item]
		if err := a.json.Decode(&line); err != nil {
			return nil, a.host.failed(ctx, a.path, fmt.Errorf("the answer is cut off: %w", err))
		}
		switch {
		case line.Error != nil:
			return nil, a.host.failed(ctx, a.path, line.Error)
		case line.Item != nil:
			return line.Item, nil
		case line.End:
			return nil, nil
		}
		if _, err := io.WriteString(log, line.Log); err != nil {
			return nil, a.host.failed(ctx, a.path, fmt.Errorf("write its log: %w", err))
		}
	}
}
