package server

import (
	"path"
	"strings"
	"sync"

	"ngxlab/lab"
)

// bodies are the files of site file: those of the section, and one of body_bytes for each other path that is asked for.
func bodies(in Input) (map[string]lab.Body, error) {
	if in.Spec.Site != "file" {
		return nil, nil
	}
	sizes := map[string]int64{bodyFile(DefaultURL("file")): in.Spec.BodyBytes}
	for _, url := range in.URLs {
		if url != HoldURL {
			sizes[bodyFile(url)] = in.Spec.BodyBytes
		}
	}
	for url, size := range in.Spec.Bodies {
		sizes[bodyFile(url)] = size
	}
	files := map[string]lab.Body{}
	for name, size := range sizes {
		body, err := bodyOf(size)
		if err != nil {
			return nil, err
		}
		files[name] = body
	}
	return files, nil
}

// bodyFile is where the body of a path lies.
func bodyFile(url string) string {
	name, _, _ := strings.Cut(url, "?")
	if strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	return path.Join("html", path.Clean(name))
}

// bodiesBySize holds bodies by their size, which are always the same: a body is hashed once, not for each target and state.
var bodiesBySize sync.Map

func bodyOf(size int64) (lab.Body, error) {
	if body, ok := bodiesBySize.Load(size); ok {
		return body.(lab.Body), nil
	}
	body, err := lab.NewBody(size)
	if err == nil {
		bodiesBySize.Store(size, body)
	}
	return body, err
}
