package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// kafkaFlag is the flag by which GROUP means a Kafka group.
const kafkaFlag = "kafka"

func addKafkaFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, kafkaFlag, false, "GROUP is a group of Kafka's consumers, and not the hub's own of that name")
}

// listedGroup is a group of either sort.
type listedGroup struct {
	Name string `json:"name"`
	// Kind is hub for a consumer group of a hub, and kafka for one of Kafka's consumers.
	Kind    string            `json:"kind"`
	Created *admin.Time       `json:"created,omitempty"`
	Kafka   *admin.KafkaGroup `json:"kafka,omitempty"`
}

const groupListHelp = `List the consumer groups of a hub, and the groups of Kafka's consumers that subscribe to it or have
offsets there. Without a hub, list all groups of Kafka's consumers, which span hubs.

A Kafka group and a consumer group of the hub that have one name are two: each has its own positions. The other
commands mean the Kafka group with --kafka.`

func (c groupCommands) list() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [HUB]", Short: "List the consumer groups of a hub, and Kafka's", Long: groupListHelp,
		Example: "  eventyard group list orders\n  eventyard group list",
	}
	head := []string{"GROUP", "KIND", "STATE", "MEMBERS", "HUBS", "CREATED"}
	return listing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) ([]listedGroup, error) {
		hub := ""
		if len(args) > 0 {
			hub = args[0]
		}
		return listGroups(cmd, client, hub)
	}, "", head, func(g listedGroup) []string {
		if g.Kafka == nil {
			return []string{g.Name, "hub", "-", "-", "-", showTime(*g.Created)}
		}
		return []string{oneLine(g.Name), "kafka " + g.Kafka.Kind, g.Kafka.State, strconv.Itoa(g.Kafka.Members), strings.Join(g.Kafka.Hubs, ", "), "-"}
	})
}

// listGroups lists groups of both sorts. Who may look at a hub, and not listen to it, does not hear of Kafka's.
func listGroups(cmd *cobra.Command, client *admin.Client, hub string) (all []listedGroup, err error) {
	if hub != "" {
		own, err := client.Groups(cmd.Context(), hub)
		if err != nil {
			return nil, err
		}
		for _, g := range own {
			all = append(all, listedGroup{Name: g.Name, Kind: "hub", Created: &g.Created})
		}
	}
	kafka, err := client.KafkaGroups(cmd.Context(), hub)
	if err != nil && hub != "" && (isProblem(err, "insufficient-rights") || isProblem(err, "wrong-audience")) {
		return all, nil
	}
	for _, g := range kafka {
		all = append(all, listedGroup{Name: g.Name, Kind: "kafka", Kafka: &g})
	}
	return all, err
}

// showKafka prints a Kafka group.
func (c groupCommands) showKafka(cmd *cobra.Command, client *admin.Client, form output, hub, group string) error {
	t, err := client.KafkaGroup(cmd.Context(), hub, group)
	if err != nil {
		return err
	}
	if form == asJSON {
		return writeJSON(c.stdout, t)
	}
	return printKafkaGroup(c.stdout, t)
}

// printKafkaGroup writes the table and what it comes to.
func printKafkaGroup(w io.Writer, t admin.KafkaGroupTable) error {
	rows := newTable(w, "PARTITION", "MEMBER", "CLIENT", "COMMITTED", "UPDATED", "END", "LAG", "BEHIND")
	for _, p := range t.Partitions {
		committed, lag, behind := "-", "?", "?"
		if p.Committed != nil {
			committed = strconv.FormatInt(*p.Committed, 10)
		}
		if p.BeyondEnd {
			lag = "beyond the end"
		} else if p.LagEvents != nil {
			lag = thousands(*p.LagEvents)
		}
		if p.LagSeconds != nil {
			behind = showSpan(inSeconds(*p.LagSeconds).Truncate(time.Second))
		}
		rows.row(p.Partition, orDash(p.Owner), orDash(p.Client), committed, showAge(t.At, p.Updated), strconv.FormatInt(p.Last+1, 10), lag, behind)
	}
	if err := rows.flush(); err != nil {
		return err
	}
	if len(t.Instances) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		members := newTable(w, "MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
		for _, m := range t.Instances {
			members.row(oneLine(m.ID), orDash(m.Instance), orDash(m.Client), orDash(m.Host), strconv.Itoa(m.Partitions))
		}
		if err := members.flush(); err != nil {
			return err
		}
	}
	about := fmt.Sprintf("%s in hub %s: Kafka group, %s, %s, generation %d", oneLine(t.Name), t.Hub, t.Kind, t.State, t.Generation)
	if t.Protocol != "" {
		about += ", " + oneLine(t.Protocol)
	}
	if t.Node != "" {
		about += ", coordinated by " + t.Node
	}
	_, err := fmt.Fprintf(w, "\n%s: %s, %s behind\n", about, counted(len(t.Instances), "member"), counted(t.LagEvents, "event"))
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return oneLine(text)
}

const groupDeleteHelp = `Delete a consumer group of a hub, with its leases and checkpoints.

With --kafka, delete a group of Kafka's consumers with what it has committed in all hubs; with --offsets-only only what it
has committed in HUB, and the group stays. Both are refused while somebody is in the group.`

func (c groupCommands) delete() *cobra.Command {
	var kafka, offsets bool
	cmd := &cobra.Command{
		Use: "delete HUB GROUP", Short: "Delete a consumer group", Long: groupDeleteHelp,
		Example: "  eventyard group delete orders billing\n  eventyard group delete orders billing --kafka",
	}
	addKafkaFlag(cmd, &kafka)
	cmd.Flags().BoolVar(&offsets, "offsets-only", false, "delete only what a Kafka group has committed in the hub")
	return c.deleting(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (deletion, error) {
		hub, group := args[0], args[1]
		switch {
		case offsets && !kafka:
			return deletion{}, usagef(cmd, "--offsets-only is for a Kafka group: give --kafka, too")
		case offsets:
			which := fmt.Sprintf("what Kafka group %s has committed in hub %s", group, hub)
			return deletion{
				question: "Delete " + which + ", for good?",
				do:       func() error { return client.ForgetKafkaOffsets(cmd.Context(), hub, group) },
				done:     "deleted " + which,
			}, nil
		case kafka:
			t, err := client.KafkaGroup(cmd.Context(), hub, group)
			which := fmt.Sprintf("Kafka group %s, and its offsets in %s", group, strings.Join(t.Hubs, ", "))
			return deletion{
				question: "Delete " + which + ", for good?",
				do:       func() error { return client.DeleteKafkaGroup(cmd.Context(), hub, group) },
				done:     "deleted " + which,
			}, err
		}
		which := fmt.Sprintf("group %s of hub %s", group, hub)
		return deletion{
			question: "Delete " + which + ", for good?",
			do: func() error {
				err := client.DeleteGroup(cmd.Context(), hub, group)
				if !isProblem(err, "not-found") {
					return err
				}
				if _, not := client.KafkaGroup(cmd.Context(), hub, group); not != nil {
					return err
				}
				return &advisedError{
					fmt.Sprintf("hub %s has no group %s of its own, but there is a Kafka group of that name", hub, group),
					fmt.Sprintf("add --kafka to delete it, or --kafka --offsets-only to delete what it has committed in %s alone", hub),
				}
			},
			done: "deleted " + which,
		}, nil
	})
}

const groupCopyHelp = `Copy positions between a consumer group of a hub and a group of Kafka's consumers, so that consumers of the one
kind go on where those of the other have come to. FROM stays as it is.

With --to kafka, FROM is the hub's group and TO the Kafka group, which is made if there is none. With --to processor,
FROM is the Kafka group and TO the hub's group. Checkpoints in the yard's blobs count; those kept elsewhere are not seen.

All positions are copied, or none. It is refused while somebody is in a Kafka group TO, or owns a partition of a hub's group
TO; the latter can be forced. Stop the consumers of FROM first: what they do afterwards is done again.`

func (c groupCommands) copy() *cobra.Command {
	var to string
	var m checkpointMove
	cmd := &cobra.Command{
		Use: "copy HUB FROM TO --to KIND", Short: "Copy positions between a hub's group and a Kafka group", Long: groupCopyHelp,
		Example: `  eventyard group copy orders billing billing --to kafka
  eventyard group copy orders billing billing --to processor --dry-run`,
	}
	cmd.Flags().StringVar(&to, "to", "", "`kind` of the group TO: kafka or processor")
	cmd.Flags().BoolVar(&m.Force, "force", false, "even if a partition of the hub's group TO is owned")
	cmd.Flags().BoolVar(&m.DryRun, "dry-run", false, "only show what would be done")
	m.form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		kafka, group := args[2], args[1]
		switch to {
		case admin.ToKafka:
		case admin.ToProcessor:
			kafka, group = args[1], args[2]
		default:
			return usagef(cmd, "--to says what TO is: kafka or processor")
		}
		moved, err := client.CopyKafkaOffsets(cmd.Context(), args[0], kafka, admin.KafkaCopy{Group: group, To: to, MoveOptions: m.MoveOptions})
		if err != nil {
			return explainMove(err, args[0], "")
		}
		return checkpointCommands(c).printMoves(&m, movePlan{move: moved})
	})
}
