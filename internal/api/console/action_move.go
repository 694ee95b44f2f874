package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// moveCheckpoints rewinds or advances the checkpoints of a group, after it was said how many events
// that means. They are moved one by one, as the API has it: an owned one is moved only by force.
var moveCheckpoints = action{
	path: base + "hubs/{hub}/groups/{group}/move", calls: []string{"PUT /api/v1/hubs/{hub}/groups/{group}/checkpoints/{partition}"},
	sheet: func(v *visit) (*sheet, error) { return moveSheet(v, nil) },
	do: func(v *visit) (outcome, error) {
		target, err := v.target()
		if err != nil {
			return outcome{}, err
		}
		partitions, err := v.chosen()
		if err != nil {
			return outcome{}, err
		}
		dry := v.step() != act
		moved := make([]admin.Moved, 0, len(partitions))
		for _, p := range partitions {
			m, err := v.api.MoveCheckpoint(v.ctx, v.name("hub"), v.name("group"), p, target, admin.MoveOptions{Force: v.r.PostFormValue("force") != "", DryRun: dry})
			if err != nil {
				return outcome{}, err
			}
			moved = append(moved, m)
		}
		if !dry {
			return outcome{to: at("hubs", v.name("hub"), "groups", v.name("group")), done: "moved", n: len(moved)}, nil
		}
		s, err := moveSheet(v, foresee(moved, pace(v)))
		if err == nil {
			s.Buttons = append(s.Buttons, button{fmt.Sprintf("Move %s", plural(len(moved), "checkpoint", "checkpoints")), "main", act})
		}
		return outcome{sheet: s}, err
	},
}

// pace is how many events a second the group has read at the fastest lately; zero: that is not known.
func pace(v *visit) (fastest float64) {
	const step = 10
	for _, s := range v.series(admin.SeriesQuery{Of: []string{"read"}, Hub: v.name("hub"), Group: v.name("group")}) {
		fastest = max(fastest, peak(resample(s, s.From.Unix(), step, len(s.Values)*s.Step/step)))
	}
	return fastest
}

// foresee says what a move would do, in events, and how long they take at a pace.
func foresee(moved []admin.Moved, pace float64) *note {
	var again, over int64
	unknown := 0
	for _, m := range moved {
		if m.From == nil || m.From.Sequence == nil || m.To.Sequence == nil {
			unknown++
			continue
		}
		if d := *m.From.Sequence - *m.To.Sequence; d > 0 {
			again += d
		} else {
			over -= d
		}
	}
	n := &note{Tone: "odd", Icon: "history", More: "Handlers see events a second time. Nothing is removed."}
	switch {
	case again > 0 && over > 0:
		n.Text = fmt.Sprintf("%s would be read again, and %s skipped.", plural(again, "event", "events"), number(over))
	case again > 0:
		n.Text = fmt.Sprintf("%s would be read again.", plural(again, "event", "events"))
	case over > 0:
		n.Text, n.More = fmt.Sprintf("%s would be skipped.", plural(over, "event", "events")), "This group does not handle them. They stay in the hub."
	default:
		n.Tone, n.Text, n.More = "good", "No event would be read again or skipped.", ""
	}
	if again > 0 && pace > 0 {
		n.More = fmt.Sprintf("At %s/s, the fastest that the group has read lately, that takes %s. %s", rate(pace), span(seconds(math.Ceil(float64(again)/pace))), n.More)
	}
	if unknown > 0 {
		n.More = strings.TrimSpace(n.More + " " + plural(unknown, "partition has no checkpoint yet.", "partitions have no checkpoint yet."))
	}
	return n
}

func moveSheet(v *visit, said *note) (*sheet, error) {
	hub, group := v.name("hub"), v.name("group")
	h, err := v.api.Hub(v.ctx, hub)
	if err != nil {
		return nil, err
	}
	partitions := []option{{"", "All " + number(h.Partitions)}}
	for _, id := range h.PartitionIDs {
		partitions = append(partitions, option{id, id})
	}
	force := ""
	if v.value("force", "") != "" {
		force = "on"
	}
	return &sheet{
		Title: "Move the checkpoints of " + group, About: "Instances continue from there. Stop them first, or also move checkpoints of partitions that are owned.",
		Back: at("hubs", hub, "groups", group), Note: said, Command: command("checkpoint", "rewind", hub, group, "--to", "TIME"),
		Fields: []field{
			{Name: "to", Label: "To", Kind: "select", Value: v.value("to", "earliest"), Options: []option{
				{"earliest", "the oldest event"}, {"latest", "the newest event"}, {"time", "a time"}, {"sequence", "a sequence number"}}},
			{Name: "when", Label: "Time, or sequence number", Kind: "text", Value: v.value("when", ""), Placeholder: v.now.UTC().Add(-time.Hour).Format(time.RFC3339), Optional: true},
			{Name: "partition", Label: "Partitions", Kind: "select", Value: v.value("partition", ""), Options: partitions},
			{Name: "force", Label: "Also those that an instance owns now", Kind: "check", Value: force},
		},
		Buttons: []button{{"See what it would do", "", look}},
	}, nil
}

// target is where a form wants checkpoints to be.
func (v *visit) target() (admin.Target, error) {
	when := strings.TrimSpace(v.r.PostFormValue("when"))
	switch v.r.PostFormValue("to") {
	case "latest":
		return admin.Target{Latest: true}, nil
	case "time":
		t, err := parseTime(when)
		return admin.Target{Time: &t}, err
	case "sequence":
		n, err := strconv.ParseInt(strings.ReplaceAll(when, ",", ""), 10, 64)
		if err != nil {
			return admin.Target{}, wrongInput(strconv.Quote(when) + " is no sequence number.")
		}
		return admin.Target{Sequence: &n}, nil
	}
	return admin.Target{Earliest: true}, nil
}

// parseTime reads a time as people write it, in UTC where it does not say.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, strings.TrimSuffix(text, " UTC")); err == nil {
			return t, nil
		}
	}
	return time.Time{}, wrongInput(strconv.Quote(text) + " is no time. Write it like 2026-01-31 18:00:00, in UTC.")
}

// chosen are the partitions that a form means.
func (v *visit) chosen() ([]string, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	one := v.r.PostFormValue("partition")
	if one == "" {
		return h.PartitionIDs, nil
	}
	if !slices.Contains(h.PartitionIDs, one) {
		return nil, wrongInput("There is no partition " + one + ".")
	}
	return []string{one}, nil
}
