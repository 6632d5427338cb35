package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ngxlab/hosts/docker"
	"ngxlab/lab"
)

// upOptions are the flags of hosts up.
type upOptions struct {
	rootfs, subnet string
	json           bool
}

func newHostsUp(a *app) *cobra.Command {
	o := upOptions{}
	cmd := &cobra.Command{
		Use:   "up FILE",
		Short: "Bring up the Docker lab of an experiment: its containers, their network, image and key",
		Long: "up makes what is missing on the Docker engine that DOCKER_HOST names; what is there stays. The image is made from\n" +
			"debian:bookworm-slim, or with debootstrap where no registry can be reached, or from --rootfs.",
		Example: "  ngxlab hosts up study.yaml\n  ngxlab hosts up docker-lab --subnet 10.99.0.0/24\n  ngxlab hosts up study.yaml --rootfs bookworm.tar.gz --json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := loadExperiment(given[0])
			if err != nil {
				return err
			}
			return hostsUp(cmd.Context(), a, x, o)
		},
	}
	cmd.Flags().StringVar(&o.rootfs, "rootfs", "", "a TAR of a root file system with sshd and a shell, to make the image from")
	cmd.Flags().StringVar(&o.subnet, "subnet", "", "addresses of the lab's network, such as 10.99.0.0/24 (default: the engine's choice)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	return cmd
}

// upHost is a container of a lab as hosts up prints it.
type upHost struct {
	Host      lab.HostName `json:"host"`
	Container string       `json:"container"`
	State     string       `json:"state"`
	Address   string       `json:"address"`
	Made      string       `json:"made"` // image and bounds
	SSH       string       `json:"ssh"`  // a command
}

// hostsUp brings a lab up, and prints how its hosts are reached.
func hostsUp(ctx context.Context, a *app, x lab.Experiment, o upOptions) error {
	l := a.labOf(x)
	if len(l.Hosts) == 0 {
		return &hinted{err: fmt.Errorf("%s has no docker hosts", fileOr(x, x.Name)), hint: "write {docker: {cpus: 2, memory: 2GiB}, roles: [target]} for a throwaway host"}
	}
	l.Subnet, a.docker.rootfs = o.subnet, o.rootfs
	up, err := a.labUp(ctx, l)
	var problem *docker.Problem
	if errors.As(err, &problem) && problem.Kind == docker.BadSubnet {
		return &usageError{err: problem, hint: problem.Cure}
	}
	if err != nil {
		return atLab(x, err)
	}
	if o.json {
		return writeJSON(a.out, upHosts(up.containers))
	}
	p := &page{w: a.out}
	t := newTable(nil, "host", "address", "image and bounds", "ssh")
	for _, h := range upHosts(up.containers) {
		t.row(string(h.Host), h.Address, h.Made, h.SSH)
	}
	p.table("", t)
	p.line("lab %s: %s, of which %d brought up in %s", l.Name, count(len(up.containers), "container"), up.made, seconds(up.tookS))
	return p.err
}

func upHosts(all []docker.Container) []upHost {
	hosts := make([]upHost, len(all))
	for i, c := range all {
		hosts[i] = upHost{c.Host, c.Name, c.State, c.Address, c.Made, sshLine(c)}
	}
	return hosts
}

// sshLine is a command that logs in to a container as root.
func sshLine(c docker.Container) string {
	if c.Key == "" {
		return ""
	}
	return fmt.Sprintf("ssh -i %s -o UserKnownHostsFile=%s %s@%s", c.Key, c.KnownHosts, docker.RootUser, c.Address)
}
