package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// Most commands have one of a few shapes: they get something from a yard and print it, list things
// in a table, or delete something. The functions here complete a command of such a shape; its own
// flags are added before, where they are not sorted.

// getter gets from a yard what a command prints.
type getter[T any] = func(cmd *cobra.Command, client *admin.Client, args []string) (T, error)

// asking completes a command that asks a yard: with a client, the flags that say where the yard is,
// and completion of its arguments and flags.
func (c *cli) asking(cmd *cobra.Command, do func(*cobra.Command, *admin.Client, []string) error) *cobra.Command {
	c.completeNames(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := c.client(cmd)
		if err != nil {
			return err
		}
		defer client.Close()
		return recognize(cmd.Context(), suggest(cmd, client, args, do(cmd, client, args)))
	}
	c.addClientFlags(cmd)
	return cmd
}

// printing completes a command that gets something and prints it: as JSON with -o json, else by
// text.
func printing[T any](c *cli, cmd *cobra.Command, get getter[T], text func(T) error) *cobra.Command {
	var form output
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		got, err := get(cmd, client, args)
		switch {
		case err != nil:
			return err
		case form == asJSON:
			return writeJSON(c.stdout, got)
		}
		return text(got)
	})
}

// listing completes a command that prints a table of what it gets. Where there is nothing it prints
// none instead; an empty none prints the head alone.
func listing[T any](c *cli, cmd *cobra.Command, get getter[[]T], none string, head []string, row func(T) []string) *cobra.Command {
	return printing(c, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]T, error) {
		all, err := get(cmd, client, args)
		return append([]T{}, all...), err // no list at all would be null in JSON
	}, func(all []T) error {
		return printTable(c, all, none, head, row)
	})
}

// columns are those of a table of what a command lists.
type columns[T any] struct {
	head []string
	row  func(T) []string
}

// listingStats is listing with a flag --stats, which has another table: with what each thing does.
func listingStats[T any](c *cli, cmd *cobra.Command, get func(stats bool) getter[[]T], none string, plain, stats columns[T]) *cobra.Command {
	var with bool
	cmd.Flags().BoolVar(&with, "stats", false, "show what each holds and does, over all nodes")
	return printing(c, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]T, error) {
		all, err := get(with)(cmd, client, args)
		return append([]T{}, all...), err // no list at all would be null in JSON
	}, func(all []T) error {
		shown := plain
		if with {
			shown = stats
		}
		return printTable(c, all, none, shown.head, shown.row)
	})
}

func printTable[T any](c *cli, all []T, none string, head []string, row func(T) []string) error {
	if len(all) == 0 && none != "" {
		fmt.Fprintln(c.stderr, none)
		return nil
	}
	t := newTable(c.stdout, head...)
	for _, one := range all {
		t.row(row(one)...)
	}
	return t.flush()
}

// deletion is what a command is about to delete.
type deletion struct {
	question string // asked before
	do       func() error
	done     string // printed after
}

// deleting completes a command that finds out what to delete, asks whether it should be, and
// deletes it.
func (c *cli) deleting(cmd *cobra.Command, find getter[deletion]) *cobra.Command {
	yes := addYesFlag(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		found, err := find(cmd, client, args)
		if err != nil {
			return err
		}
		if err := c.confirm(cmd, *yes, found.question); err != nil {
			return err
		}
		if err := found.do(); err != nil {
			return err
		}
		return c.printf("%s\n", found.done)
	})
}

func addYesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("yes", "y", false, "do not ask")
}

func (c *cli) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(c.stdout, format, args...)
	return err
}
