package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"ngxlab/lab"
)

// fromGit fetches one commit and unpacks it; its sum is the commit. Its version is that of a tag which the repository has
// for the commit.
func (c Cache) fromGit(ctx context.Context, j job, s lab.BuildSource, into string) (got, error) {
	if s.Commit == "" {
		return got{}, fmt.Errorf("source %s: commit is compulsory with git", s.Git)
	}
	repo, archive := into+".git", into+".tar"
	steps := [][]string{
		{"git", "init", "--quiet", "--bare", "--", repo},
		{"git", "-C", repo, "fetch", "--quiet", "--depth=1", "--", s.Git, s.Commit},
		{"git", "-C", repo, "archive", "--format=tar", "--prefix=source/", "--output=" + archive, s.Commit},
	}
	for _, argv := range steps {
		if err := c.git(ctx, j, s, argv, j.log); err != nil {
			return got{}, fmt.Errorf("source %s at %s: %w", s.Git, s.Commit, err)
		}
	}
	var tags strings.Builder // none is no error: the version is not known then
	_ = c.git(ctx, j, s, []string{"git", "ls-remote", "--quiet", "--tags", "--", s.Git}, &tags)
	if _, err := c.unpackFile(ctx, archive, into); err != nil {
		return got{}, fmt.Errorf("source %s at %s: %w", s.Git, s.Commit, err)
	}
	return got{version: tagged(tags.String(), s.Commit), sums: map[string]string{s.Git + "@" + s.Commit: s.Commit}}, nil
}

// git runs git as who compiles, where no right of the agent's user is needed: a repository of the host's own may be open to
// that user alone, and so are keys for SSH.
func (c Cache) git(ctx context.Context, j job, s lab.BuildSource, argv []string, out io.Writer) error {
	command := lab.Command{Argv: argv, Dir: j.maker.work, Env: []string{"GIT_TERMINAL_PROMPT=0"}, Deadline: lab.Duration{Duration: 10 * time.Minute}}
	if anonymous.MatchString(s.Git) {
		command = j.maker.of(command)
	}
	err := c.run(ctx, command, out)
	if errors.Is(err, errNotFound) {
		return fmt.Errorf("%w; install the package git", err)
	}
	return err
}

// anonymous are the addresses that git asks without keys (gitprotocol-v2(5), git-clone(1)).
var anonymous = regexp.MustCompile(`^(https?|git)://`)

// tagVersion is the version in the name of a tag: "0.63" of v0.63, "1.26.3" of release-1.26.3.
var tagVersion = regexp.MustCompile(`^(?:[A-Za-z_]+[-_])?v?(\d+(\.\d+)+\S*)$`)

// tagged is the version in the name of a tag that a commit has, by the output of git ls-remote --tags: the commit or the tag
// object, a tab, refs/tags/NAME; an annotated tag has a second line for its commit, which ends with ^{}.
func tagged(remote, commit string) string {
	for line := range strings.Lines(remote) {
		sum, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name := strings.TrimSuffix(filepath.Base(ref), "^{}")
		if found := tagVersion.FindStringSubmatch(name); found != nil && strings.EqualFold(sum, commit) {
			return found[1]
		}
	}
	return ""
}
