package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const checkpointHelp = `A checkpoint is how far a consumer group has come with a partition: everything up to its
event is done, and the partition's next owner continues behind it. These are the checkpoints of
processors that keep them in the yard; those kept in blobs, PostgreSQL, Redis or NATS are not
seen here.`

// checkpointCommands are those of `eventyard checkpoint`.
type checkpointCommands struct{ *cli }

func (c checkpointCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "checkpoint", Short: "List, rewind, advance, export and import a group's checkpoints", Long: checkpointHelp},
		c.list(), c.move(rewind), c.move(advance),
		c.export(), c.importFile())
}

func (c checkpointCommands) list() *cobra.Command {
	var none string
	cmd := &cobra.Command{Use: "list HUB GROUP", Short: "List the checkpoints of a group"}
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]admin.Checkpoint, error) {
		list, err := client.Checkpoints(cmd.Context(), args[0], args[1])
		none = fmt.Sprintf("group %s of hub %s has none yet", list.Group, list.Hub)
		return list.Checkpoints, err
	}, func(all []admin.Checkpoint) error {
		head := []string{"PARTITION", "SEQUENCE", "OFFSET", "EPOCH", "UPDATED"}
		return printTable(c.cli, all, none, head, func(k admin.Checkpoint) []string {
			return []string{k.Partition, showSequence(&k), showOffset(&k), fmt.Sprint(k.Epoch), showTimeIfAny(k.Updated)}
		})
	})
}
