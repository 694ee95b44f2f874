package broker

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// insistOn sends a frame until it is stored, as clients do, and gives its position.
func insistOn(t *testing.T, b *Broker, f eventlog.Batch) eventlog.Sequence {
	t.Helper()
	for range 10 {
		stored, err := putFrames(t.Context(), b, "orders", f)
		if err == nil {
			return stored.First
		}
		if !passing(err) {
			t.Fatal(err)
		}
	}
	t.Fatal("it is refused for ever")
	return eventlog.NoSequence
}

// C2, K3: frames that are sent again by way of another node are stored once, and that node knows where.
func TestRepeatsOfFramesThroughAnotherNode(t *testing.T) {
	c := newFleet(t, 2)
	var want []string
	var positions []eventlog.Sequence
	sent := func(n int32) eventlog.Batch { return frameOf(7, 0, 2*n, fmt.Sprint(n), "more") }
	for n := range int32(12) {
		mustPublish(t, c.brokers[n%2], "orders", Target{}, "plain")
		here, there := c.brokers[n/2%2], c.brokers[1-n/2%2]
		positions = append(positions, insistOn(t, here, sent(n)))
		testkit.Equal(t, insistOn(t, there, sent(n)), positions[n], "%d there", n)
		want = append(want, "plain", fmt.Sprint(n), "more")
	}
	expect(t, c.brokers[0], "orders", want...)
	for _, b := range append(c.brokers, c.join(t)) {
		for n := int32(12 - maxRecent); n < 12; n++ {
			testkit.Equal(t, insistOn(t, b, sent(n)), positions[n], "%d in the end", n)
		}
		testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", sent(2))), ErrRepeatTooOld)
		testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", sent(13))), ErrOutOfOrder)
	}
}

// C2, K3: a node that is frozen with frames under way stores none of them once the producer has gone on
// through another.
func TestAFrozenNodeWithFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 2)
		frozen, awake := c.brokers[0], c.brokers[1]
		sent := []eventlog.Batch{
			frameOf(7, 0, 0, "a"), frameOf(7, 0, 1, "b"), frameOf(7, 0, 2, "c"), frameOf(7, 0, 3, "d", "e"),
		}
		mustPut(t, frozen, sent[0])
		release := c.doubles[0].hold(2)
		var under []*PendingFrames
		for _, f := range sent[1:] {
			under = append(under, testkit.Value(frozen.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{f}))(t))
		}
		for _, f := range sent {
			insistOn(t, awake, f)
		}
		close(release)
		for i, p := range under {
			if err := testkit.Err(p.Wait(t.Context())); err != nil || i > 0 { // the first may be stored before the other begins
				testkit.ErrorIs(t, err, eventlog.ErrFenced, "%d", i)
			}
		}
		for i, f := range sent {
			testkit.Equal(t, insistOn(t, frozen, f), eventlog.Sequence(i), "%d again", i)
		}
		insistOn(t, frozen, frameOf(7, 0, 5, "f"))
		expect(t, awake, "orders", "a", "b", "c", "d", "e", "f")
	})
}

// C2, K3: frames whose outcome one node does not know are not stored again when the producer has gone on
// through another.
func TestDoubtOfFramesAndAnotherNode(t *testing.T) {
	for what, stored := range map[string]bool{"they were stored": true, "they were not": false} {
		t.Run(what, func(t *testing.T) {
			c := newFleet(t, 2)
			doubt := error(eventlog.ErrUncertain)
			if stored {
				doubt = logtest.Unheard(doubt)
			}
			c.doubles[0].Engine.Fail(doubt, logtest.OpWait)
			a, b, d := frameOf(7, 0, 0, "a"), frameOf(7, 0, 1, "b", "c"), frameOf(7, 0, 3, "d")
			testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), c.brokers[0], "orders", a)), eventlog.ErrUncertain)
			c.doubles[0].Engine.Inject(nil)
			insistOn(t, c.brokers[1], a)
			insistOn(t, c.brokers[1], b)
			c.brokers[0].ledgers.tend(t.Context(), 0)
			testkit.Equal(t, insistOn(t, c.brokers[0], a), 0)
			insistOn(t, c.brokers[0], d)
			testkit.Equal(t, insistOn(t, c.brokers[1], b), 1)
			expect(t, c.brokers[1], "orders", "a", "b", "c", "d")
		})
	}
}

// C2, K3: an epoch that begins with a frame at one node ends the lower ones at all.
func TestEpochsOfFramesFenceAtAllNodes(t *testing.T) {
	c := newFleet(t, 3)
	mustPut(t, c.brokers[0], frameOf(7, 0, 0, "a"))
	insistOn(t, c.brokers[1], frameOf(7, 1, 0, "b"))
	old := frameOf(7, 0, 1, "x")
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), c.brokers[0], "orders", old)), eventlog.ErrFenced, "what the old one sends")
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), c.brokers[0], "orders", old)), ErrProducerFenced, "and sends again")
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), c.brokers[2], "orders", old)), ErrProducerFenced, "or sends elsewhere")
	insistOn(t, c.brokers[2], frameOf(7, 1, 1, "c"))
	insistOn(t, c.brokers[0], frameOf(7, 1, 2, "d"))
	expect(t, c.brokers[0], "orders", "a", "b", "c", "d")
}
