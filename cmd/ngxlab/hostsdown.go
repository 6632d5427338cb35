package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ngxlab/hosts/docker"
)

// downOptions are the flags of hosts down.
type downOptions struct{ images, force, json bool }

func newHostsDown(a *app) *cobra.Command {
	o := downOptions{}
	cmd := &cobra.Command{
		Use:   "down FILE|LAB…",
		Short: "Remove Docker labs: their containers, networks and keys, and nothing else",
		Long: "A lab is named after its experiment, and is found by its label: \"ngxlab hosts list\" shows those there are. One that a\n" +
			"campaign holds stays, and so does another user's.",
		Example: "  ngxlab hosts down study.yaml\n  ngxlab hosts down docker-lab --images",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			labs, err := labNames(given)
			if err != nil {
				return err
			}
			return hostsDown(cmd.Context(), a, labs, o)
		},
	}
	cmd.Flags().BoolVar(&o.images, "images", false, "also remove the images that ngxlab made")
	cmd.Flags().BoolVar(&o.force, "force", false, "also a lab that a campaign holds, or that is another user's")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	return cmd
}

// labNames are the labs that the words name: that of an experiment's file, or by name.
func labNames(given []string) ([]string, error) {
	names := make([]string, len(given))
	for i, word := range given {
		names[i] = word
		if !namesExperiment(word) {
			continue
		}
		x, err := loadExperiment(word)
		if err != nil {
			return nil, err
		}
		names[i] = x.Name
	}
	return names, nil
}

// downLab is what hosts down removed of a lab.
type downLab struct {
	Lab        string   `json:"lab"`
	Containers []string `json:"containers"`
	Networks   []string `json:"networks"`
	Keys       []string `json:"keys"` // directories
	Images     []string `json:"images,omitempty"`
	TookS      float64  `json:"took_s"`
	Error      string   `json:"error,omitempty"` // why it, or a part of it, is still there
}

// hostsDown removes every lab named, also when one before could not be.
func hostsDown(ctx context.Context, a *app, labs []string, o downOptions) error {
	e, err := a.docker.open(ctx, a)
	if err != nil {
		return withCure(err)
	}
	var errs []error
	all := make([]downLab, len(labs))
	for i, name := range labs {
		began := time.Now()
		down := e.Down
		if o.force {
			down = e.ForceDown
		}
		r, err := down(ctx, name)
		errs = append(errs, notDown(name, err))
		all[i] = downLab{Lab: name, Containers: orEmpty(r.Containers), Networks: orEmpty(r.Networks), Keys: orEmpty(r.Keys), TookS: time.Since(began).Seconds()}
		if err != nil {
			all[i].Error = err.Error()
		}
	}
	if o.images {
		images, err := e.RemoveImages(ctx)
		all[len(all)-1].Images = images
		errs = append(errs, withCure(err))
	}
	return errors.Join(append(errs, printDown(a, all, o))...)
}

// notDown adds to why a lab was not taken down how it is all the same.
func notDown(name string, err error) error {
	var problem *docker.Problem
	if errors.As(err, &problem) && (problem.Kind == docker.Held || problem.Kind == docker.Foreign) {
		cure := problem.Cure
		if problem.Kind == docker.Foreign {
			cure = "ask who made it"
		}
		return &hostError{err: err, hint: fmt.Sprintf("%s; \"ngxlab hosts down --force %s\" takes the lab down all the same", cure, name)}
	}
	return withCure(err)
}

// withCure gives what went wrong with the engine its advice; nil stays nil.
func withCure(err error) error {
	var problem *docker.Problem
	if errors.As(err, &problem) {
		return &hostError{err: err, hint: problem.Cure}
	}
	return err
}

// orEmpty is a list that JSON shows as one when it has nothing.
func orEmpty(list []string) []string { return slices.Concat([]string{}, list) }

func printDown(a *app, all []downLab, o downOptions) error {
	if o.json {
		return writeJSON(a.out, all)
	}
	p := &page{w: a.out}
	for _, l := range all {
		switch removed := slices.Concat(l.Containers, l.Networks, l.Keys); {
		case len(removed) == 0 && l.Error != "": // told as an error
		case len(removed) == 0:
			p.line("lab %s: there is nothing of it", l.Lab)
		default:
			p.line("lab %s: removed %s in %s", l.Lab, joined(removed), seconds(l.TookS))
		}
		for _, image := range l.Images {
			p.line("removed image %s", image)
		}
	}
	return p.err
}
