package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

// age is a duration that may be given in days; 0 is none.
type age time.Duration

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

func (a *age) Type() string { return "age" }

func (a *age) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || d <= 0 {
		return errors.New("an age is more than 0, as in 30d or 12h")
	}
	*a = age(d)
	return nil
}

// removal is which builds are to go.
type removal struct {
	ids    []string
	all    bool
	unused time.Duration
	json   bool
}

func newBuildsRm(a *app) *cobra.Command {
	var r removal
	var o access
	cmd := &cobra.Command{
		Use:   "rm ID[,ID…] [FILE] [HOST…]",
		Short: "Remove builds from hosts, and what interrupted builds have left",
		Long: "rm is refused by a host that a campaign holds. What is removed is made anew when a study needs it. With --all or\n" +
			"--unused no ID is given.",
		Example: "  ngxlab builds rm 1f0c,77ab\n  ngxlab builds rm --unused 30d study.yaml\n  ngxlab builds rm --all root@web1",
		RunE: func(cmd *cobra.Command, given []string) error {
			if !r.all && r.unused == 0 {
				if len(given) == 0 {
					return &usageError{err: errors.New("no ID of a build is given"), hint: "name it, or add --all or --unused 30d"}
				}
				r.ids, given = strings.Split(given[0], ","), given[1:]
			}
			x, err := chosen(given, o)
			if err != nil {
				return err
			}
			return removeBuilds(cmd.Context(), a, x, r)
		},
	}
	cmd.Flags().BoolVar(&r.all, "all", false, "all builds")
	cmd.Flags().Var((*age)(&r.unused), "unused", "those that no study has used for so long, as in 30d or 12h")
	cmd.Flags().BoolVar(&r.json, "json", false, "print an array")
	o.flags(cmd)
	return cmd
}

// removeBuilds removes on every host what it has of the builds. An ID that no host has is an error, before anything goes.
func removeBuilds(ctx context.Context, a *app, x lab.Experiment, r removal) error {
	kept := a.kept(ctx, x)
	if err := r.known(kept); err != nil {
		return errors.Join(failures(x, kept), err)
	}
	all := askHosts(ctx, a, x, func(ctx context.Context, i int, m *machine) (cleaned, error) {
		name, ids := x.Hosts[i].Name, r.chosen(kept[i].answer.Builds, a.now())
		if kept[i].err != nil || len(ids) == 0 {
			return cleaned{Host: name}, kept[i].err
		}
		c, err := m.unbuild(ctx, ids)
		return cleaned{name, c}, err
	})
	var err error
	if r.json {
		err = writeJSON(a.out, answersJSON(x, all))
	} else {
		err = printCleaned(a, all)
	}
	return errors.Join(err, failures(x, all))
}

// known refuses IDs that no host has, and those that fit several builds of one.
func (r removal) known(kept []asked[keptOn]) error {
	for _, id := range r.ids {
		fit := map[string]bool{}
		for _, one := range kept {
			for _, b := range one.answer.Builds {
				if id != "" && strings.HasPrefix(b.ID, id) {
					fit[b.ID] = true
				}
			}
		}
		switch {
		case len(fit) == 0:
			return noBuild(id)
		case len(fit) > 1:
			return &usageError{err: errors.New("several builds begin with " + id + ": " + strings.Join(slices.Sorted(maps.Keys(fit)), ", ")), hint: "give more of the ID"}
		}
	}
	return nil
}

// chosen are the IDs of a host's builds that are to go.
func (r removal) chosen(builds []lab.KeptBuild, now time.Time) []string {
	var ids []string
	for _, b := range builds {
		named := slices.ContainsFunc(r.ids, func(id string) bool { return strings.HasPrefix(b.ID, id) })
		if r.all || named || r.unused > 0 && now.Sub(b.Used) >= r.unused {
			ids = append(ids, b.ID)
		}
	}
	return ids
}
