package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// The small states of a group: whose a partition is that the yard keeps no lease of, for how long it has been
// nobody's, whose lease has run out, and which reader keeps its owner out.

// namelessReader is what a reader is called that says no name.
const namelessReader = "a reader without a name"

// foreigners makes owners of readers that keep their leases elsewhere, as processors of other libraries do: they have
// a lane and a colour like others. It gives how each of them reads, by name.
func foreigners(o admin.Ownership) (admin.Ownership, map[string]string) {
	o.Partitions = slices.Clone(o.Partitions)
	o.Instances = slices.Clone(o.Instances)
	found := map[string]string{}
	for i := range o.Partitions {
		p := &o.Partitions[i]
		if p.Owner != "" || len(p.Readers) == 0 {
			continue
		}
		reader := slices.MaxFunc(p.Readers, func(a, b admin.Reader) int { return int(epochOf(a) - epochOf(b)) })
		p.Owner, p.Alive = orWord(reader.Name, namelessReader), true
		how := "reads without an epoch"
		if reader.Epoch != nil {
			p.Epoch, how = *reader.Epoch, "of another library"
		}
		if found[p.Owner] == "" {
			o.Instances = append(o.Instances, admin.Instance{ID: p.Owner, Alive: true})
		}
		found[p.Owner] = how
	}
	return o, found
}

// epochOf is that of a reader; -1: it has none.
func epochOf(r admin.Reader) int64 {
	if r.Epoch == nil {
		return -1
	}
	return *r.Epoch
}

// rowState is a state of a partition, in a few words, and what it means.
type rowState struct{ Tone, Text, Means string }

// stateOf is what is odd about a partition; nothing: all is well. left is when it last had an owner, zero: nobody
// knows.
func stateOf(p admin.OwnedPartition, foreign map[string]string, left, now time.Time) rowState {
	waits := p.LagEvents != nil && *p.LagEvents > 0
	switch blocks := blockedBy(p); {
	case p.Owner == "":
		s := rowState{"", "", "No instance has it."}
		if waits {
			s = rowState{"bad", "", "Nobody reads it, and events wait."}
		}
		if !left.IsZero() {
			s.Text = "for " + span(now.Sub(left).Truncate(time.Second))
		}
		return s
	case !p.Alive && p.Renewed != nil:
		return rowState{"bad", "not seen for " + span(now.Sub(p.Renewed.Time).Truncate(time.Second)), "Its owner has not renewed it: any other instance may take it over."}
	case !p.Alive:
		return rowState{"bad", "not seen", "Its owner has not renewed it: any other instance may take it over."}
	case foreign[p.Owner] != "":
		return rowState{"", foreign[p.Owner], "The yard keeps no lease of it: what keeps readers apart is not known here."}
	case blocks > 0:
		return rowState{"bad", "kept out by epoch " + number(blocks), fmt.Sprintf("A reader with epoch %s is connected, and the lease has %s: its owner is refused until that one leaves. Release disconnects it.", number(blocks), number(p.Epoch))}
	}
	return rowState{}
}

// blockedBy is the epoch of a reader that is above that of the lease, by which the yard refuses its owner; 0: none is.
func blockedBy(p admin.OwnedPartition) (epoch int64) {
	for _, r := range p.Readers {
		if e := epochOf(r); p.Alive && e > p.Epoch && p.Renewed != nil {
			epoch = max(epoch, e)
		}
	}
	return epoch
}

// leftOf is when each partition last had an owner, as far as the history goes.
func leftOf(history admin.GroupHistory) map[string]time.Time {
	left := map[string]time.Time{}
	for _, s := range history.Spans {
		if s.To.After(left[s.Partition]) {
			left[s.Partition] = s.To.Time
		}
	}
	return left
}

// remember adds to the lanes of those that are gone what they had, and when the last of it was taken over.
func remember(lanes []lane, history admin.GroupHistory) {
	for i := range lanes {
		l := &lanes[i]
		if !l.Dead || len(l.Chips) > 0 {
			continue
		}
		had := map[string]time.Time{} // until when
		for _, s := range history.Spans {
			if s.Owner == l.Name {
				had[s.Partition] = s.To.Time
			}
		}
		for _, s := range history.Spans {
			if until, ok := had[s.Partition]; ok && s.Owner != l.Name && !s.From.Before(until) && s.From.After(l.Taken) {
				l.Taken = s.From.Time
			}
		}
		names := sorted(had)
		if l.Had = strings.Join(names[:min(len(names), leastChips)], ", "); len(names) > leastChips {
			l.Had += fmt.Sprintf(" and %d more", len(names)-leastChips)
		}
	}
}

// blocked warns of owners that readers with a higher epoch keep out.
func blocked(o admin.Ownership) string {
	var where []string
	for _, p := range o.Partitions {
		if blockedBy(p) > 0 {
			where = append(where, p.Partition)
		}
	}
	if len(where) == 0 {
		return ""
	}
	return "A reader with a higher epoch keeps the owner out of partition " + strings.Join(where, ", ") + "."
}

// unknownLags is of how many partitions the lag is not known.
func unknownLags(o admin.Ownership) (n int) {
	for _, p := range o.Partitions {
		if p.LagEvents == nil {
			n++
		}
	}
	return n
}

// lagMeans says why a lag is a question mark.
const lagMeans = "Not known: the checkpoint is kept elsewhere, or names no event."

// LagMeans is that, for templates.
func (groupView) LagMeans() string { return lagMeans }
