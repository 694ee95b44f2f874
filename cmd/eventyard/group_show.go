package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

const groupShowHelp = `Show who owns the partitions of a group, since when, how far each has come and how much
is behind. Owners are the instances of processors that keep their leases in the yard; under
OTHER READERS are those that read at this moment without a lease, as with an SDK of Azure's. Where these keep
their checkpoints in the yard's blobs, they count; elsewhere how far they are is not known, and LAG is a ?.

A group of Kafka's consumers is shown with --kafka, or where the hub has no group of its own by that name: who is in it, which
member has which partition, what is committed, and how much is behind that.

With --watch the table is shown again whenever it changes.`

func (c groupCommands) show() *cobra.Command {
	var form output
	var watch bool
	var target int
	var page admin.PageQuery
	var kafka bool
	cmd := &cobra.Command{
		Use:   "show HUB GROUP",
		Short: "Show who owns which partition, and how far the group is",
		Long:  groupShowHelp,
		Example: `  eventyard group show orders billing
  eventyard group show orders '$Default' --watch
  eventyard group show orders billing --max 100 --after 99
  eventyard group show orders billing --kafka`,
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "refresh it at every change, until interrupted")
	cmd.Flags().IntVar(&target, "target", 0, "`events` of lag that one instance can be trusted with, for the number recommended; 0: 1000")
	cmd.Flags().IntVar(&page.Limit, "max", 0, "at most so many partitions; 0: all")
	cmd.Flags().StringVar(&page.After, "after", "", "only those behind the partition with this `id`")
	addKafkaFlag(cmd, &kafka)
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		switch paged := page.Limit != 0 || page.After != ""; {
		case target < 0:
			return usagef(cmd, "--target is at least 1")
		case page.Limit < 0:
			return usagef(cmd, "--max is at least 1")
		case kafka && (watch || paged || target != 0):
			return usagef(cmd, "--kafka shows all partitions, once: leave --watch, --target, --max and --after out")
		case kafka:
			return c.showKafka(cmd, client, form, args[0], args[1])
		case watch && paged:
			return usagef(cmd, "--watch shows all partitions: leave --max and --after out")
		case watch:
			return c.watchGroup(cmd, client, form, args[0], args[1], target)
		}
		o, err := client.OwnershipPage(cmd.Context(), args[0], args[1], target, page)
		if isProblem(err, "not-found") { // Kafka may have one
			if c.showKafka(cmd, client, form, args[0], args[1]) == nil {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if o.Next != "" {
			fmt.Fprintf(c.stderr, "there are more partitions: --after %s shows them\n", o.Next)
		}
		if form == asJSON {
			return writeJSON(c.stdout, o)
		}
		return printOwnership(c.stdout, o)
	})
}

// watchGroup shows table after table; where a person looks, each in place of the one before.
func (c groupCommands) watchGroup(cmd *cobra.Command, client *admin.Client, form output, hub, group string, target int) error {
	screen := isTerminal(c.stdout)
	for o, err := range client.WatchOwnership(cmd.Context(), hub, group, target, c.noticeLoss) {
		switch {
		case cmd.Context().Err() != nil:
			return nil // Ctrl-C is how it ends
		case err != nil:
			return err
		}
		if err := c.showTable(form, screen, o); err != nil {
			return err
		}
	}
	return nil
}

func (c groupCommands) showTable(form output, screen bool, o admin.Ownership) error {
	if form == asJSON {
		return writeJSON(c.stdout, o)
	}
	var page bytes.Buffer
	if err := printOwnership(&page, o); err != nil {
		return err
	}
	text := page.String()
	if screen { // over the one before, line by line, so that nothing flickers
		text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
	} else {
		text += "\n"
	}
	_, err := io.WriteString(c.stdout, text)
	return err
}

// printOwnership writes the table and what it comes to.
func printOwnership(w io.Writer, o admin.Ownership) error {
	t := newTable(w, "PARTITION", "OWNER", "EPOCH", "ACQUIRED", "RENEWED", "SEQUENCE", "OFFSET", "LAG", "BEHIND", "OTHER READERS")
	for _, p := range o.Partitions {
		epoch, lag, behind := "-", "?", "?"
		if p.Epoch != 0 {
			epoch = strconv.FormatInt(p.Epoch, 10)
		}
		if p.BeyondEnd {
			lag = "beyond the end"
		} else if p.LagEvents != nil {
			lag = thousands(*p.LagEvents)
		}
		if p.LagSeconds != nil {
			behind = showSpan(inSeconds(*p.LagSeconds).Truncate(time.Second))
		}
		t.row(p.Partition, showOwner(p), epoch, showAge(o.At, p.Acquired), showAge(o.At, p.Renewed),
			showSequence(p.Checkpoint), showOffset(p.Checkpoint), lag, behind, showReaders(p))
	}
	if err := t.flush(); err != nil {
		return err
	}
	var living []string // with what each has
	for _, i := range o.Instances {
		if i.Alive {
			living = append(living, fmt.Sprintf("%s %d", oneLine(i.ID), i.Partitions))
		}
	}
	if err := sayContainers(w, o); err != nil {
		return err
	}
	instances := "no instances"
	if len(living) > 0 {
		instances = fmt.Sprintf("%s (%s)", counted(len(living), "instance"), strings.Join(living, ", "))
	}
	_, err := fmt.Fprintf(w, "\n%s of hub %s in namespace %s: %s, %s\n", oneLine(o.Group), o.Hub, o.Namespace, instances, showTotal(o))
	return err
}

// sayContainers names where checkpoints are that the yard does not keep itself.
func sayContainers(w io.Writer, o admin.Ownership) error {
	var names []string
	for _, p := range o.Partitions {
		if p.Container != "" && !slices.Contains(names, p.Container) {
			names = append(names, p.Container)
		}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nits checkpoints are in the yard's blobs, container %s\n", strings.Join(names, ", "))
	return err
}

// showTotal tells how much is behind and what that is worth, as far as it is known: readers
// without an owner or a checkpoint keep these elsewhere.
func showTotal(o admin.Ownership) string {
	unknown := 0
	for _, p := range o.Partitions {
		if p.LagEvents == nil {
			unknown++
		}
	}
	behind := counted(o.LagEvents, "event") + " behind"
	if unknown > 0 {
		behind = "at least " + behind
	}
	switch {
	case unknown > 0 && unknown == len(o.Partitions):
		return "and how far it is is not known here: its checkpoints are kept elsewhere, or name no event"
	case o.Recommended.Instances == 0:
		return behind
	default:
		return behind + ", which is work for " + counted(o.Recommended.Instances, "instance")
	}
}

func showOwner(p admin.OwnedPartition) string {
	switch {
	case p.Owner == "":
		return "-"
	case !p.Alive:
		return oneLine(p.Owner) + " (silent)"
	case p.Next != "":
		return oneLine(p.Owner) + " → " + oneLine(p.Next)
	}
	return oneLine(p.Owner)
}

// showAge writes how long ago something was, in whole seconds.
func showAge(now admin.Time, at *admin.Time) string {
	if at == nil {
		return "-"
	}
	return showAgo(now.Time, at.Time)
}

func showSequence(c *admin.Checkpoint) string {
	if c == nil || c.Sequence == nil || beforeAll(c) {
		return "-"
	}
	return strconv.FormatInt(*c.Sequence, 10)
}

func showOffset(c *admin.Checkpoint) string {
	if c == nil || c.Offset == "" || beforeAll(c) {
		return "-"
	}
	return oneLine(c.Offset)
}

// beforeAll tells whether the checkpoint is the one before a partition's first event, as a rewind to
// earliest leaves it.
func beforeAll(c *admin.Checkpoint) bool { return c.Sequence != nil && *c.Sequence < 0 }

// showReaders names who reads besides the owner.
func showReaders(p admin.OwnedPartition) string {
	var names []string
	for _, r := range p.Readers {
		if r.Name == p.Owner && p.Owner != "" {
			continue
		}
		name := cmp.Or(oneLine(r.Name), "unnamed")
		if r.Epoch != nil {
			name += fmt.Sprintf(" (epoch %d)", *r.Epoch)
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, ", "), "-")
}
