package classic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

// room is a group with a clock, and the answers that have come of each ticket.
type room struct {
	t       testing.TB
	group   *Group
	now     time.Time
	tickets Ticket
	answers map[Ticket]Answer
	ids     int
	saves   int
	stored  Stored // when it last had to be
}

func newRoom(t testing.TB, delay time.Duration) *room {
	return &room{t: t, group: New(delay), now: time.Unix(1_700_000_000, 0), answers: make(map[Ticket]Answer)}
}

// take notes the answers of an event: each ticket has one.
func (r *room) take(e Effect) {
	r.t.Helper()
	for _, a := range e.Answers {
		_, twice := r.answers[a.Ticket]
		testkit.MustThat(r.t, !twice, "ticket %d is answered twice", a.Ticket)
		r.answers[a.Ticket] = a
	}
	if e.Save {
		r.saves++
		r.stored = r.group.Stored()
	}
}

// want is what a member asks for, with the usual of everything.
func want(topics ...string) Join {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return Join{
		Client: "client", Host: "/127.0.0.1", Session: 10 * time.Second, Rebalance: time.Minute, Type: member.ConsumerProtocol,
		Protocols: []Protocol{{Name: "range", Metadata: m.AppendTo(nil)}},
	}
}

func (j Join) as(id string) Join       { j.Member = id; return j }
func (j Join) static(name string) Join { j.Instance = name; return j }
func (j Join) protocols(all ...string) Join {
	metadata := j.Protocols[0].Metadata
	j.Protocols = nil
	for _, name := range all {
		j.Protocols = append(j.Protocols, Protocol{Name: name, Metadata: metadata})
	}
	return j
}

// join sends a request; its answer is found by the ticket.
func (r *room) join(j Join) Ticket {
	r.t.Helper()
	r.tickets++
	r.ids++
	j.NewID = fmt.Sprint("m", r.ids)
	r.take(r.group.Join(r.now, r.tickets, j))
	return r.tickets
}

// sync asks for an assignment. The leader assigns to each member its own id.
func (r *room) sync(joined Joined) Ticket {
	r.t.Helper()
	r.tickets++
	s := Sync{Member: joined.Member, Generation: joined.Generation, Type: joined.Type, Protocol: joined.Protocol}
	if joined.Leader == joined.Member {
		s.Assignments = make(map[string][]byte)
		for _, m := range joined.Members {
			s.Assignments[m.ID] = []byte("for " + m.ID)
		}
	}
	r.take(r.group.Sync(r.now, r.tickets, s))
	return r.tickets
}

func (r *room) joined(t Ticket) Joined {
	r.t.Helper()
	a, there := r.answers[t]
	testkit.MustThat(r.t, there, "ticket %d waits", t)
	testkit.Must(r.t, a.Err)
	return a.Join
}

func (r *room) assigned(t Ticket) string {
	r.t.Helper()
	a, there := r.answers[t]
	testkit.MustThat(r.t, there, "ticket %d waits", t)
	testkit.Must(r.t, a.Err)
	return string(a.Sync.Assignment)
}

func (r *room) refused(t Ticket, want error) {
	r.t.Helper()
	a, there := r.answers[t]
	testkit.MustThat(r.t, there, "ticket %d waits", t)
	testkit.ErrorIs(r.t, a.Err, want)
}

func (r *room) waits(tickets ...Ticket) {
	r.t.Helper()
	for _, t := range tickets {
		a, there := r.answers[t]
		testkit.That(r.t, !there, "ticket %d is answered: %+v", t, a)
	}
}

// stable has so many members join and sync, and gives what they were told. The first leads.
func (r *room) stable(joins ...Join) []Joined {
	r.t.Helper()
	var all []Joined
	for i, j := range joins {
		tickets := []Ticket{r.join(j)}
		for k := range i { // who was there before joins again
			tickets = slices.Insert(tickets, k, r.join(joins[k].as(all[k].Member)))
		}
		all = nil
		for _, t := range tickets {
			all = append(all, r.joined(t))
		}
	}
	var synced []Ticket
	for _, j := range slices.Backward(all) {
		synced = append(synced, r.sync(j))
	}
	for i, j := range slices.Backward(all) {
		testkit.MustEqual(r.t, r.assigned(synced[len(all)-1-i]), "for "+j.Member)
	}
	testkit.MustEqual(r.t, r.group.State(), Stable)
	return all
}

// pass lets time go by, step by step, with everything done when it is due.
func (r *room) pass(d time.Duration) {
	r.t.Helper()
	end := r.now.Add(d)
	for {
		next := r.group.Next()
		if next.IsZero() || next.After(end) {
			r.now = end
			return
		}
		if next.After(r.now) {
			r.now = next
		}
		r.take(r.group.Tick(r.now))
		again := r.group.Next()
		testkit.MustThat(r.t, again.IsZero() || again.After(r.now), "after %v something is still due", r.now)
	}
}

func (r *room) members() string {
	var ids []string
	for _, m := range r.group.View().Members {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}
