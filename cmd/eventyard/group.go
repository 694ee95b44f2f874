package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// groupCommands are those of `eventyard group`.
type groupCommands struct{ *cli }

func (c groupCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "group", Short: "Create, list, show, copy and delete consumer groups, and release partitions"},
		c.create(), c.list(), c.show(), c.history(), c.copy(), c.release(), c.forget(), c.delete())
}

func (c groupCommands) create() *cobra.Command {
	var hub string
	return printing(c.cli, &cobra.Command{Use: "create HUB GROUP", Short: "Create a consumer group"},
		func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Group, error) {
			hub = args[0]
			return client.CreateGroup(cmd.Context(), hub, args[1])
		}, func(group admin.Group) error {
			return c.printf("created group %s of hub %s\n", group.Name, hub)
		})
}

const groupReleaseHelp = `Take a partition of a group from its owner: its lease is removed, epochs begin at 1 again, and
readers with an epoch are disconnected. Checkpoints stay. Instances of a processor that are alive
take the partition again by themselves.

It is for a partition that nobody can read because of an epoch that is too high, or that an
instance keeps which should not. To keep a client out for good, change its policy or key.`

func (c groupCommands) release() *cobra.Command {
	return c.deleting(&cobra.Command{
		Use: "release HUB GROUP PARTITION", Short: "Take a partition from its owner", Long: groupReleaseHelp,
		Example: "  eventyard group release orders billing 3",
	},
		func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
			which := fmt.Sprintf("partition %s of group %s of hub %s", args[2], args[1], args[0])
			return deletion{
				question: "Take " + which + " from its owner?",
				do: func() error {
					_, err := client.ReleasePartition(cmd.Context(), args[0], args[1], args[2])
					return err
				},
				done: "released " + which,
			}, nil
		})
}
