package standin

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Pack makes the archive to of a folder, in the format that its name ends in: .tar.gz, .tar.xz or .zip. The folder's
// own name comes first in every path.
func Pack(ctx context.Context, dir, to string) error {
	switch {
	case strings.HasSuffix(to, ".zip"):
		return zipped(dir, to)
	case strings.HasSuffix(to, ".tar.gz"), strings.HasSuffix(to, ".tar.xz"):
		out, err := exec.CommandContext(ctx, "tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
			"-C", filepath.Dir(dir), "-caf", to, filepath.Base(dir)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("pack %s: %w: %s", to, err, out)
		}
		return nil
	}
	return fmt.Errorf("%s ends in neither .tar.gz, .tar.xz nor .zip", to)
}

func zipped(dir, to string) (err error) {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// The parent is what is walked, so that the paths begin with the folder's name.
	w := zip.NewWriter(file)
	if err := w.AddFS(only{os.DirFS(filepath.Dir(dir)), filepath.Base(dir)}); err != nil {
		return fmt.Errorf("pack %s: %w", to, err)
	}
	return w.Close()
}
