package groups

import (
	"encoding/json"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// stage is a group in which an instance "a" is at work: present, with a lease of partition 0 and a
// checkpoint.
type stage struct {
	*yard
	t          *testing.T
	g          processor.Group
	a          Caller
	lease      processor.Lease
	presence   processor.Entry
	checkpoint processor.Checkpoint
}

const leaseTime, presenceTime = 30 * time.Second, 15 * time.Second

func newStage(t *testing.T) *stage {
	s := &stage{yard: newYard(t, storagetest.Entries(t)), t: t, g: processor.Group{Hub: "orders", Group: "g"}}
	s.group(t, "orders", "g", 2)
	s.a = Caller{Hash: HashOf("a's secret"), Lasts: leaseTime}
	s.presence = testkit.Value(s.PutBy(t.Context(), s.as("a's secret", presenceTime), s.g, processor.Entry{Key: "presence/a", Value: []byte("{}")}))(t)
	s.lease = s.claim(s.a, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	c := testkit.Value(s.BeginBy(t.Context(), s.a, s.g, s.lease))(t)
	c.Sequence, c.Offset = 7, "7"
	s.checkpoint = testkit.Value(s.SaveBy(t.Context(), s.a, s.g, s.lease, c))(t)
	return s
}

func (s *stage) as(secret string, lasts time.Duration) Caller {
	return Caller{Hash: HashOf(secret), Lasts: lasts}
}

// tries gives what is written of a claim; none: no version.
func (s *stage) tries(by Caller, l processor.Lease) processor.Lease {
	s.t.Helper()
	won := testkit.Value(s.ClaimBy(s.t.Context(), by, s.g, []processor.Lease{l}))(s.t)
	if len(won) == 0 {
		return processor.Lease{}
	}
	return won[0]
}

func (s *stage) claim(by Caller, l processor.Lease) processor.Lease {
	s.t.Helper()
	won := s.tries(by, l)
	testkit.That(s.t, won.Version != "", "%+v is not written", l)
	return won
}

func (s *stage) refused(by Caller, l processor.Lease, what string) {
	s.t.Helper()
	won := s.tries(by, l)
	testkit.That(s.t, won.Version == "", "%s: %+v", what, won)
}

// strangers are those who may listen and do not know a's secret.
func (s *stage) strangers() map[string]Caller {
	return map[string]Caller{"an older client": {}, "with a secret": s.as("another secret", leaseTime)}
}

// R1, P1: who does not know the secret of the one that holds a lease can do nothing about it, or
// under it.
func TestLeasesAreForWhoHoldsThem(t *testing.T) {
	s := newStage(t)
	for what, by := range s.strangers() {
		taken := s.lease
		taken.Owner, taken.Epoch = "b", 2
		s.refused(by, taken, what+" takes it")
		taken.Owner = "a"
		s.refused(by, taken, what+" takes it in its owner's name")
		s.refused(by, s.lease, what+" renews it")
		freed := s.lease
		freed.Owner = ""
		s.refused(by, freed, what+" releases it")
		s.refused(by, processor.Lease{Partition: "1", Owner: "a", Epoch: 1}, what+" takes another in its name")

		for _, version := range []processor.Version{s.lease.Version, "", "18446744073709551615"} {
			l := s.lease
			l.Version = version
			testkit.ErrorIs(t, testkit.Err(s.BeginBy(t.Context(), by, s.g, l)), processor.ErrFenced, "%s begins", what)
			testkit.ErrorIs(t, testkit.Err(s.SaveBy(t.Context(), by, s.g, l, s.checkpoint)), processor.ErrFenced, "%s saves", what)
			l.Epoch = 9
			err := testkit.Err(s.SaveBy(t.Context(), by, s.g, l, s.checkpoint))
			testkit.That(t, err != nil, "%s saves under epoch 9", what)
		}
	}
	renewed := s.claim(s.a, s.lease)
	testkit.Equal(t, renewed.Epoch, 1, "the owner renews")
	testkit.Must(t, testkit.Err(s.SaveBy(t.Context(), s.a, s.g, renewed, s.checkpoint)), "and saves")
}

// R1: what a client says of a checkpoint's fence is not believed.
func TestAFenceIsNotTakenFromTheVersion(t *testing.T) {
	s := newStage(t)
	free := s.lease
	free.Owner = ""
	free = s.claim(s.a, free)
	b := s.as("b's secret", leaseTime)
	taken := s.claim(b, processor.Lease{Partition: "0", Owner: "b", Epoch: 2, Version: free.Version})
	fenced := testkit.Value(s.BeginBy(t.Context(), b, s.g, taken))(t)
	taken.Owner = ""
	s.claim(b, taken)
	old := testkit.Value(s.meta.Get(t.Context(), s.key(t, "lease/0")))(t)
	record := testkit.Value(decode[leaseRecord](old))(t)
	record.Owner, record.Epoch, record.bond = "a", 1, s.a.bond() // as no claim writes it
	testkit.Must(t, testkit.Err(s.meta.CompareAndSet(t.Context(), old.Key, old.Revision, encode(record))))
	revision, _, _ := fencedRevisionOf(fenced.Version)
	c := processor.Checkpoint{Sequence: 99, Version: fencedVersion(revision, 0)}
	testkit.ErrorIs(t, testkit.Err(s.SaveBy(t.Context(), s.a, s.g, s.lease, c)), processor.ErrFenced)
}

func (s *stage) key(t *testing.T, rest string) string {
	r := testkit.Value(s.broker.GroupRecords(t.Context(), s.g.Hub, s.g.Group))(t)
	return r.Prefix + rest
}

// R1, P1: a presence, and a wish, is for the instance whose it is.
func TestEntriesBelongToWhoeverWroteThem(t *testing.T) {
	s := newStage(t)
	wish := func(instance string) []byte {
		return testkit.Value(json.Marshal(map[string]string{"instance": instance}))(t)
	}
	next := testkit.Value(s.PutBy(t.Context(), s.a, s.g, processor.Entry{Key: "next/1", Value: wish("a")}))(t)
	tally := testkit.Value(s.PutBy(t.Context(), s.a, s.g, processor.Entry{Key: "failures/f/a", Value: []byte("{}")}))(t)
	work := testkit.Value(s.PutBy(t.Context(), s.a, s.g, processor.Entry{Key: "work/f/0", Value: []byte("{}")}))(t)
	for what, by := range s.strangers() {
		for _, e := range []processor.Entry{s.presence, next, tally, work} {
			e.Value = []byte(`{"leaving":true}`)
			testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), by, s.g, e)), ErrForbidden, "%s puts %s", what, e.Key)
			testkit.ErrorIs(t, s.RemoveBy(t.Context(), by, s.g, e), ErrForbidden, "%s removes %s", what, e.Key)
		}
		for _, e := range []processor.Entry{
			{Key: "next/0", Value: wish("a")}, {Key: "work/f/1"}, {Key: "work/f/none"}, {Key: "circuit/f", Value: []byte("{}")},
		} {
			testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), by, s.g, e)), ErrForbidden, "%s puts %s", what, e.Key)
		}
	}
	for _, e := range []processor.Entry{s.presence, next, tally, work} {
		e = testkit.Value(s.PutBy(t.Context(), s.a, s.g, e))(t)
		testkit.Must(t, s.RemoveBy(t.Context(), s.a, s.g, e), "%s is removed by who put it", e.Key)
	}
	// Its leases show that it lives.
	testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), s.as("another secret", 0), s.g, processor.Entry{Key: "presence/a"})), ErrForbidden)
	testkit.Must(t, testkit.Err(s.PutBy(t.Context(), s.as("another secret", 0), s.g, processor.Entry{Key: "presence/b"})))
}

// R1, P3: what a dead instance held is taken once its time is over, with the epoch raised by one;
// its earlier presence is another life's then, which has its leases, unless they were taken.
func TestWhatTheDeadHeldIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b, again := s.as("b's secret", leaseTime), s.as("a's next secret", presenceTime)
		time.Sleep(leaseTime - time.Millisecond)
		testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), again, s.g, s.presence)), ErrForbidden, "too early")
		time.Sleep(time.Millisecond)
		testkit.Must(t, testkit.Err(s.PutBy(t.Context(), again, s.g, s.presence)), "the next life is present")
		adopted := s.claim(again, processor.Lease{Partition: "0", Owner: "a", Epoch: 2, Version: s.lease.Version})
		s.refused(s.a, adopted, "the earlier life renews")

		time.Sleep(leaseTime)
		s.refused(b, processor.Lease{Partition: "0", Owner: "", Epoch: 2, Version: adopted.Version}, "another releases it")
		taken := s.claim(b, processor.Lease{Partition: "0", Owner: "b", Epoch: math.MaxInt64, Version: adopted.Version})
		testkit.Equal(t, taken.Epoch, 3, "the epoch rises by one")
		s.refused(again, adopted, "the former owner renews")
	})
}

// R1: an instance that is silent for a while keeps its presence as long as it has a lease, for who
// gets the presence gets the leases.
func TestThePresenceOfWhoHasLeasesIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		time.Sleep(presenceTime)
		for what, by := range s.strangers() {
			testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), by, s.g, s.presence)), ErrForbidden, "%s puts it", what)
			testkit.ErrorIs(t, s.RemoveBy(t.Context(), by, s.g, s.presence), ErrForbidden, "%s removes it", what)
			s.refused(by, s.lease, what+" renews")
			testkit.ErrorIs(t, testkit.Err(s.SaveBy(t.Context(), by, s.g, s.lease, s.checkpoint)), processor.ErrFenced, "%s saves", what)
		}
		s.presence = testkit.Value(s.PutBy(t.Context(), s.as("a's secret", presenceTime), s.g, s.presence))(t)
		s.claim(s.a, processor.Lease{Partition: "0", Epoch: 1, Version: s.lease.Version})
		time.Sleep(presenceTime)
		testkit.Must(t, testkit.Err(s.PutBy(t.Context(), s.as("another secret", 0), s.g, s.presence)), "it has none any more")
	})
}

// R1, F5: an instance that comes back under its id counts on at once, however long its earlier
// count is to last.
func TestTheNextLifeWritesItsTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		tally := testkit.Value(s.PutBy(t.Context(), s.as("a's secret", maxLasts), s.g, processor.Entry{Key: "failures/f/a", Value: []byte("{}")}))(t)
		time.Sleep(leaseTime)
		again, b := s.as("a's next secret", maxLasts), s.as("b's secret", maxLasts)
		testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), again, s.g, tally)), ErrForbidden, "before it is present")
		testkit.Must(t, testkit.Err(s.PutBy(t.Context(), again, s.g, s.presence)))
		testkit.Must(t, testkit.Err(s.PutBy(t.Context(), b, s.g, processor.Entry{Key: "presence/b"})))
		testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), b, s.g, tally)), ErrForbidden, "another puts it")
		tally = testkit.Value(s.PutBy(t.Context(), again, s.g, tally))(t)
		testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), s.a, s.g, tally)), ErrForbidden, "the earlier life puts it")
		testkit.Must(t, s.RemoveBy(t.Context(), again, s.g, tally))
	})
}

// R1: a yard that was away has heard nothing from anybody: all have their time anew.
func TestAYardThatWasAwayGivesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		time.Sleep(time.Hour)
		s.yard = openYard(t, s.meta, s.engine)
		for what, by := range s.strangers() {
			s.refused(by, processor.Lease{Partition: "0", Owner: "b", Epoch: 2, Version: s.lease.Version}, what)
			testkit.ErrorIs(t, s.RemoveBy(t.Context(), by, s.g, s.presence), ErrForbidden, what)
		}
		s.claim(s.a, s.lease)
	})
}

// Older clients go on as before among themselves.
func TestClientsWithoutASecret(t *testing.T) {
	s := newStage(t)
	old := Caller{}
	l := s.claim(old, processor.Lease{Partition: "1", Owner: "old", Epoch: 1})
	c := testkit.Value(s.BeginBy(t.Context(), old, s.g, l))(t)
	testkit.Must(t, testkit.Err(s.SaveBy(t.Context(), old, s.g, l, c)))
	l = s.claim(old, l)
	l = s.claim(old, processor.Lease{Partition: "1", Owner: "older", Epoch: 2, Version: l.Version})
	l.Owner = ""
	l = s.claim(old, l)
	p := testkit.Value(s.PutBy(t.Context(), old, s.g, processor.Entry{Key: "presence/old"}))(t)
	p = testkit.Value(s.PutBy(t.Context(), old, s.g, p))(t)
	testkit.Must(t, s.RemoveBy(t.Context(), old, s.g, p))
	// Newer ones take what is free from them, and then have it.
	l = s.claim(s.a, processor.Lease{Partition: "1", Owner: "a", Epoch: 3, Version: l.Version})
	s.refused(old, processor.Lease{Partition: "1", Owner: "old", Epoch: 4, Version: l.Version}, "an older client")
}

// R1: an operator may all of it, and clears an epoch that is too high.
func TestOperators(t *testing.T) {
	s := newStage(t)
	operator := Caller{Operator: true}
	wedged := s.claim(operator, processor.Lease{Partition: "0", Owner: "b", Epoch: math.MaxInt64, Version: s.lease.Version})
	testkit.Must(t, testkit.Err(s.BeginBy(t.Context(), operator, s.g, wedged)))
	wedged.Owner = ""
	wedged = s.claim(operator, wedged)
	s.refused(s.a, processor.Lease{Partition: "0", Owner: "a", Epoch: math.MaxInt64, Version: wedged.Version}, "it cannot rise")
	testkit.Must(t, s.RemoveBy(t.Context(), operator, s.g, s.presence))
	work := triage.Work{Epoch: math.MaxInt64, Instance: "b", Begun: 5, Producer: 3, Number: 4}
	testkit.Must(t, testkit.Err(s.PutBy(t.Context(), operator, s.g, processor.Entry{Key: "work/bill/0", Value: testkit.Value(triage.EncodeWork(work))(t)})))
	testkit.Must(t, testkit.Err(s.PutBy(t.Context(), operator, s.g, processor.Entry{Key: "work/bill/1", Value: testkit.Value(triage.EncodeWork(work))(t)})))

	released := testkit.Value(s.Release(t.Context(), "orders", "g", "0"))(t)
	testkit.Equal(t, released.Lease.Epoch, math.MaxInt64, "released")
	l := s.claim(s.a, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	c := testkit.Value(s.BeginBy(t.Context(), s.a, s.g, l))(t)
	testkit.Equal(t, c.Sequence, 7, "the checkpoint stays")
	testkit.Must(t, testkit.Err(s.SaveBy(t.Context(), s.a, s.g, l, c)))
	for i, e := range testkit.Value(s.Entries(t.Context(), s.g, "work/bill/"))(t) {
		begun, _ := testkit.Value(triage.DecodeWork(e.Value))(t).Begin(triage.Policy{}, 1, "a", 7)
		testkit.Equal(t, begun.Owned(1, "a"), i == 0, "a function's work on partition %d begins at epoch 1 again", i)
		testkit.Equal(t, begun.Number, 4, "what was put away stays recorded")
	}
	testkit.Must(t, testkit.Err(s.Release(t.Context(), "orders", "g", "1")), "what nobody has")
	testkit.That(t, testkit.Err(s.Release(t.Context(), "orders", "g", "9")) != nil, "a partition that is not there")
}
