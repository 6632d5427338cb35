package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ngxlab/lab"
)

// parts are the containers and networks of a lab, whoever made them.
func (e *Engine) parts(ctx context.Context, name string) ([]box, []bridge, error) {
	labels := map[string]string{labelLab: name}
	boxes, err := e.api.boxes(ctx, labels)
	if err != nil {
		return nil, nil, err
	}
	networks, err := e.api.networks(ctx, labels)
	return boxes, networks, err
}

// Own refuses a lab that another user made, with a *Problem of kind Foreign. A lab that is not there is nobody's.
func (e *Engine) Own(ctx context.Context, name string) error {
	if !labName.MatchString(name) {
		return nil // no lab can have this name
	}
	boxes, networks, err := e.parts(ctx, name)
	if err != nil {
		return err
	}
	if p := e.foreign(name, boxes, networks); p != nil {
		return p
	}
	return nil
}

// foreign tells of the first part of a lab that is another user's; nil when all are this one's.
func (e *Engine) foreign(name string, boxes []box, networks []bridge) *Problem {
	var all []map[string]string
	for _, b := range boxes {
		all = append(all, b.labels)
	}
	for _, n := range networks {
		all = append(all, n.labels)
	}
	own, _ := readKeys(e.labDir(name)) // without a key the name decides
	for _, labels := range all {
		if e.mine(labels, own.public) {
			continue
		}
		owner := ownerText(labels[labelOwner])
		return &Problem{Kind: Foreign, What: fmt.Sprintf("lab %s of %s is there on this engine", name, owner),
			Cure: fmt.Sprintf("name the experiment otherwise, or ask %s to take it down", owner)}
	}
	return nil
}

// mine reports whether this user made what has the labels: with the lab's key, or under the same name, having lost the
// key since. What says nothing of that is everybody's.
func (e *Engine) mine(labels map[string]string, public string) bool {
	owner, key := labels[labelOwner], labels[labelKey]
	return owner == e.owner || key != "" && key == public || owner == "" && key == ""
}

// ownerText is the owner as a label has it.
func ownerText(label string) string {
	if label == "" {
		return "another user"
	}
	return label
}

// How long a container may take to say who holds it, and how many are asked at the same time.
const (
	holderMost  = 15 * time.Second
	askedAtOnce = 16
)

// held refuses containers of a lab that a campaign holds, with a *Problem of kind Held. One that does not say is told of,
// and stands in nobody's way; one that does not run, nobody holds.
func (e *Engine) held(ctx context.Context, name string, boxes []box) error {
	if e.holder == nil {
		return nil
	}
	boxes = slices.DeleteFunc(slices.Clone(boxes), func(b box) bool { return b.state != "running" && b.state != "paused" })
	holders, errs := make([]lab.Holder, len(boxes)), make([]error, len(boxes))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, b := range boxes {
		group.Go(func() error {
			holders[i], errs[i] = e.ask(ctx, b)
			return nil
		})
	}
	_ = e.during("asking the hosts of lab "+name+" whether a campaign holds them", group.Wait) // the errors are in errs
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	by := map[string][]string{}
	for i, b := range boxes {
		switch host := b.labels[labelHost]; {
		case errs[i] != nil:
			e.say(fmt.Sprintf("lab %s: %s cannot be asked whether a campaign holds it: %v", name, host, errs[i]))
		case holders[i].Owner != "":
			by[holderText(holders[i])] = append(by[holderText(holders[i])], host)
		}
	}
	if len(by) == 0 {
		return nil
	}
	var all []string
	for _, text := range slices.Sorted(maps.Keys(by)) {
		all = append(all, text+" ("+strings.Join(by[text], ", ")+")")
	}
	return &Problem{Kind: Held, What: strings.Join(all, ", and "), Cure: "wait until that campaign has ended, or end it"}
}

// ask asks one container who holds it.
func (e *Engine) ask(ctx context.Context, b box) (lab.Holder, error) {
	if b.state == "paused" {
		return lab.Holder{}, errors.New("it is paused")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, holderMost, fmt.Errorf("no answer within %v", holderMost))
	defer cancel()
	return e.holder(ctx, e.doorOf(b), lab.HostName(b.labels[labelHost]))
}

func holderText(h lab.Holder) string {
	return fmt.Sprintf("in use by %s, campaign %s, since %s", h.Owner, h.Campaign, h.Since.UTC().Format(time.RFC3339))
}
