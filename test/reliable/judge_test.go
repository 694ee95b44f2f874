//go:build linux

package reliable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// poisonEvent is an event in a poison hub, read as anybody would.
type poisonEvent struct {
	partition        string
	sequence         int64
	attempts, deaths int64
	event            event.Event
}

// F4: poisoned reads a poison hub and judges each poison event: it is there once, and says why and
// whence.
func (r *trial) poisoned() []poisonEvent {
	r.t.Helper()
	all := r.poisonEvents()
	seen := map[string]bool{}
	for _, l := range all {
		p := l.event.Properties
		id := fmt.Sprintf("%s/%s/%s/%d", r.name, r.name, l.partition, l.sequence)
		if seen[id] {
			r.t.Errorf("%s was put away twice", id)
		}
		seen[id] = true
		if p["poison-id"] != id || p["poison-function"] != r.name || p["poison-hub"] != r.name || p["poison-group"] != groupName {
			r.t.Errorf("poison event of %s does not say whence it is: %v", id, p)
		}
		if reason, _ := p["poison-reason"].(string); reason == "" {
			r.t.Errorf("poison event of %s does not say why: %v", id, p)
		}
		if l.attempts+l.deaths < 1 {
			r.t.Errorf("poison event of %s does not say how often it was tried: %v", id, p)
		}
	}
	return all
}

// poisonEvents are all events of the poison hub.
func (r *trial) poisonEvents() (all []poisonEvent) {
	r.t.Helper()
	for _, ev := range readHub(r.t, r.yard.client.Hub(r.poison())) {
		l := poisonEvent{partition: fmt.Sprint(ev.Properties["poison-partition"]), event: ev}
		l.sequence = r.number(ev, "poison-sequence")
		l.attempts = r.number(ev, "poison-attempts")
		if ev.Properties["poison-deaths"] != nil {
			l.deaths = r.number(ev, "poison-deaths")
		}
		all = append(all, l)
	}
	return all
}

// number is one of a poison event's properties.
func (r *trial) number(ev event.Event, property string) int64 {
	r.t.Helper()
	n, err := strconv.ParseInt(fmt.Sprint(ev.Properties[property]), 10, 64)
	if err != nil {
		r.t.Fatalf("the poison hub has something without %s: %v", property, ev.Properties)
	}
	return n
}

// readHub gives all events of a hub.
func readHub(t *testing.T, h *hub.Hub) (all []event.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *patience)
	defer cancel()
	info, err := h.Info(ctx)
	testkit.Must(t, err)
	for _, id := range info.Partitions {
		bounds, err := h.Partition(ctx, id)
		testkit.Must(t, err)
		if bounds.Empty {
			continue
		}
		for ev, err := range h.Read(ctx, hub.ReadConfig{Partition: id}) {
			testkit.Must(t, err)
			all = append(all, ev)
			if ev.Sequence == bounds.Last {
				break
			}
		}
	}
	return all
}

// sequences are the poison events' by partition, in order.
func sequences(poisoned []poisonEvent) map[string][]int64 {
	all := map[string][]int64{}
	for _, l := range poisoned {
		all[l.partition] = append(all[l.partition], l.sequence)
	}
	for _, one := range all {
		slices.Sort(one)
	}
	return all
}

// verdict is what a trial came to.
type verdict struct {
	events, repeats int64
	poisoned        []poisonEvent
	// finished is when the last event of each partition was done, on the machine's clock.
	finished []int64
}

// judge looks at everything that was done and put away: every event one of both, none both, and in
// each partition all in order. // F2, F3, F4
func (r *trial) judge() verdict {
	r.t.Helper()
	v := verdict{poisoned: r.poisoned(), finished: make([]int64, len(r.sent))}
	away := sequences(v.poisoned)
	byPartition := map[string][]entry{}
	for _, e := range r.notes() {
		if e.what == "ok" && e.function == r.name {
			byPartition[e.partition] = append(byPartition[e.partition], e)
		}
	}
	for i, end := range r.ends() {
		if sent := r.sent[i].Load(); end < sent {
			r.t.Errorf("partition %d of %s has %d events, and %d were acknowledged", i, r.name, end, sent)
		}
		id := strconv.Itoa(i)
		one := judgePartition(byPartition[id], away[id], end)
		for _, wrong := range one.wrong {
			r.t.Errorf("partition %s of %s: %s", id, r.name, wrong)
		}
		v.repeats += one.repeats
		v.finished[i] = one.finished
		v.events += end
	}
	return v
}

// partitionVerdict is what the calls of a partition came to.
type partitionVerdict struct {
	wrong    []string
	repeats  int64
	finished int64
}

// judgePartition goes by when an event was done for the first time: a call that leaves out an event
// which was not put away has broken the order, and an event that is never done is lost.
func judgePartition(done []entry, away []int64, events int64) (v partitionVerdict) {
	done = slices.SortedStableFunc(slices.Values(done), func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	next := int64(0)
	isAway := func(n int64) bool { _, found := slices.BinarySearch(away, n); return found }
	skip := func() {
		for isAway(next) {
			next++
		}
	}
	for _, e := range done {
		v.finished = e.at
		for _, n := range e.events {
			skip()
			switch {
			case isAway(n):
				v.wrong = append(v.wrong, fmt.Sprintf("%v: event %d was put away, and done", e, n))
			case n < next:
				v.repeats++
			case n > next:
				v.wrong = append(v.wrong, fmt.Sprintf("%v: event %d came before %d was done", e, n, next))
				next = n + 1
			default:
				next++
			}
		}
	}
	if skip(); next != events {
		v.wrong = append(v.wrong, fmt.Sprintf("done up to %d of %d events", next, events))
	}
	return v
}

// wantPoisoned compares what was put away with what should have been.
func (v verdict) wantPoisoned(t *testing.T, want map[string][]int64) {
	t.Helper()
	if got := sequences(v.poisoned); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("put away were %v, not %v", got, want)
	}
}

// lostLeases tells of instances that were too slow to renew: what they did may have been done
// again.
func lostLeases(notes []entry) (n int) {
	for _, e := range notes {
		if e.what == "error" && strings.Contains(e.rest, "lease") {
			n++
		}
	}
	return n
}

func since(nanos int64, from int64) time.Duration {
	return time.Duration(nanos - from).Round(time.Millisecond)
}
