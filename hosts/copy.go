package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// errCutOff says that a stream ended before its end.
var errCutOff = errors.New("the stream is cut off")

// Export writes a build that the host has to w, as a tar archive compressed with zstandard. After an error what w got is
// not whole.
func (h *Host) Export(ctx context.Context, b lab.Build, w io.Writer) error {
	body, err := json.Marshal(b)
	if err != nil {
		return h.failed(ctx, wire.PathExport, err)
	}
	answer, err := h.post(ctx, wire.PathExport, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if _, err := io.Copy(w, answer.Body); err != nil {
		return h.failed(ctx, wire.PathExport, err)
	}
	if err := ended(answer.Trailer); err != nil {
		return h.failed(ctx, wire.PathExport, err)
	}
	return nil
}

// ended is what the trailer says of the stream before it.
func ended(trailer http.Header) error {
	var end wire.Reply[wire.None]
	if text := trailer.Get(wire.EndTrailer); text == "" {
		return errCutOff
	} else if err := json.Unmarshal([]byte(text), &end); err != nil {
		return fmt.Errorf("%w: %w", errCutOff, err)
	}
	if end.Error != nil {
		return end.Error
	}
	return nil
}

// Import keeps a build that another host exported, so that Build of the same recipe finds it made; it returns the build
// as it is here. A host that has the build already needs nothing of r, which may then be empty. An r that fails, or is cut
// off, leaves nothing on the host.
func (h *Host) Import(ctx context.Context, b lab.Build, r io.Reader) (lab.Build, error) {
	line, err := json.Marshal(b)
	if err != nil {
		return lab.Build{}, h.failed(ctx, wire.PathImport, err)
	}
	answer, err := h.post(ctx, wire.PathImport, io.MultiReader(bytes.NewReader(append(line, '\n')), r))
	if err != nil {
		return lab.Build{}, err
	}
	return reply[lab.Build](ctx, h, wire.PathImport, answer.Body)
}
