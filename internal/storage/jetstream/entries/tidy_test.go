package entries

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTooOld(t *testing.T) {
	at := func(seqs ...uint64) (values []item) {
		for _, seq := range seqs {
			values = append(values, item{message: message{seq: seq, kind: value}})
		}
		return values
	}
	for name, c := range map[string]struct {
		values []item
		last   uint64
		want   int
	}{
		"nothing":                      {nil, 100, 0},
		"no gaps":                      {at(98, 99, 100), 100, 0},
		"few gaps":                     {at(1, 12), 12, 0},
		"one old value":                {at(1, 100), 100, 1},
		"two old values":               {at(1, 2, 99, 100), 100, 2},
		"what is left has half":        {at(1, 50, 95, 100), 100, 2},
		"all are old":                  {at(1, 2), 100, 2},
		"the replica knows more ahead": {at(101), 100, 0},
	} {
		t.Run(name, func(t *testing.T) { testkit.Equal(t, tooOld(c.values, c.last, 10), c.want) })
	}
}

// A value that was stored again is read as what it was, and what nobody writes is refused.
func TestMessagesStoredAgain(t *testing.T) {
	m := message{seq: 90, kind: value, nonce: 7, before: 80, was: 5, key: "hubs/orders", value: []byte("x")}
	read := testkit.Value(decode(90, m.encode()))(t)
	testkit.Deep(t, read, m)
	testkit.Check(t, (*Audit)(nil).Intact(m.encode()), "to the scrub")
	testkit.Equal(t, read.revision(), meta.Revision(10), "its revision")
	_, err := decode(5, m.encode())
	testkit.That(t, err != nil, "a value that is older than it was")
	m.kind, m.value = deletion, nil
	_, err = decode(90, m.encode())
	testkit.That(t, err != nil, "a deletion that was stored again")
}

// C1: what changes all the time leaves few gaps in the stream behind what never does, which keeps its revision at
// all nodes, those that start later too, and can be changed by it.
func TestGapsAreFew(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := yard(t, servers)
	cfg.MaxGaps, cfg.tidyEvery = 50, 100*time.Millisecond
	here, there := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 1), cfg)
	made := map[string]meta.Revision{}
	for i := range 20 {
		key := fmt.Sprint("hubs/", i)
		made[key] = testkit.Value(here.CompareAndSet(t.Context(), key, 0, []byte(key)))(t)
	}
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	alive := meta.Revision(0)
	state := func() jetstream.StreamState {
		stream := testkit.Value(js.Stream(t.Context(), here.layout.stream("d")))(t)
		return testkit.Value(stream.Info(t.Context()))(t).State
	}
	live := func() { alive = testkit.Value(there.CompareAndSet(t.Context(), "nodes/a", alive, []byte("alive")))(t) }
	for range 200 {
		live()
	}
	gaps := func() int {
		now := state()
		return int(now.LastSeq-now.FirstSeq) + 1 - int(now.Msgs)
	}
	time.Sleep(3 * cfg.tidyEvery)
	testkit.That(t, gaps() > cfg.MaxGaps, "%d gaps are left, though nobody was told to tidy", gaps())
	tidy(t, here)
	tidy(t, there)
	testkit.Eventually(t, "gaps to become few", func() bool {
		live() // it is looked again only when more was written
		return gaps() <= cfg.MaxGaps
	})
	later := open(t, servers.Dial(t, 2), cfg)
	tidy(t, later)
	for key, revision := range made {
		for _, s := range []*Store{here, there, later} {
			testkit.Must(t, s.Fresh(t.Context(), ""))
			e := testkit.Value(s.Get(t.Context(), key))(t)
			testkit.That(t, e.Revision == revision && string(e.Value) == key, "%s is %s at %d, and was made at %d", key, e.Value, e.Revision, revision)
		}
		next := testkit.Value(there.CompareAndSet(t.Context(), key, revision, []byte("changed")))(t)
		testkit.ErrorIs(t, testkit.Err(here.CompareAndSet(t.Context(), key, revision, []byte("late"))), meta.ErrConflict)
		testkit.Must(t, here.Delete(t.Context(), key, next))
	}
}

// C1: a look that fails, as while there is no leader, is made again soon, though nobody writes any more.
func TestALookForGapsThatFailedIsMadeAgain(t *testing.T) {
	servers := natstest.Shared(t, 1)
	cfg := yard(t, servers)
	cfg.MaxGaps, cfg.tidyEvery = 50, 50*time.Millisecond
	s := open(t, servers.Dial(t, 0), cfg)
	set(t, s, "hubs/old", 0, "old")
	alive := meta.Revision(0)
	for range 100 {
		alive = set(t, s, "nodes/a", alive, "alive")
	}
	refused := false // used by who writes the stream's barriers
	s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
		if subject == s.layout.barrier("d") && !refused {
			refused = true
			return 0, errors.New("there is no leader")
		}
		return s.request(ctx, subject, encoded, header)
	}
	tidy(t, s)
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	testkit.Eventually(t, "gaps to become few", func() bool {
		stream := testkit.Value(js.Stream(t.Context(), s.layout.stream("d")))(t)
		now := testkit.Value(stream.Info(t.Context()))(t).State
		return int(now.LastSeq-now.FirstSeq)+1-int(now.Msgs) <= cfg.MaxGaps
	})
}

// C1: the message of a deletion does not keep the gaps behind it for its life: it is stored again for what is left of that.
// Nobody hears of it, and the key can be created.
func TestADeletionKeepsNoGaps(t *testing.T) {
	servers := natstest.Shared(t, 3)
	cfg := yard(t, servers)
	cfg.MaxGaps, cfg.tidyEvery = 50, 100*time.Millisecond
	here, there := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 1), cfg)
	testkit.Must(t, here.Delete(t.Context(), "hubs/old", set(t, here, "hubs/old", 0, "old")))
	testkit.Must(t, there.Fresh(t.Context(), ""))
	old, _ := there.replica.state("hubs/old")
	watch := testkit.Value(there.Watch(t.Context(), "hubs/"))(t)
	testkit.Must(t, testkit.Err(watch.Next()))
	tidy(t, here)
	tidy(t, there)
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	stream := testkit.Value(js.Stream(t.Context(), here.layout.stream("d")))(t)
	alive := meta.Revision(0)
	testkit.Eventually(t, "gaps to become few", func() bool {
		for range 20 {
			alive = set(t, there, "nodes/a", alive, "alive")
		}
		now := testkit.Value(stream.Info(t.Context()))(t).State
		return now.FirstSeq > old.seq && int(now.LastSeq-now.FirstSeq)+1-int(now.Msgs) <= cfg.MaxGaps
	})
	kept := testkit.Value(stream.GetLastMsgForSubject(t.Context(), here.layout.subject("d", "hubs/old")))(t)
	left := testkit.Value(time.ParseDuration(kept.Header.Get(lifeHeader)))(t)
	testkit.That(t, left < deletionLife && left > deletionLife-time.Hour, "what is left of its life is %v", left)
	set(t, here, "hubs/old", 0, "again")
	for _, c := range testkit.Value(watch.Next())(t) {
		testkit.That(t, !c.Deleted, "a watcher hears of the deletion again: %v", c)
	}
}

// What is left of a deletion's life does not begin anew with each message, and what has come last is remembered.
func TestADeletionThatWasStoredAgainEndsAsTheFirst(t *testing.T) {
	r, begun := newReplica(), time.Now()
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	r.apply("d", 1, begun, message{seq: 1, kind: value, nonce: 1, key: "k"}, message{seq: 2, before: 1, kind: deletion, nonce: 2, key: "k"})
	r.apply("d", 1, at(20*time.Hour), message{seq: 90, before: 2, kind: deletion, nonce: 2, key: "k"})
	it, _ := r.state("k")
	testkit.That(t, it.gone.Equal(begun) && it.seq == 90, "it is gone since %v, at %d", it.gone.Sub(begun), it.seq)
	_, err := fate(r, newBucket("d", r), message{kind: value, nonce: 9, before: 2, key: "k"}, r.look("k", true))
	testkit.ErrorIs(t, err, errStoredAgain, "who creates the key, and expects the first")
	r.prune(at(time.Hour))
	testkit.Equal(t, len(r.kept("d", at(19*time.Hour))), 1, "deletions that have a message")
	testkit.Equal(t, len(r.kept("d", at(21*time.Hour))), 0, "deletions whose message has gone")
	r.apply("d", 1, at(21*time.Hour), message{seq: 95, before: 93, kind: deletion, nonce: 3, key: "k"})
	it, _ = r.state("k")
	testkit.That(t, it.gone.Equal(at(21*time.Hour)), "the deletion of another value is gone since %v", it.gone.Sub(begun))
	r.prune(at(22 * time.Hour))
	_, known := r.state("k")
	testkit.That(t, !known, "it is remembered for ever")
}

// C2: a node that missed that a deletion was stored again knows the next one by its number: its watchers hear nothing, and
// it is gone since it went. Those of a deletion of another value, which it missed as well, do hear.
func TestADeletionThatWasStoredAgainUnseen(t *testing.T) {
	r, begun := newReplica(), time.Now()
	r.apply("d", 1, begun, message{seq: 1, kind: value, nonce: 1, key: "k"}, message{seq: 2, before: 1, kind: deletion, nonce: 2, key: "k"})
	w := &watcher{ready: make(chan struct{}, 1), pending: map[string]meta.Change{}}
	r.begin(w)
	r.apply("d", 1, begun.Add(20*time.Hour), message{seq: 90, before: 50, kind: deletion, nonce: 2, key: "k"}) // 50 replaced 2
	testkit.Equal(t, len(w.take()), 0, "changes of a deletion that was stored again twice")
	it, _ := r.state("k")
	testkit.That(t, it.gone.Equal(begun) && it.seq == 90, "it is gone since %v, at %d", it.gone.Sub(begun), it.seq)
	r.apply("d", 1, begun.Add(21*time.Hour), message{seq: 95, before: 93, kind: deletion, nonce: 3, key: "k"})
	testkit.Equal(t, len(w.take()), 1, "changes of the deletion of another value")
}
