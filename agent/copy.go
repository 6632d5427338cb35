package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// describedLimit bounds the line that describes an imported build, which holds the output of -V.
const describedLimit = 1 << 20

// exported answers with a build as one stream, and tells in the trailer how that ended.
func (s *session) exported(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	w.Header().Set("Content-Type", "application/zstd")
	w.Header().Set("Trailer", wire.EndTrailer)
	var b lab.Build
	err := s.read(r, anyone, &b)
	_ = http.NewResponseController(w).Flush() // an answer of no byte must have its trailer too
	if err == nil {
		err = s.parts.export(r.Context(), b, w)
	}
	end, encodeErr := json.Marshal(wire.Reply[wire.None]{Error: wire.From(err, kindOf(err))})
	if encodeErr != nil {
		panic(http.ErrAbortHandler) // cuts the answer off
	}
	w.Header().Set(wire.EndTrailer, string(end))
}

// imported keeps the build in a request's body.
func (s *session) imported(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	var answer wire.Reply[lab.Build]
	err := s.permitted(claimant)
	if err == nil {
		answer.Result, err = s.importBody(r)
	}
	if _, cut := io.Copy(io.Discard, r.Body); err == nil && cut != nil { // who still sends hears no answer
		err = fmt.Errorf("read the request %s: %w", r.URL.Path, cut)
	}
	answer.Error = wire.From(err, kindOf(err))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the asker is gone when this fails
}

func (s *session) importBody(r *http.Request) (lab.Build, error) {
	body := bufio.NewReader(r.Body)
	line, err := described(body)
	var b lab.Build
	if err == nil {
		err = json.Unmarshal(line, &b)
	}
	if err != nil {
		return b, &wire.Error{Kind: wire.KindRequest, Message: fmt.Sprintf("read the request %s: %v", r.URL.Path, err)}
	}
	return s.parts.take(r.Context(), b, body)
}

// described is the first line of a body, and no byte more.
func described(body *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := body.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("the line that describes the build: %w", err)
		case len(line) > describedLimit:
			return nil, fmt.Errorf("the line that describes the build has more than %d bytes", describedLimit)
		}
	}
}
