package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

// planOptions are the flags of plan.
type planOptions struct {
	file      string
	seed      uint64
	json      bool
	noInstall bool
}

func newPlan(a *app) *cobra.Command {
	o := planOptions{}
	cmd := &cobra.Command{
		Use:     "plan FILE",
		Short:   "Say what an experiment would do here, and how long it takes; nothing is changed",
		Example: "  ngxlab plan study.yaml\n  ngxlab plan quickstart --json | jq .rounds",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			o.file = given[0]
			return showPlan(cmd.Context(), a, o)
		},
	}
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "seed of the order (default: made from the file)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the whole plan as JSON")
	noInstallFlag(cmd, &o.noInstall)
	return cmd
}

// noInstallFlag is the flag that forbids packages to be installed.
func noInstallFlag(cmd *cobra.Command, forbidden *bool) {
	cmd.Flags().BoolVar(forbidden, "no-install", false, "install no packages on the hosts: refuse a plan that needs some")
}

// showPlan prints the plan; one that is refused is printed too, with every refusal, and is an error.
func showPlan(ctx context.Context, a *app, o planOptions) error {
	x, err := loadExperiment(o.file)
	if err != nil {
		return err
	}
	return a.withFleet(ctx, x, func(f *fleet) error {
		if err := a.pendingNote(ctx, f); err != nil {
			return err
		}
		facts, err := f.facts(ctx, x, o.noInstall)
		if err != nil {
			return err
		}
		if o.seed == 0 {
			o.seed = seedOf(x, "")
		}
		pl, err := plan.New(x, facts, o.seed)
		if err != nil {
			return err
		}
		if pl, err = a.tried(ctx, f, pl); err != nil {
			return err
		}
		return a.printPlan(pl, o)
	})
}

func (a *app) printPlan(pl lab.Plan, o planOptions) error {
	write := func() error { return writePlan(a.out, pl) }
	if o.json {
		write = func() error { return writeJSON(a.out, pl) }
	}
	if err := write(); err != nil {
		return err
	}
	if len(pl.Fatal()) > 0 {
		return fmt.Errorf("%s cannot be carried out: %s", o.file, count(len(pl.Fatal()), "refusal"))
	}
	return nil
}
