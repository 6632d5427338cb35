package conduct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ngxlab/lab"
)

// kin is what hosts must have in common for one binary to run on both.
type kin struct{ distribution, architecture string }

// build makes every recipe once for each distribution and architecture among the hosts whose servers are of it, on the
// first of them, and copies it to the others. Different ones are made at the same time.
func (c *campaign) build(ctx context.Context) error {
	for _, recipe := range c.plan.Builds {
		c.builds[recipe.Name] = map[lab.HostName]lab.Build{}
	}
	group, making := errgroup.WithContext(ctx)
	for _, family := range c.families() {
		group.Go(func() error {
			for _, recipe := range c.plan.Builds {
				if err := c.buildFor(making, recipe, c.users(recipe, family)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.compareInstalled(ctx)
}

// users are those of some hosts that run a server of a recipe.
func (c *campaign) users(recipe lab.Recipe, of []lab.HostName) []lab.HostName {
	var all []lab.HostName
	for _, name := range of {
		uses := func(s lab.Serving) bool { return s.Target == name && s.Recipe == recipe.Name }
		if slices.ContainsFunc(eachServing(c.plan), uses) {
			all = append(all, name)
		}
	}
	return all
}

// families are the hosts that can share a binary, each in the fixed order, targets first: they are what a binary is made
// on. A host of unknown kind is alone.
func (c *campaign) families() [][]lab.HostName {
	var families [][]lab.HostName
	at := map[kin]int{}
	names := c.names()
	slices.SortStableFunc(names, func(a, b lab.HostName) int {
		return cmp.Compare(c.behindTargets(a), c.behindTargets(b))
	})
	for _, name := range names {
		k := kin{c.plan.Facts[name].Distribution, c.plan.Facts[name].Architecture}
		i, known := at[k]
		if !known || k.distribution == "" || k.architecture == "" {
			i = len(families)
			at[k] = i
			families = append(families, nil)
		}
		families[i] = append(families[i], name)
	}
	return families
}

// behindTargets is 0 of a target, else 1.
func (c *campaign) behindTargets(name lab.HostName) int {
	if c.has(name, lab.RoleTarget) {
		return 0
	}
	return 1
}

// buildFor makes a recipe on the first host and copies it to the others. What is installed every host has by itself.
func (c *campaign) buildFor(ctx context.Context, recipe lab.Recipe, targets []lab.HostName) error {
	switch {
	case len(targets) == 0:
		return nil
	case recipe.Installed != "":
		return each(targets, func(name lab.HostName) error {
			_, err := c.buildOn(ctx, recipe, name)
			return err
		})
	}
	made, err := c.buildOn(ctx, recipe, targets[0])
	if err != nil {
		return err
	}
	return each(targets[1:], func(to lab.HostName) error { return c.copyTo(ctx, recipe, made, targets[0], to) })
}

// compareInstalled says which servers that targets have installed are not the same: states are compared within a target,
// and targets that differ by more than their knobs are not what people expect.
func (c *campaign) compareInstalled(ctx context.Context) error {
	for _, recipe := range c.plan.Builds {
		ids, texts := map[string]bool{}, []string{}
		for _, name := range c.users(recipe, c.names()) {
			if b := c.builds[recipe.Name][name]; c.has(name, lab.RoleTarget) {
				ids[b.ID] = true
				texts = append(texts, fmt.Sprintf("%s %s", name, b.Version))
			}
		}
		if recipe.Installed == "" || len(ids) < 2 {
			continue
		}
		text := fmt.Sprintf("the targets do not run the same %s: each has its own installed (%s)", recipe.Name, strings.Join(texts, ", "))
		if err := c.say(ctx, lab.Event{Kind: lab.EventProblem, Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// buildOn makes a recipe on a target, or finds it made.
func (c *campaign) buildOn(ctx context.Context, recipe lab.Recipe, target lab.HostName) (lab.Build, error) {
	if err := c.say(ctx, lab.Event{Kind: lab.EventBuild, Host: target, Text: recipe.Name}); err != nil {
		return lab.Build{}, err
	}
	build, err := c.made(ctx, recipe, target, c.hosts[target])
	if err != nil {
		build, err = c.lent(ctx, recipe, target, err)
	}
	if err != nil {
		return build, refused(ctx, fmt.Sprintf("make the build %s", recipe.Name), err, buildRefusal(recipe, target))
	}
	return build, c.built(ctx, recipe, target, build, builtText(recipe, build))
}

// made lets a host make a recipe, or find it made; its log becomes events.
func (c *campaign) made(ctx context.Context, recipe lab.Recipe, name lab.HostName, host Builder) (lab.Build, error) {
	lines, wait := c.logLines(name)
	build, err := host.Build(ctx, recipe, lines)
	err = errors.Join(err, lines.Close())
	wait()
	return build, err
}

// builtText says where a build comes from.
func builtText(recipe lab.Recipe, build lab.Build) string {
	switch {
	case recipe.Installed != "":
		return fmt.Sprintf("%s %s, installed at %s", recipe.Name, build.Version, build.Binary)
	case build.Cached && len(recipe.Package) > 0:
		return fmt.Sprintf("%s %s, unpacked before", recipe.Name, build.Version)
	case len(recipe.Package) > 0 && build.From == "":
		return fmt.Sprintf("%s %s, out of packages in %.1f s", recipe.Name, build.Version, build.TookS)
	case build.Cached && build.From != "":
		return fmt.Sprintf("%s %s, made on %s and copied before", recipe.Name, build.Version, build.From)
	case build.Cached:
		return fmt.Sprintf("%s %s, built before", recipe.Name, build.Version)
	case build.From != "":
		return fmt.Sprintf("%s %s, made on %s and copied", recipe.Name, build.Version, build.From)
	}
	return fmt.Sprintf("%s %s in %.1f s", recipe.Name, build.Version, build.TookS)
}

// built keeps a build that a target has.
func (c *campaign) built(ctx context.Context, recipe lab.Recipe, target lab.HostName, build lab.Build, text string) error {
	c.mu.Lock()
	c.builds[recipe.Name][target] = build
	c.mu.Unlock()
	if err := c.commit(ctx, lab.Record{Build: &build}); err != nil {
		return fmt.Errorf("record build %s of %s: %w", recipe.Name, target, err)
	}
	return c.say(ctx, lab.Event{Kind: lab.EventBuilt, Host: target, Text: text})
}

// copyTo gives a build to a further target, which builds for itself when it cannot take it: it may lack a library.
func (c *campaign) copyTo(ctx context.Context, recipe lab.Recipe, made lab.Build, from, to lab.HostName) error {
	began := time.Now()
	made.From = from
	build, err := transfer(ctx, made, c.hosts[from], c.hosts[to])
	if err != nil && (ctx.Err() != nil || errors.Is(err, lab.ErrLost)) {
		return fmt.Errorf("copy the build %s from %s to %s: %w", recipe.Name, from, to, err)
	}
	if err != nil {
		text := fmt.Sprintf("cannot take the build %s from %s, and builds for itself: %v", recipe.Name, from, err)
		if err := c.say(ctx, lab.Event{Kind: lab.EventProblem, Host: to, Text: text}); err != nil {
			return err
		}
		_, err := c.buildOn(ctx, recipe, to)
		return err
	}
	text := fmt.Sprintf("%s %s, copied from %s in %.1f s", recipe.Name, build.Version, from, time.Since(began).Seconds())
	if build.Cached {
		text = fmt.Sprintf("%s %s, the same as on %s before", recipe.Name, build.Version, from)
	}
	return c.built(ctx, recipe, to, build, text)
}

// errTaken ends an export whose reader needs no more.
var errTaken = errors.New("no more is needed")

// transfer asks whether a host has the build already, and sends it if not: from is read as fast as to takes it.
func transfer(ctx context.Context, made lab.Build, from, to Builder) (lab.Build, error) {
	if build, err := to.Import(ctx, made, strings.NewReader("")); err == nil || ctx.Err() != nil || errors.Is(err, lab.ErrLost) {
		return build, err
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := from.Export(ctx, made, w)
		_ = w.CloseWithError(err) // always nil; nil err is the end
		sent <- err
	}()
	build, err := to.Import(ctx, made, r)
	_ = r.CloseWithError(errTaken) // as above
	if exportErr := <-sent; err != nil && exportErr != nil && !errors.Is(exportErr, errTaken) {
		return build, exportErr // what was taken was cut off by it
	}
	return build, err
}
