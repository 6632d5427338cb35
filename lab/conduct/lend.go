package conduct

import (
	"context"
	"errors"
	"fmt"

	"ngxlab/lab"
)

// Lender makes the builds that a host cannot make and gives them to it: a container, for one, may have no way out to fetch
// a source.
type Lender struct {
	Name lab.HostName
	// Open returns the lender's Builder, and what lets it go.
	Open func(ctx context.Context) (b Builder, leave func() error, err error)
}

// lent is a build that a target cannot make, from its lender. Where there is none, or it cannot either, the target's own
// error why counts.
func (c *campaign) lent(ctx context.Context, recipe lab.Recipe, target lab.HostName, why error) (lab.Build, error) {
	lender := c.hosts[target].Lender
	if lender == nil || recipe.Installed != "" || ctx.Err() != nil || errors.Is(why, lab.ErrLost) {
		return lab.Build{}, why
	}
	say := func(text string) error {
		return c.say(ctx, lab.Event{Kind: lab.EventProblem, Host: target, Text: text})
	}
	if err := say(fmt.Sprintf("cannot make the build %s; trying to make it on %s and to copy it", recipe.Name, lender.Name)); err != nil {
		return lab.Build{}, err
	}
	build, err := c.borrow(ctx, recipe, target, lender)
	if err == nil {
		return build, nil
	}
	return lab.Build{}, errors.Join(why, say(fmt.Sprintf("the build %s cannot be lent by %s: %v", recipe.Name, lender.Name, err)))
}

// borrow lets the lender make a recipe, or find it made, and copies it to the target.
func (c *campaign) borrow(ctx context.Context, recipe lab.Recipe, target lab.HostName, lender *Lender) (build lab.Build, err error) {
	from, leave, err := lender.Open(ctx)
	if err != nil {
		return build, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	from = bounded{Machine: Machine{Builder: from}, name: lender.Name}
	made, err := c.made(ctx, recipe, lender.Name, from)
	if err != nil {
		return build, err
	}
	made.From = lender.Name
	return transfer(ctx, made, from, c.hosts[target])
}
