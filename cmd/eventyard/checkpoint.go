package main

import (
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const checkpointHelp = `A checkpoint is how far a consumer group has come with a partition: everything up to its
event is done, and the partition's next owner continues behind it. These are the checkpoints of
processors that keep them in the yard; those kept in blobs, PostgreSQL, Redis or NATS are not
seen here.

With --kafka they are what a group of Kafka's consumers has committed: the next event to be read, which is one behind the
last that is done. To move these is refused while somebody is in the group.`

// checkpointCommands are those of `eventyard checkpoint`.
type checkpointCommands struct{ *cli }

func (c checkpointCommands) command() *cobra.Command {
	return family(&cobra.Command{Use: "checkpoint", Short: "List, rewind, advance, export and import a group's checkpoints", Long: checkpointHelp},
		c.list(), c.move(rewind), c.move(advance),
		c.export(), c.importFile())
}

func (c checkpointCommands) list() *cobra.Command {
	var none string
	var kafka bool
	cmd := &cobra.Command{Use: "list HUB GROUP", Short: "List the checkpoints of a group"}
	addKafkaFlag(cmd, &kafka)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]admin.Checkpoint, error) {
		if kafka {
			none = fmt.Sprintf("Kafka group %s has committed nothing in hub %s", args[1], args[0])
			return kafkaCheckpoints(cmd, client, args[0], args[1])
		}
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

// kafkaCheckpoints are what a Kafka group has committed, as checkpoints: the event before the offset is the last that is
// done.
func kafkaCheckpoints(cmd *cobra.Command, client *admin.Client, hub, group string) ([]admin.Checkpoint, error) {
	t, err := client.KafkaGroup(cmd.Context(), hub, group)
	all := []admin.Checkpoint{}
	for _, p := range t.Partitions {
		if p.Committed != nil {
			done := *p.Committed - 1
			all = append(all, admin.Checkpoint{Partition: p.Partition, Sequence: &done, Offset: strconv.FormatInt(done, 10), Updated: p.Updated})
		}
	}
	return all, err
}
