package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// groupCommands are those of `eventyard group`.
type groupCommands struct{ *cli }

func (c groupCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "group", Short: "Create, list, show and delete consumer groups"},
		c.create(), c.list(), c.show(), c.delete())
}

func (c groupCommands) create() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:               "create HUB GROUP",
		Short:             "Create a consumer group",
		Args:              wantArgs("HUB", "GROUP"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			group, err := client.CreateGroup(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if form == asJSON {
				return writeJSON(c.stdout, group)
			}
			_, err = fmt.Fprintf(c.stdout, "created group %s of hub %s\n", group.Name, args[0])
			return err
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c groupCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:               "list HUB",
		Short:             "List the consumer groups of a hub",
		Args:              wantArgs("HUB"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			groups, err := client.Groups(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.printGroups(form, groups)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c groupCommands) printGroups(form output, groups []admin.Group) error {
	if form == asJSON {
		return writeJSON(c.stdout, append([]admin.Group{}, groups...))
	}
	t := newTable(c.stdout, "GROUP", "CREATED")
	for _, g := range groups {
		t.row(g.Name, showTime(g.Created))
	}
	return t.flush()
}

func (c groupCommands) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "delete HUB GROUP",
		Short:             "Delete a consumer group",
		Args:              wantArgs("HUB", "GROUP"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			question := fmt.Sprintf("Delete group %s of hub %s, for good?", args[1], args[0])
			if err := c.confirm(cmd, yes, question); err != nil {
				return err
			}
			if err := client.DeleteGroup(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.stdout, "deleted group %s of hub %s\n", args[1], args[0])
			return err
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c.addClientFlags(cmd)
}
