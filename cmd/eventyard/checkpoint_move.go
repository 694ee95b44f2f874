package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

// direction is which way checkpoints are moved.
type direction string

const (
	rewind  direction = "rewind"
	advance direction = "advance"
)

const moveHelp = `--to says which event is to be the next one handled:
  earliest                 the oldest event that is kept
  latest                   none that is there: only what comes
  2026-01-31T12:00:00Z     the first event enqueued at that time or later; without
                           a zone it is local time, and without a clock midnight
  15m, 24h, 7d             the first one enqueued so long ago or later
  1041, after:1041         the event of that number, or the one behind it; such a number
                           counts within one partition
  offset:1041              the one behind the event with that offset, as a checkpoint has it

If any of the partitions is owned nothing is moved, unless --force is given: owners then continue
from the new position by themselves. A function of the yard always owns its partitions, also
while it is paused. With --kafka nothing is moved while somebody is in the group, and --force does
not help. --dry-run only shows what would be done.`

// checkpointMove is one such command's flags.
type checkpointMove struct {
	direction  direction
	to         string
	kafka      bool
	partitions []string
	admin.MoveOptions
	form output
}

func (c checkpointCommands) move(d direction) *cobra.Command {
	m := &checkpointMove{direction: d}
	cmd := &cobra.Command{
		Use:     string(d) + " HUB GROUP --to POSITION",
		Short:   "Move checkpoints forward, so that events are passed over",
		Long:    "Move a group's checkpoints forward, so that events are passed over. None is moved back.\n\n" + moveHelp,
		Example: "  eventyard checkpoint advance orders billing --to latest\n  eventyard checkpoint advance orders billing --to after:1041 --partition 3",
	}
	if d == rewind {
		cmd.Short = "Move checkpoints back, so that events are handled again"
		cmd.Long = "Move a group's checkpoints back, so that events are handled again. None is moved forward.\n\n" + moveHelp
		cmd.Example = "  eventyard checkpoint rewind orders billing --to 2h\n  eventyard checkpoint rewind orders billing --to 1041 --partition 3"
	}
	cmd.Flags().StringVar(&m.to, "to", "", "`position` of the next event to be handled")
	cmd.Flags().StringSliceVar(&m.partitions, "partition", nil, "only these `partitions`")
	addKafkaFlag(cmd, &m.kafka)
	cmd.Flags().BoolVar(&m.Force, "force", false, "even if a partition is owned")
	cmd.Flags().BoolVar(&m.DryRun, "dry-run", false, "only show what would be done")
	m.form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		return c.moveCheckpoints(cmd, client, m, args[0], args[1])
	})
}

// parseTarget reads --to. A number is the next event's, and a checkpoint names the one before.
func parseTarget(text string, now time.Time) (admin.Target, error) {
	if offset, ok := strings.CutPrefix(text, "offset:"); ok && offset != "" {
		return admin.Target{Offset: &offset}, nil
	}
	from, err := parseFrom(text, now)
	if err != nil || isPositions(text) && strings.ContainsAny(text, ":.") {
		return admin.Target{}, fmt.Errorf("%q is neither earliest nor latest, a number, an offset, a time or an age", text)
	}
	switch from {
	case "earliest":
		return admin.Target{Earliest: true}, nil
	case "latest":
		return admin.Target{Latest: true}, nil
	}
	number, behind := strings.CutPrefix(from, "after:")
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if !behind {
			n--
		}
		return admin.Target{Sequence: &n}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, from)
	return admin.Target{Time: &at}, err
}

// moveCheckpoints finds out first what every move would come to, so that a refusal leaves all as
// they were.
func (c checkpointCommands) moveCheckpoints(cmd *cobra.Command, client *admin.Client, m *checkpointMove, hub, group string) error {
	if m.to == "" {
		return usagef(cmd, "--to says where: earliest, latest, a time, an age or a number")
	}
	to, err := parseTarget(m.to, time.Now())
	if err != nil {
		return usagef(cmd, "--to: %w", err)
	}
	if m.partitions, err = m.chosen(cmd, client, hub); err != nil {
		return err
	}
	if (to.Sequence != nil || to.Offset != nil) && len(m.partitions) != 1 {
		return usagef(cmd, "--to %s counts within one partition, and %s has %d: name one with --partition", m.to, hub, len(m.partitions))
	}
	plan, err := m.plan(cmd, client, hub, group, to)
	if err != nil {
		return explainMove(err, hub, m.to)
	}
	if m.DryRun {
		return c.printMoves(m, plan)
	}
	for i, planned := range plan.move {
		plan.move[i], err = m.one(cmd, client, hub, group, planned.To.Partition, to, admin.MoveOptions{Force: m.Force})
		if err != nil && i > 0 {
			err = fmt.Errorf("%s moved, then: %w", counted(i, "checkpoint"), err)
		}
		if err != nil {
			return explainMove(err, hub, m.to)
		}
	}
	return c.printMoves(m, plan)
}

// chosen gives the partitions that were named, each once, or all. Where --partition names none, as
// a variable that was never set does, all cannot be what is meant.
func (m *checkpointMove) chosen(cmd *cobra.Command, client *admin.Client, hub string) ([]string, error) {
	switch {
	case len(m.partitions) > 0:
		slices.Sort(m.partitions)
		return slices.Compact(m.partitions), nil
	case cmd.Flags().Changed("partition"):
		return nil, usagef(cmd, "--partition names none: leave it out to mean all")
	}
	h, err := client.Hub(cmd.Context(), hub)
	return h.PartitionIDs, err
}

// movePlan is what to move, and what stays.
type movePlan struct {
	move []admin.Moved
	stay []admin.Moved
}

func (m *checkpointMove) plan(cmd *cobra.Command, client *admin.Client, hub, group string, to admin.Target) (movePlan, error) {
	var p movePlan
	for _, id := range m.partitions {
		moved, err := m.one(cmd, client, hub, group, id, to, admin.MoveOptions{Force: true, DryRun: true})
		if err != nil {
			return p, err
		}
		if !m.direction.right(moved) {
			p.stay = append(p.stay, moved)
			continue
		}
		// Only now, since what stays may be owned by whomever.
		if _, err := m.one(cmd, client, hub, group, id, to, admin.MoveOptions{Force: m.Force, DryRun: true}); err != nil {
			return p, err
		}
		p.move = append(p.move, moved)
	}
	return p, nil
}

// one moves the checkpoint of a partition, or what a Kafka group has committed of it.
func (m *checkpointMove) one(cmd *cobra.Command, client *admin.Client, hub, group, partition string, to admin.Target, opt admin.MoveOptions) (admin.Moved, error) {
	if m.kafka {
		return client.MoveKafkaOffset(cmd.Context(), hub, group, partition, to, opt)
	}
	return client.MoveCheckpoint(cmd.Context(), hub, group, partition, to, opt)
}

// right tells whether a move goes the way that was asked for. Where there is no checkpoint
// everything is still to be handled, so that there is nothing to rewind.
func (d direction) right(m admin.Moved) bool {
	if m.From == nil || m.From.Sequence == nil || m.To.Sequence == nil {
		return d == advance || m.From != nil
	}
	if d == rewind {
		return *m.To.Sequence < *m.From.Sequence
	}
	return *m.To.Sequence > *m.From.Sequence
}

// explainMove says in this program's words why checkpoints were not moved, and what to do.
func explainMove(err error, hub, to string) error {
	switch {
	case isProblem(err, "owned"):
		return &advisedError{err.Error(), "stop the processors first, or use --force, which a function of the yard always needs: owners then continue from the new position; eventyard group show names them"}
	case isProblem(err, "group-has-members"):
		return &advisedError{err.Error(), "stop the group's consumers, and wait until their sessions have ended: eventyard group show HUB GROUP --kafka names them"}
	case isProblem(err, "position-out-of-range") && to != "":
		return &advisedError{fmt.Sprintf("hub %s has no event at %s", hub, to),
			"eventyard hub show " + hub + " shows the numbers of its partitions; earliest and latest always fit"}
	case isProblem(err, "invalid-record"):
		return &advisedError{err.Error(), "take numbers as eventyard checkpoint list and eventyard hub show print them"}
	case isProblem(err, "bad-request"):
		return &advisedError{err.Error(), "use --force if you know that these positions fit this hub"}
	}
	return err
}

func (c checkpointCommands) printMoves(m *checkpointMove, plan movePlan) error {
	if m.form == asJSON {
		return writeJSON(c.stdout, append([]admin.Moved{}, plan.move...))
	}
	if len(plan.move) == 0 {
		side := "behind"
		if m.direction == rewind {
			side = "before"
		}
		fmt.Fprintf(c.stderr, "nothing to %s: every checkpoint is at that position already, or %s it\n", m.direction, side)
		return nil
	}
	t := newTable(c.stdout, "PARTITION", "NEXT WAS", "NEXT IS")
	for i := range plan.move {
		t.row(plan.move[i].To.Partition, showNext(plan.move[i].From), showNext(&plan.move[i].To))
	}
	for i := range plan.stay {
		t.row(plan.stay[i].To.Partition, showNext(plan.stay[i].From), "stays")
	}
	switch {
	case m.DryRun:
		defer fmt.Fprintln(c.stderr, "nothing was moved: this was a dry run")
	case m.Force && !m.kafka:
		defer fmt.Fprintln(c.stderr, "owners continue from there when they next save a checkpoint; idle ones within half a minute")
	}
	return t.flush()
}

// showNext tells which event is the next one to be handled.
func showNext(c *admin.Checkpoint) string {
	switch {
	case c == nil:
		return "-"
	case c.Sequence == nil:
		return "behind offset " + oneLine(c.Offset)
	}
	return strconv.FormatInt(*c.Sequence+1, 10)
}
