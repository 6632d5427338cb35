package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// hasImage reports whether the engine has the image.
func (a *api) hasImage(ctx context.Context, ref string) (bool, error) {
	_, err := a.client.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// pull fetches an image from its registry, as long as something is heard of it at least every quiet.
func (a *api) pull(ctx context.Context, ref string, quiet time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(quiet, func() { cancel(errors.New("nothing was heard of the registry")) })
	defer silence.Stop()
	r, err := a.client.ImagePull(ctx, ref, image.PullOptions{})
	if err == nil {
		err = follow(r, func(string) { silence.Reset(quiet) })
	}
	return errors.Join(context.Cause(ctx), err)
}

// build makes an image with the classic builder from a TAR that holds a Dockerfile. What it prints goes to each.
func (a *api) build(ctx context.Context, tar io.Reader, ref string, labels map[string]string, args map[string]*string, each func(string)) error {
	r, err := a.client.ImageBuild(ctx, tar, build.ImageBuildOptions{
		Version: build.BuilderV1, Tags: []string{ref}, Labels: labels, BuildArgs: args, Remove: true, ForceRemove: true,
		NetworkMode: "host", // its way out is needed, not a bridge's, which may have none
	})
	if err != nil {
		return err
	}
	return follow(r.Body, each)
}

// load makes an image of the TAR of a root file system.
func (a *api) load(ctx context.Context, tar io.Reader, ref string, labels map[string]string) error {
	var changes []string
	for name, v := range labels {
		quoted, err := json.Marshal(v)
		if err != nil {
			return err
		}
		changes = append(changes, "LABEL "+name+"="+string(quoted))
	}
	r, err := a.client.ImageImport(ctx, image.ImportSource{Source: io.NopCloser(tar), SourceName: "-"}, ref, image.ImportOptions{Changes: changes})
	if err != nil {
		return err
	}
	return follow(r, func(string) {})
}

// ownImages returns the names of the images that have the label.
func (a *api) ownImages(ctx context.Context, label string) ([]string, error) {
	list, err := a.client.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
	var refs []string
	for _, i := range list {
		if len(i.RepoTags) == 0 {
			refs = append(refs, i.ID)
		}
		refs = append(refs, i.RepoTags...)
	}
	slices.Sort(refs)
	return refs, err
}

// removeImage removes an image; one that is gone already is no error, one in use is.
func (a *api) removeImage(ctx context.Context, ref string) error {
	_, err := a.client.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// follow reads the engine's account of something that takes long: JSON objects, the last of which tells an error.
func follow(r io.ReadCloser, each func(text string)) error {
	defer r.Close() //nolint:errcheck // only read
	for decoder := json.NewDecoder(r); ; {
		var message struct{ Stream, Status, Error string }
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if message.Error != "" {
			return errors.New(message.Error)
		}
		each(message.Stream + message.Status)
	}
}
