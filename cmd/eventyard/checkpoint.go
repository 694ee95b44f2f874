package main

import (
	"fmt"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const checkpointHelp = `A checkpoint is how far a consumer group has come with a partition: everything up to its
event is done, and whoever owns the partition next goes on behind it. These are the checkpoints of processors that keep
them in the yard; those kept in blobs, PostgreSQL, Redis or NATS are not seen here.`

// checkpointCommands are those of `eventyard checkpoint`.
type checkpointCommands struct{ *cli }

func (c checkpointCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "checkpoint", Short: "List, rewind, advance, export and import a group's checkpoints", Long: checkpointHelp},
		c.list(), c.move(rewind), c.move(advance),
		c.export(), c.importFile())
}

func (c checkpointCommands) list() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:               "list HUB GROUP",
		Short:             "List the checkpoints of a group",
		Args:              wantArgs("HUB", "GROUP"),
		ValidArgsFunction: c.completeHubs,
		RunE: c.asking(func(cmd *cobra.Command, client *admin.Client, args []string) error {
			list, err := client.Checkpoints(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return c.printCheckpoints(form, list)
		}),
	}
	form.addTo(cmd)
	return c.addClientFlags(cmd)
}

func (c checkpointCommands) printCheckpoints(form output, list admin.Checkpoints) error {
	if form == asJSON {
		return writeJSON(c.stdout, list.Checkpoints)
	}
	if len(list.Checkpoints) == 0 {
		fmt.Fprintf(c.stderr, "group %s of hub %s has none yet\n", list.Group, list.Hub)
		return nil
	}
	t := newTable(c.stdout, "PARTITION", "SEQUENCE", "OFFSET", "EPOCH", "UPDATED")
	for i := range list.Checkpoints {
		k := &list.Checkpoints[i]
		updated := "-"
		if k.Updated != nil {
			updated = showTime(*k.Updated)
		}
		t.row(k.Partition, showSequence(k), showOffset(k), fmt.Sprint(k.Epoch), updated)
	}
	return t.flush()
}
