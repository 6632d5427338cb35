package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// exporting is a session on a host that has the real nginx.
func exporting(t *testing.T) (asker, lab.Build) {
	t.Helper()
	b, dir := testlab.Nginx(t), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "builds", b.ID), os.DirFS(filepath.Dir(b.Binary))); err != nil {
		t.Fatal(err)
	}
	return serve(t, Options{Dir: dir, Hash: hash}), b
}

// export asks for a build and returns the stream and how it ended.
func (a asker) export(t *testing.T, b lab.Build) ([]byte, wire.Reply[wire.None]) {
	t.Helper()
	request, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Post("http://agent"+wire.PathExport, "application/json", bytes.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	stream, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var end wire.Reply[wire.None]
	if err := json.Unmarshal([]byte(answer.Trailer.Get(wire.EndTrailer)), &end); err != nil {
		t.Fatal(err)
	}
	return stream, end
}

// importing sends the body of an import, in chunks, and returns the answer.
func (a asker) importing(t *testing.T, b lab.Build, stream io.Reader) (wire.Reply[lab.Build], error) {
	t.Helper()
	line, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	body := io.MultiReader(bytes.NewReader(append(line, '\n')), stream)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agent"+wire.PathImport, body)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.Reply[lab.Build]
	answer, err := a.Do(r)
	if err != nil {
		return got, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	return got, json.NewDecoder(answer.Body).Decode(&got)
}

func TestBuildIsCopiedFromHostToHostAndServed(t *testing.T) {
	from, b := exporting(t)
	stream, end := from.export(t, b)
	if end.Error != nil {
		t.Fatal(end.Error)
	}
	dir := t.TempDir()
	to := serve(t, Options{Dir: dir, Exe: testlab.Agent(t), Hash: hash})
	if got, err := to.importing(t, b, bytes.NewReader(stream)); err != nil || got.Error == nil || got.Error.Kind != wire.KindUnclaimed {
		t.Errorf("import without a claim: %+v, %v", got, err)
	}
	to.post(t, wire.PathClaim, `{"campaign":"c1","owner":"ana"}`)
	got, err := to.importing(t, b, bytes.NewReader(stream))
	if err != nil || got.Error != nil || got.Result.ID != b.ID || !strings.HasPrefix(got.Result.Binary, dir) {
		t.Fatalf("%+v, %v", got, err)
	}
	recipe, err := json.Marshal(testlab.Recipe())
	if err != nil {
		t.Fatal(err)
	}
	if lines := to.post(t, wire.PathBuild, string(recipe)); !strings.Contains(lines[0], `"cached":true`) || !strings.Contains(lines[0], b.ID) {
		t.Errorf("built again: %.300v", lines)
	}
	t.Logf("%d bytes", len(stream))
}

func TestExportThatFailsSaysSoInItsTrailer(t *testing.T) {
	from, b := exporting(t)
	b.ID = strings.Repeat("0", 16)
	if stream, end := from.export(t, b); len(stream) > 0 || end.Error == nil || !strings.Contains(end.Error.Message, "no build") {
		t.Errorf("%d bytes, %+v", len(stream), end)
	}
}

func TestImportThatIsCutOffLeavesNothing(t *testing.T) {
	from, b := exporting(t)
	stream, _ := from.export(t, b)
	dir := t.TempDir()
	to := serve(t, Options{Dir: dir, Exe: testlab.Agent(t), Hash: hash})
	to.post(t, wire.PathClaim, `{"campaign":"c1","owner":"ana"}`)
	if got, err := to.importing(t, b, bytes.NewReader(stream[:len(stream)/2])); err != nil || got.Error == nil || !strings.Contains(got.Error.Message, "not whole") {
		t.Errorf("half: %+v, %v", got, err)
	}
	cut := io.MultiReader(bytes.NewReader(stream[:len(stream)/2]), brokenOff{})
	if _, err := to.importing(t, b, cut); err == nil {
		t.Error("an asker that broke off was answered")
	}
	testlab.Eventually(t, "nothing is left of the import", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "builds", "*"))
		return err == nil && len(left) == 1 && filepath.Base(left[0]) == ".lock-"+b.ID
	})
	if got, err := to.importing(t, b, strings.NewReader("")); err != nil || got.Error == nil {
		t.Errorf("empty: %+v, %v", got, err)
	}
	for _, line := range []string{"", "{", strings.Repeat("x", describedLimit+8192)} {
		r, err := to.Post("http://agent"+wire.PathImport, "", strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		var answer wire.Reply[lab.Build]
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Error == nil || answer.Error.Kind != wire.KindRequest {
			t.Errorf("%.20q: %+v, %v", line, answer, err)
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
