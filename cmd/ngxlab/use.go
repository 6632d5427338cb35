package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ngxlab/lab"
)

// unknownCommand is the error of a name that is none of parent's commands; it names the nearest that is.
func unknownCommand(parent *cobra.Command, name string) error {
	var known []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			known = append(known, c.Name())
		}
	}
	return &usageError{
		err:  fmt.Errorf("there is no command %q", strings.TrimPrefix(parent.CommandPath()+" "+name, "ngxlab ")),
		hint: nearest(name, known, "", parent),
	}
}

// wrongFlag is the error of flags that cannot be read; it names the nearest flag to one that does not exist.
func wrongFlag(cmd *cobra.Command, err error) error {
	var none *pflag.NotExistError
	var known []string
	name := ""
	if errors.As(err, &none) {
		name = none.GetSpecifiedName()
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
	}
	return &usageError{err: err, hint: nearest(name, known, "--", cmd)}
}

// nearest asks whether the nearest of the known words was meant; when none is near it names the help.
func nearest(word string, known []string, prefix string, cmd *cobra.Command) string {
	slices.Sort(known)
	begins := func(k string) bool { return len(word) > 1 && strings.HasPrefix(k, word) }
	if i := slices.IndexFunc(known, begins); i >= 0 {
		return fmt.Sprintf("did you mean %q?", prefix+known[i])
	}
	if near, ok := lab.Nearest(word, known); ok {
		return fmt.Sprintf("did you mean %q?", prefix+near)
	}
	return fmt.Sprintf("run %q", cmd.CommandPath()+" --help")
}

// newHelp is "ngxlab help", for which a command that does not exist is a wrong use.
func newHelp(*app) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Print the help of a command",
		Example: "  ngxlab help run",
		RunE: func(cmd *cobra.Command, names []string) error {
			found := cmd.Root()
			for _, name := range names {
				i := slices.IndexFunc(found.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
				if i < 0 {
					return unknownCommand(found, name)
				}
				found = found.Commands()[i]
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// group is a command that only has others below it.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return cmd.Help()
	}
	return cmd
}
