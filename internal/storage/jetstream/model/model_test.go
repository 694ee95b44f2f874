package model

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// answer is what was heard of one message.
type answer struct {
	seq   streams.Seq
	err   error
	after time.Duration
}

// publish publishes one message and waits for its answer.
func publish(n *Node, text string) answer {
	began := time.Now()
	heard := make(chan answer, 2)
	n.Publish("s", "0", []byte(text), func(seq streams.Seq, err error) { heard <- answer{seq, err, time.Since(began)} })
	return <-heard
}

// run gives a test a stream on three replicas, and a node, in a bubble.
func run(t *testing.T, faults Faults, test func(*testing.T, *Cluster, *Node)) {
	synctest.Test(t, func(t *testing.T) {
		c := New(1, Faults{})
		n := c.Node("a")
		testkit.Must(t, n.Make(t.Context(), "s", streams.Config{Replicas: 3}))
		c.SetFaults(faults)
		test(t, c, n)
		synctest.Wait()
	})
}

func texts(messages []streams.Message) (texts []string) {
	for _, m := range messages {
		texts = append(texts, string(m.Data))
	}
	return texts
}

func TestWhatBecomesOfAPublish(t *testing.T) {
	for name, tt := range map[string]struct {
		faults Faults
		before func(*Cluster)
		err    error
		after  time.Duration
		stored []string // a minute later
	}{
		"nothing goes wrong":        {stored: []string{"x"}},
		"lost":                      {faults: Faults{Lost: 1}, err: streams.ErrUncertain, after: patience},
		"the answer is lost":        {faults: Faults{AckLost: 1}, err: streams.ErrUncertain, after: patience, stored: []string{"x"}},
		"twice":                     {faults: Faults{Twice: 1}, stored: []string{"x", "x"}},
		"refused":                   {faults: Faults{Unavailable: 1}, err: streams.ErrUnavailable},
		"no space":                  {faults: Faults{NoSpace: 1}, err: streams.ErrNoSpace},
		"a cut that nobody notices": {before: func(c *Cluster) { c.CutOff("a", noticed-time.Millisecond) }, err: streams.ErrUncertain, after: patience, stored: []string{"x"}},
		"a long cut":                {before: func(c *Cluster) { c.CutOff("a", noticed) }, err: streams.ErrUncertain, after: patience},
		"another's cut":             {before: func(c *Cluster) { c.CutOff("b", time.Hour) }, stored: []string{"x"}},
		"no servers":                {before: func(c *Cluster) { c.StopServers(time.Hour) }, err: streams.ErrUnavailable},
		"servers that are back":     {before: func(c *Cluster) { c.StopServers(time.Hour); c.StopServers(0) }, stored: []string{"x"}},
		"no such stream":            {before: func(c *Cluster) { delete(c.streams, "s") }, err: streams.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tt.faults, func(t *testing.T, c *Cluster, n *Node) {
				if tt.before != nil {
					tt.before(c)
				}
				got := publish(n, "x")
				testkit.ErrorIs(t, got.err, tt.err)
				testkit.Equal(t, got.after, tt.after)
				time.Sleep(time.Minute)
				synctest.Wait()
				testkit.Slices(t, texts(c.Messages("s")), tt.stored)
			})
		})
	}
}

// A cut is known some seconds later, and then nothing is handed over.
func TestANodeNoticesThatItIsCutOff(t *testing.T) {
	run(t, Faults{}, func(t *testing.T, c *Cluster, n *Node) {
		c.CutOff("a", time.Minute)
		time.Sleep(noticed)
		testkit.ErrorIs(t, publish(n, "x").err, streams.ErrUnavailable)
		_, err := n.State(t.Context(), "s")
		testkit.ErrorIs(t, err, streams.ErrUnavailable)
		c.CutOff("a", 0)
		testkit.Check(t, publish(n, "y").err, "after the cut")
	})
}

// While nobody leads, publishes are refused or in doubt, the leader cannot be asked, and reads go on.
func TestAStreamWithoutLeader(t *testing.T) {
	run(t, Faults{}, func(t *testing.T, c *Cluster, n *Node) {
		testkit.Must(t, publish(n, "before").err)
		c.LoseLeader("s", 5*time.Second)
		refused, doubtful := 0, 0
		for range 50 {
			n.Publish("s", "0", []byte("x"), func(_ streams.Seq, err error) {
				switch {
				case errors.Is(err, streams.ErrUnavailable):
					refused++
				case errors.Is(err, streams.ErrUncertain):
					doubtful++
				}
			})
		}
		_, err := n.State(t.Context(), "s")
		testkit.ErrorIs(t, err, streams.ErrUnavailable)
		_, err = n.Last(t.Context(), "s", "")
		testkit.ErrorIs(t, err, streams.ErrUnavailable)
		part, err := n.Read(t.Context(), "s", streams.Query{})
		testkit.Must(t, err)
		testkit.Slices(t, texts(part.Messages), []string{"before"})
		time.Sleep(time.Minute)
		synctest.Wait()
		landed := len(c.Messages("s")) - 1
		testkit.That(t, refused > 0 && refused+doubtful == 50 && landed > 0 && landed < doubtful,
			"%d refused, %d in doubt, %d of them stored", refused, doubtful, landed)
	})
}

func TestLateMessagesAreStoredBehindOthers(t *testing.T) {
	run(t, Faults{Late: 1, LateBy: time.Second}, func(t *testing.T, c *Cluster, n *Node) {
		n.Publish("s", "0", []byte("first"), func(streams.Seq, error) {})
		c.SetFaults(Faults{})
		n.Publish("s", "0", []byte("second"), func(streams.Seq, error) {})
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Slices(t, texts(c.Messages("s")), []string{"second", "first"})
	})
}

// A replica shows what is old, and never less than before.
func TestReplicasLag(t *testing.T) {
	run(t, Faults{Lag: time.Minute}, func(t *testing.T, c *Cluster, n *Node) {
		shown := make([]streams.Seq, 3)
		old := 0
		for i := range 200 {
			testkit.Must(t, publish(n, "x").err)
			part, err := n.Read(t.Context(), "s", streams.Query{From: 1})
			testkit.Must(t, err)
			if part.Through < streams.Seq(i+1) {
				old++
			}
			for r, rep := range c.streams["s"].replicas {
				testkit.That(t, rep.through >= shown[r], "replica %d goes back", r)
				shown[r] = rep.through
			}
			time.Sleep(time.Second)
		}
		testkit.That(t, old > 100, "only %d reads were old", old)
		m, err := n.Last(t.Context(), "s", "0")
		testkit.Must(t, err)
		testkit.Equal(t, m.Seq, 200)
	})
}

func TestDamageIsAtTheReplicasThatAreNamed(t *testing.T) {
	run(t, Faults{}, func(t *testing.T, c *Cluster, n *Node) {
		for _, text := range []string{"one", "two", "three"} {
			testkit.Must(t, publish(n, text).err)
		}
		testkit.That(t, c.Damage("s", 1, -1) && c.Hide("s", 2, 0) && !c.Hide("s", 4, 0) && !c.Damage("none", 1, 0), "no such message")
		missing := 0
		for range 100 {
			part, err := n.Read(t.Context(), "s", streams.Query{From: 1})
			testkit.Must(t, err)
			got := texts(part.Messages)
			testkit.That(t, got[0] != "one", "the damage is not seen")
			if len(got) == 2 {
				missing++
			}
		}
		testkit.That(t, missing > 0 && missing < 100, "missing %d times", missing)
		testkit.Slices(t, texts(c.Messages("s")), []string{"one", "two", "three"})
	})
}

// Who closes knows nothing of what is under way.
func TestAClosedNodeLeavesDoubt(t *testing.T) {
	run(t, Faults{Delay: time.Second}, func(t *testing.T, c *Cluster, n *Node) {
		heard := make(chan error, 2)
		n.Publish("s", "0", []byte("x"), func(_ streams.Seq, err error) { heard <- err })
		n.Close()
		n.Close()
		testkit.ErrorIs(t, <-heard, streams.ErrUncertain)
		testkit.ErrorIs(t, publish(n, "y").err, streams.ErrClosed)
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Slices(t, texts(c.Messages("s")), []string{"x"})
	})
}

// The same seed gives the same run.
func TestARunCanBeRepeated(t *testing.T) {
	once := func() (stored []string) {
		run(t, Faults{Delay: time.Second, Lost: 0.2, AckLost: 0.2, Twice: 0.2, Late: 0.2}, func(t *testing.T, c *Cluster, n *Node) {
			for i := range 100 {
				n.Publish("s", "0", []byte{byte('a' + i%26)}, func(streams.Seq, error) {})
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			stored = texts(c.Messages("s"))
		})
		return stored
	}
	testkit.Slices(t, once(), once())
}
