package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/plan"
	"ngxlab/lab/tune"
	"ngxlab/store"
)

func newResume(a *app) *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:     "resume [CAMPAIGN]",
		Short:   "Do the missing runs of a campaign (default: the latest)",
		Example: "  ngxlab resume\n  ngxlab resume study-20260102-150405",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.writing(cmd.Context(), func(s *store.Store) error { return resume(cmd.Context(), a, s, first(given), o) })
		},
	}
	o.flags(cmd)
	return cmd
}

// first is the first argument, "" when there is none.
func first(given []string) string {
	if len(given) == 0 {
		return ""
	}
	return given[0]
}

// resume conducts the stored plan again; the engine skips what is done. Under other conditions than those of the plan
// a new part begins, whose runs are never compared with the earlier ones.
func resume(ctx context.Context, a *app, s *store.Store, id string, o runOptions) error {
	c, err := campaign(ctx, s, id)
	if err != nil {
		return err
	}
	if c.Status.Measured() {
		return &hinted{err: fmt.Errorf("campaign %s is done", c.ID), hint: fmt.Sprintf("\"ngxlab report %s\" writes its report", c.ID)}
	}
	pl, err := s.Plan(ctx, c.ID)
	if err != nil {
		return err
	}
	return a.withFleet(ctx, pl.Experiment, func(f *fleet) error {
		facts, err := a.claimed(ctx, f, pl.Experiment, c.ID, o.noInstall)
		if err != nil {
			return err
		}
		if pl, err = a.replanned(ctx, s, c, pl, facts); err != nil {
			return err
		}
		if pl, err = a.triedAgain(ctx, f, c, pl); err != nil {
			return err
		}
		if err := allowed(pl, o); err != nil {
			return err
		}
		return a.conduct(ctx, s, f, c.ID, pl, o)
	})
}

// triedAgain is the plan with what builds say of it, unless no server of a state is to be started any more.
func (a *app) triedAgain(ctx context.Context, f *fleet, c lab.Campaign, pl lab.Plan) (lab.Plan, error) {
	if c.Parts == pl.Part && c.Runs >= pl.Experiment.Repeat.Max*len(pl.Cells) {
		return pl, nil // what lacks is of the capacity part
	}
	return a.tried(ctx, f, pl)
}

// replanned is the stored plan while the hosts are what they were, else a new plan for a new part of the campaign.
func (a *app) replanned(ctx context.Context, s *store.Store, c lab.Campaign, pl lab.Plan, facts map[lab.HostName]lab.Facts) (lab.Plan, error) {
	fresh, err := plan.New(pl.Experiment, facts, pl.Seed)
	changed := changes(pl, facts)
	switch {
	case err != nil:
		return pl, err
	case c.Runs == 0:
		return fresh, nil
	case len(changed) == 0:
		return a.readdressed(pl, fresh), nil
	}
	for _, text := range changed {
		a.note("changed since the campaign began: %s", text)
		event := lab.Event{At: a.now().UTC(), Kind: lab.EventSplit, Campaign: c.ID, Text: text}
		if err := s.Event(ctx, c.ID, event); err != nil {
			return pl, err
		}
	}
	fresh.Part = c.Parts + 1
	a.note("part %d begins: its runs are not compared with the earlier ones", fresh.Part)
	return fresh, nil
}

// readdressed is the stored plan with what is missing now and what forbids to have it, and with the addresses at which the
// hosts are now: a container made anew has another, and is the same host.
func (a *app) readdressed(pl, fresh lab.Plan) lab.Plan {
	pl.Packages, pl.Refused, pl.Warnings = fresh.Packages, fresh.Refused, fresh.Warnings // those installed meanwhile are not installed again
	pl.Estimate, pl.EstimateMax = fresh.Estimate, fresh.EstimateMax
	moved := false
	facts := maps.Clone(pl.Facts)
	for _, h := range pl.Experiment.Hosts {
		was, is := pl.LoadAddress(h.Name), fresh.LoadAddress(h.Name)
		if was == is {
			continue
		}
		a.note("%s has another address: %s → %s", h.Name, was, is)
		f := facts[h.Name]
		f.Address, moved = fresh.Facts[h.Name].Address, true
		facts[h.Name] = f
	}
	if moved {
		pl.Facts, pl.Drivings, pl.Servings, pl.Capacity = facts, fresh.Drivings, fresh.Servings, fresh.Capacity
	}
	return pl
}

// changes lists what is no longer as the plan found it, in words.
func changes(pl lab.Plan, now map[lab.HostName]lab.Facts) []string {
	var all []string
	for _, h := range pl.Experiment.Hosts {
		was, is := pl.Facts[h.Name], now[h.Name]
		for _, c := range []struct{ what, was, is string }{
			{"kernel", was.Kernel, is.Kernel}, {"boot", was.BootID, is.BootID}, {"CPU", was.CPUModel, is.CPUModel},
			{"number of cores", fmt.Sprint(was.Cores), fmt.Sprint(is.Cores)}, {"memory", size(float64(was.MemoryBytes)), size(float64(is.MemoryBytes))},
			{"distribution", was.Distribution, is.Distribution}, {"compiler", was.Compiler, is.Compiler},
			{"hard limit of open files", fmt.Sprint(was.NofileHard), fmt.Sprint(is.NofileHard)}, {"root", fmt.Sprint(was.Root), fmt.Sprint(is.Root)},
		} {
			installed := c.what == "compiler" && c.was == "" // by the campaign itself
			if c.was != c.is && !installed {
				all = append(all, fmt.Sprintf("%s of %s: %s → %s", c.what, h.Name, c.was, c.is))
			}
		}
		all = append(all, changedTools(h.Name, was, is)...)
		all = append(all, changedKnobs(pl, h.Name, is)...)
	}
	return all
}

func changedTools(host lab.HostName, was, is lab.Facts) []string {
	var all []string
	for _, tool := range slices.Sorted(maps.Keys(was.ToolVersions)) {
		if v := is.ToolVersions[tool]; v != was.ToolVersions[tool] {
			all = append(all, fmt.Sprintf("%s of %s: %s → %s", tool, host, was.ToolVersions[tool], v))
		}
	}
	return all
}

func changedKnobs(pl lab.Plan, host lab.HostName, is lab.Facts) []string {
	var all []string
	for _, s := range pl.Original.Settings[host] {
		v, present := is.Sysctls[s.Knob.Name]
		if s.Knob.Kind == lab.KnobSysctl && (!present || !tune.Equal(s.Knob, v, s.Value)) {
			all = append(all, fmt.Sprintf("%s of %s: %s → %s", s.Knob.Name, host, s.Value, v))
		}
	}
	return all
}
