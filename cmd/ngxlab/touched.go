package main

import (
	"slices"
	"sync"

	"ngxlab/lab"
)

// touched is the hosts of an experiment that may not be as they were, for who leaves at once.
type touched struct {
	mu    sync.Mutex
	x     lab.Experiment
	hosts []lab.HostName
}

// add says that hosts are about to be changed, or put back.
func (t *touched) add(x lab.Experiment, names ...lab.HostName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.x = x
	t.hosts = append(t.hosts, names...)
}

// remove says that a host is as it was.
func (t *touched) remove(name lab.HostName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hosts = slices.DeleteFunc(t.hosts, func(n lab.HostName) bool { return n == name })
}

// left returns the hosts that may not be as they were.
func (t *touched) left() (lab.Experiment, []lab.HostName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.x, slices.Clone(t.hosts)
}
