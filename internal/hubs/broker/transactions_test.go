package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func always(context.Context) error { return nil }

var errTestOver = errors.New("the transaction is over")

// inTransaction is a frame of a transaction.
func inTransaction(id int64, epoch int16, first int32, values ...string) eventlog.Batch {
	b := frameOf(id, epoch, first, values...)
	b.Form = eventlog.FormTransaction
	return b
}

// putIn stores a frame of a transaction, and gives where. It sends again what another node has fenced, as clients do.
func putIn(t testing.TB, b *Broker, f eventlog.Batch) (first eventlog.Sequence) {
	t.Helper()
	testkit.Must(t, eventlog.Again(func() error {
		p, err := b.SubmitFrames(t.Context(), "orders", FrameTarget{Verify: always}, []eventlog.Batch{f})
		if err != nil {
			return err
		}
		stored, err := p.Wait(t.Context())
		first = stored.First
		return err
	}, eventlog.ErrFenced))
	return first
}

// endIn ends a transaction in partition 0.
func endIn(t testing.TB, b *Broker, id int64, epoch int16, commit bool) {
	t.Helper()
	testkit.Must(t, b.EndTransaction(t.Context(), logOf(t, b), 0, kafka.Marker(id, epoch, commit, time.Now()), always))
}

func logOf(t testing.TB, b *Broker) string {
	t.Helper()
	return LogOf(b, testkit.Value(b.Hub("orders"))(t).ID)
}

func readZero(t *testing.T, b *Broker) []string {
	t.Helper()
	return read(t, b, "orders", DefaultGroup, 0, eventlog.Earliest())
}

// rest gives the values that a cursor has left.
func rest(t *testing.T, c eventlog.Cursor) (all []string) {
	t.Helper()
	for {
		run := testkit.Value(c.TryNext(t.Context()))(t)
		if run.Len() == 0 {
			return all
		}
		for _, e := range run.Events {
			body, _ := message.Body(e.Message)
			all = append(all, string(body))
		}
	}
}

// K3: readers of events get what is committed, in order, from when it is; what was aborted never; and numbers count on.
func TestReadersGetWhatIsCommitted(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	testkit.Equal(t, mustPut(t, b, frame("plain")), 0)
	testkit.Equal(t, putIn(t, b, inTransaction(5, 0, 0, "a", "b")), 1)
	testkit.Equal(t, mustPut(t, b, frame("between")), 3)
	testkit.Equal(t, putIn(t, b, inTransaction(6, 0, 0, "x")), 4)
	testkit.Slices(t, readZero(t, b), []string{"plain"}, "while nothing is decided")
	endIn(t, b, 6, 0, false)
	testkit.Slices(t, readZero(t, b), []string{"plain"}, "while the first is not decided")
	endIn(t, b, 5, 0, true)
	testkit.Slices(t, readZero(t, b), []string{"plain", "a", "b", "between"}, "when it is")
	testkit.Equal(t, putIn(t, b, inTransaction(6, 0, 1, "y")), 7, "behind two words that take a number each")
	endIn(t, b, 6, 0, true)
	testkit.Slices(t, readZero(t, b), []string{"plain", "a", "b", "between", "y"})
	testkit.Slices(t, read(t, b, "orders", DefaultGroup, 0, eventlog.At(2)), []string{"b", "between", "y"}, "from inside a frame")
	stable := testkit.Value(b.Stable(t.Context(), "orders", "0", 0))(t)
	testkit.Equal(t, stable, 9, "when all is decided")
	putIn(t, b, inTransaction(5, 0, 2, "later"))
	mustPut(t, b, frame("behind"))
	testkit.Equal(t, testkit.Value(b.Stable(t.Context(), "orders", "0", 0))(t), 9, "when one is not")
}

// K3: a reader that waits is woken by the word that ends a transaction, and by nothing else for good.
func TestAReaderWaitsForTheEndOfATransaction(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest()))(t)
	defer c.Close()
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	for _, more := range []string{"b", "c"} {
		run := testkit.Value(c.TryNext(t.Context()))(t)
		testkit.Equal(t, run.Len(), 0)
		testkit.Equal(t, c.At(), 0)
		testkit.Equal(t, len(testkit.Value(c.TryNextAll(t.Context(), nil, 1<<20))(t)), 0)
		testkit.Equal(t, len(testkit.Value(c.Extents(t.Context(), nil, 1<<20))(t)), 0)
		woken := make(chan struct{})
		stop := c.Await(func() { close(woken) })
		mustPut(t, b, frame(more))
		<-woken
		stop()
	}
	got := make(chan eventlog.Run, 1)
	go func() {
		run, err := c.Next(t.Context())
		if err == nil {
			got <- run
		}
		close(got)
	}()
	endIn(t, b, 5, 0, true)
	run := <-got
	testkit.Equal(t, run.First, 0)
	testkit.Equal(t, run.Len(), 1)
	testkit.Slices(t, rest(t, c), []string{"b", "c"}, "what came meanwhile")
	testkit.Must(t, c.Close())
	testkit.ErrorIs(t, testkit.Err(c.TryNext(t.Context())), eventlog.ErrClosed)
}

// K3: a frame of a transaction is stored only if somebody says that it goes on, once in each transaction.
func TestFramesOfTransactionsAreVerified(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	asked := 0
	var refuse error
	put := func(f eventlog.Batch) error {
		to := FrameTarget{Verify: func(context.Context) error { asked++; return refuse }}
		p, err := b.SubmitFrames(t.Context(), "orders", to, []eventlog.Batch{f})
		if err != nil {
			return err
		}
		return testkit.Err(p.Wait(t.Context()))
	}
	refuse = errTestOver
	testkit.ErrorIs(t, put(inTransaction(5, 0, 0, "no")), errTestOver)
	refuse = nil
	testkit.Must(t, put(inTransaction(5, 0, 0, "a")))
	testkit.Must(t, put(inTransaction(5, 0, 1, "b")))
	testkit.Equal(t, asked, 3, "how often it was asked: also before the producer began")
	refuse = errTestOver
	endIn(t, b, 5, 0, true)
	testkit.ErrorIs(t, put(inTransaction(5, 0, 2, "late")), errTestOver, "behind the end")
	refuse = nil
	testkit.Must(t, put(inTransaction(5, 0, 2, "c")))
	endIn(t, b, 5, 1, false)
	testkit.ErrorIs(t, put(inTransaction(5, 0, 3, "zombie")), ErrProducerFenced, "when a higher epoch has ended it")
	testkit.Slices(t, readZero(t, b), []string{"a", "b"})
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", inTransaction(9, 0, 0, "nobody"))), eventlog.ErrForm, "without somebody to ask")
	testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", kafka.Marker(5, 1, true, time.Now()))), eventlog.ErrForm, "a word of its own")
}

// K3, K5: an epoch that nobody was given ends no other.
func TestAFrameThatIsRefusedFencesNobody(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 3, 0, "a"))
	for range 2 {
		to := FrameTarget{Verify: func(context.Context) error { return errTestOver }}
		_, err := b.SubmitFrames(t.Context(), "orders", to, []eventlog.Batch{inTransaction(5, 32767, 0, "stranger")})
		testkit.ErrorIs(t, err, errTestOver)
		testkit.ErrorIs(t, testkit.Err(putFrames(t.Context(), b, "orders", inTransaction(5, 32767, 0, "stranger"))), eventlog.ErrForm, "without somebody to ask")
	}
	putIn(t, b, inTransaction(5, 3, 1, "b"))
	endIn(t, b, 5, 3, true)
	testkit.Slices(t, readZero(t, b), []string{"a", "b"})
}

// K3: the word that ends a transaction is not written where whoever is asked says that it is over, nor in a hub that is
// gone.
func TestTheEndOfATransactionIsChecked(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	log := logOf(t, b)
	end := func() error {
		return b.EndTransaction(t.Context(), log, 0, kafka.Marker(5, 0, true, time.Now()), func(context.Context) error { return errTestOver })
	}
	testkit.ErrorIs(t, end(), errTestOver)
	testkit.Equal(t, len(readZero(t, b)), 0)
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	testkit.Must(t, end(), "of a hub that is gone")
}

// K3, R1: after a restart everything is as it was: what is open stays open, a producer that was fenced stays so, and
// numbers go on.
func TestTransactionsAfterARestart(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	endIn(t, b, 5, 0, true)
	putIn(t, b, inTransaction(5, 0, 1, "b"))
	putIn(t, b, inTransaction(6, 2, 0, "x"))
	endIn(t, b, 6, 3, false)
	b = y.open(t)
	testkit.Slices(t, readZero(t, b), []string{"a"})
	_, err := b.SubmitFrames(t.Context(), "orders", FrameTarget{Verify: always}, []eventlog.Batch{inTransaction(6, 2, 1, "zombie")})
	testkit.ErrorIs(t, err, ErrProducerFenced)
	testkit.Equal(t, putIn(t, b, inTransaction(5, 0, 1, "b")), 2, "a repeat")
	putIn(t, b, inTransaction(5, 0, 2, "c"))
	endIn(t, b, 5, 0, true)
	testkit.Slices(t, readZero(t, b), []string{"a", "b", "c"})
}

// K3, C1: a producer writes through one node, and its transaction is ended by another: what comes late through the first
// asks again, and readers of both see the same.
func TestTransactionsOverNodes(t *testing.T) {
	c := newFleet(t, 2)
	one, two := c.brokers[0], c.brokers[1]
	over := false
	put := func(f eventlog.Batch) error {
		to := FrameTarget{Verify: func(context.Context) error {
			if over {
				return errTestOver
			}
			return nil
		}}
		return eventlog.Again(func() error {
			p, err := one.SubmitFrames(t.Context(), "orders", to, []eventlog.Batch{f})
			if err == nil {
				_, err = p.Wait(t.Context())
			}
			return err
		}, eventlog.ErrFenced)
	}
	testkit.Must(t, put(inTransaction(5, 0, 0, "a")))
	testkit.Must(t, put(inTransaction(5, 0, 1, "b")))
	over = true
	endIn(t, two, 5, 0, true)
	testkit.ErrorIs(t, put(inTransaction(5, 0, 2, "late")), errTestOver)
	for _, b := range []*Broker{one, two} {
		testkit.Eventually(t, "both nodes see it", func() bool { return fmt.Sprint(readZero(t, b)) == "[a b]" })
	}
}

// K3, C2: a frame whose outcome one node does not know is not stored behind the end of its transaction, which another node
// has written: the next transaction would bring it to light.
func TestDoubtAboutATransactionThatAnotherNodeHasEnded(t *testing.T) {
	for what, stored := range map[string]bool{"it was stored": true, "it was not": false} {
		t.Run(what, func(t *testing.T) {
			c := newFleet(t, 2)
			one, two := c.brokers[0], c.brokers[1]
			doubt := error(eventlog.ErrUncertain)
			if stored {
				doubt = logtest.Unheard(doubt)
			}
			c.doubles[0].Engine.Fail(doubt, logtest.OpWait)
			p := testkit.Value(one.SubmitFrames(t.Context(), "orders", FrameTarget{Verify: always}, []eventlog.Batch{inTransaction(5, 0, 0, "void")}))(t)
			testkit.ErrorIs(t, testkit.Err(p.Wait(t.Context())), eventlog.ErrUncertain)
			c.doubles[0].Engine.Inject(nil)
			endIn(t, two, 5, 0, false)
			one.ledgers.tend(t.Context(), 0)
			next := int32(0)
			if found := infoOf(t, two).Next; found == 2 { // some engines begin to store before anybody waits for it
				next = 1
			} else {
				testkit.That(t, found == 1 && !stored, "the log ends at %d", found)
			}
			putIn(t, one, inTransaction(5, 0, next, "good"))
			endIn(t, two, 5, 0, true)
			for _, b := range []*Broker{one, two} {
				testkit.Eventually(t, "both nodes see what was committed", func() bool { return fmt.Sprint(readZero(t, b)) == "[good]" })
			}
		})
	}
}

// K3, C2: a frame of a transaction that goes on, of which a node does not know whether it is stored, is stored once when it is
// sent again, by way of either node.
func TestDoubtAboutATransactionThatGoesOn(t *testing.T) {
	for again := range 2 {
		t.Run(fmt.Sprintf("again through node %d", again), func(t *testing.T) {
			c := newFleet(t, 2)
			f := inTransaction(5, 0, 0, "a")
			c.doubles[0].Engine.Fail(eventlog.ErrUncertain, logtest.OpWait)
			p := testkit.Value(c.brokers[0].SubmitFrames(t.Context(), "orders", FrameTarget{Verify: always}, []eventlog.Batch{f}))(t)
			testkit.ErrorIs(t, testkit.Err(p.Wait(t.Context())), eventlog.ErrUncertain)
			c.doubles[0].Engine.Inject(nil)
			putIn(t, c.brokers[again], f)
			c.brokers[0].ledgers.tend(t.Context(), 0)
			putIn(t, c.brokers[again], inTransaction(5, 0, 1, "b"))
			endIn(t, c.brokers[1], 5, 0, true)
			for _, b := range c.brokers {
				testkit.Eventually(t, "both nodes see what was committed", func() bool { return fmt.Sprint(readZero(t, b)) == "[a b]" })
			}
		})
	}
}

// K3: whatever transactions there are and however they overlap, a reader that comes at any time and place sees a prefix
// of what was committed, in the order of the log, and at last all of it; with little to remember as well.
func TestAnyTransactions(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			b := newYard(t).open(t)
			mustCreate(t, b, "orders", 1)
			type event struct {
				value string
				by    int64
			}
			var log []event
			fate := map[string]bool{}
			open, next, since := map[int64]bool{}, map[int64]int32{}, map[int64]int{}
			reader := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest()))(t)
			defer reader.Close()
			var got []string
			drain := func() { got = append(got, rest(t, reader)...) }
			end := func(id int64, commit bool) {
				endIn(t, b, id, 0, commit)
				for _, e := range log[since[id]:] {
					if e.by == id {
						fate[e.value] = commit
					}
				}
				delete(open, id)
			}
			for n := range 60 {
				id := 10 + rnd.Int64N(4)
				switch value := fmt.Sprintf("v%d", n); rnd.IntN(6) {
				case 0:
					mustPut(t, b, frame(value))
					log, fate[value] = append(log, event{value, 0}), true
				case 1, 2, 3:
					if !open[id] {
						open[id], since[id] = true, len(log)
					}
					putIn(t, b, inTransaction(id, 0, next[id], value))
					next[id]++
					log = append(log, event{value, id})
				case 4:
					if open[id] {
						end(id, rnd.IntN(2) == 0)
					}
				default:
					drain()
					testkit.Equal(t, infoOf(t, b).Last, newestOf(t, b), "the newest event")
				}
			}
			for id := range open {
				end(id, rnd.IntN(2) == 0)
			}
			drain()
			var want []string
			for _, e := range log {
				if fate[e.value] {
					want = append(want, e.value)
				}
			}
			testkit.Slices(t, got, want, "by one reader")
			testkit.Slices(t, readZero(t, b), want, "from the beginning")
			h := b.hubs.find("orders")
			little := testkit.Value(newCommitted(t.Context(), h.partitions[0].Cursor, eventlog.Earliest(), func() *Fates {
				f := newFates(h.partitions[0].Cursor)
				f.limit = 1
				return f
			}))(t)
			testkit.Slices(t, rest(t, eventlog.Translated(little, kafka.Translators())), want, "with little to remember")
			little.Close()

			// Who is given a list has all in it that do not count, however little is remembered.
			f, raw := newFates(h.partitions[0].Cursor), testkit.Value(h.partitions[0].Cursor(t.Context(), eventlog.Earliest()))(t)
			f.limit = 0
			defer raw.Close()
			for _, e := range testkit.Value(raw.Extents(t.Context(), nil, 1<<20))(t) {
				f.Pass(e.First)
				void := testkit.Value(f.Judge(t.Context(), e))(t) == Void
				listed := slices.ContainsFunc(f.Between(e.First, e.Next()), func(a Aborted) bool {
					return e.Form == eventlog.FormTransaction && a.Producer == e.Producer.ID && a.First <= e.First
				})
				testkit.Equal(t, listed, void, "whether %d is listed", e.First)
			}
		})
	}
}

// K3, K6: a reader that waits for the end of a transaction remembers little of those behind it, and knows how far it has
// looked all the same; when the transaction has ended it finds again what it has forgotten.
func TestReadersRememberLittle(t *testing.T) {
	const aborts, readers = 2000, 4
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "first"))
	for n := range int32(aborts) {
		putIn(t, b, inTransaction(6, 0, n, "void"))
		endIn(t, b, 6, 0, false)
	}
	var all []eventlog.Cursor
	h := b.hubs.find("orders")
	open := h.opener(0)
	for range readers {
		var f *Fates
		c := eventlog.Translated(testkit.Value(newCommitted(t.Context(), open, eventlog.Earliest(), func() *Fates {
			f = b.noting(h, 0, newFates(open))
			return f
		}))(t), kafka.Translators())
		defer c.Close()
		testkit.Equal(t, len(rest(t, c)), 0)
		c.Rest()
		held := len(f.begun) + cap(f.aborted) + cap(f.sought)
		testkit.That(t, held <= maxIdleFates && !f.large, "a reader that waits remembers %d transactions, and has had room for more: %v", held, f.large)
		all = append(all, c)
	}

	lowest := eventlog.Sequence(aborts)
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext {
			lowest = min(lowest, op.At)
		}
		return nil
	})
	mustPut(t, b, frame("second"))
	testkit.Equal(t, len(rest(t, all[0])), 0)
	testkit.Equal(t, lowest, aborts, "the lowest number that was looked at again")
	y.Engine.Inject(nil)
	endIn(t, b, 5, 0, true)
	for _, c := range all {
		testkit.Slices(t, rest(t, c), []string{"first", "second"})
	}
}

// K6: who looks for the end of a transaction does not read on for long when it has met it.
func TestReadersLookNoFartherThanTheyHaveTo(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	endIn(t, b, 5, 0, true)
	for range 6 {
		mustPut(t, b, frame(strings.Repeat("x", 500<<10)))
	}
	f := testkit.Value(b.Fates(t.Context(), "orders", "0"))(t)
	e := eventlog.Extent{Form: eventlog.FormTransaction, Count: 1, Producer: eventlog.Producer{ID: 5, Set: true}}
	testkit.Equal(t, testkit.Value(f.Judge(t.Context(), e))(t), Counts)
	testkit.That(t, f.End() < 4, "it has looked up to %d", f.End())
}

// K3: where what is committed ends is known without reading what is before, from when a transaction begins until it ends.
func TestLastStable(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	want := func(want eventlog.Sequence) {
		t.Helper()
		testkit.Equal(t, testkit.Value(b.LastStable(t.Context(), "orders", "0"))(t), want)
	}
	want(0)
	mustPut(t, b, frame("plain"))
	want(1)
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	putIn(t, b, inTransaction(6, 0, 0, "b"))
	mustPut(t, b, frame("behind"))
	want(1)
	endIn(t, b, 5, 0, true)
	want(2)
	endIn(t, b, 6, 0, false)
	want(6)
}
