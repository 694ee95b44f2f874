package transactions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever a coordinator has begun has ended when it has.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const partitions = 3

// yard is storage with hub orders, for any number of lives.
type yard struct {
	*hubstest.Yard
	t   testing.TB
	log string
}

func newYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{Yard: hubstest.Open(t, storagetest.Config{}), t: t}
	hub := y.Hub(t, "orders", partitions)
	y.log = broker.LogOf(y.Broker, hub.ID)
	return y
}

// life is what a process has.
type life struct {
	*Coordinator
	y      *yard
	broker *broker.Broker
	groups *groups.Coordinator
	next   map[int]int32 // the number of the next record, by partition
	stop   func()
}

// begin begins a life, whose coordinator runs until it is stopped.
func (y *yard) begin() *life { return y.beginOn(y.Storage, false) }

// beginOn begins one on storage as a process has it, which may be one of several.
func (y *yard) beginOn(s *storagetest.Storage, several bool) *life {
	y.t.Helper()
	l := &life{y: y, broker: (&hubstest.Yard{Storage: s}).Node(y.t), next: make(map[int]int32)}
	log := testkit.NewErrorLog(y.t, slog.LevelDebug).Logger
	l.groups = testkit.Value(groups.New(groups.Config{Meta: s.Meta, Broker: l.broker, Several: several, Log: log}))(y.t)
	l.Coordinator = testkit.Value(New(Config{Meta: s.Meta, Broker: l.broker, Groups: l.groups, Several: several, MaxIDs: 2, Retention: time.Hour, Log: log}))(y.t)
	one, two := testkit.Run(y.t, l.groups.Run), testkit.Run(y.t, l.Coordinator.Run)
	l.stop = func() { two(); one() }
	return l
}

func (l *life) init(id string) txn.Claim {
	l.y.t.Helper()
	return testkit.Value(l.Init(l.y.t.Context(), id, txn.None, time.Minute, nil))(l.y.t)
}

// add makes all partitions part of a transaction.
func (l *life) add(id string, by txn.Claim) error {
	var all []txn.Partition
	for n := range int32(partitions) {
		all = append(all, txn.Partition{Log: l.y.log, Number: n})
	}
	return l.AddPartitions(l.y.t.Context(), id, by, all, nil)
}

// put stores a value in a partition, as part of a transaction.
func (l *life) put(id string, by txn.Claim, partition int, value string) error {
	b := record.Begin(nil, 0, time.Now().UnixMilli())
	b.Add(&record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(value)})
	frame := testkit.Value(record.Check(b.End()))(l.y.t)
	frame.Form, frame.Producer = eventlog.FormTransaction, eventlog.Producer{ID: by.Producer, Epoch: by.Epoch, First: l.next[partition], Set: true}
	to := broker.FrameTarget{Partition: partition, Verify: func(ctx context.Context) error {
		return l.Verify(ctx, id, by, l.y.log, int32(partition))
	}}
	err := eventlog.Again(func() error { // as clients do
		p, err := l.broker.SubmitFrames(l.y.t.Context(), "orders", to, []eventlog.Batch{frame})
		if err == nil {
			_, err = p.Wait(l.y.t.Context())
		}
		return err
	}, eventlog.ErrFenced)
	if err == nil {
		l.next[partition]++
	}
	return err
}

// stage commits an offset in a transaction.
func (l *life) stage(id string, by txn.Claim, offset int64) error {
	if err := l.AddGroup(l.y.t.Context(), id, by, "readers", nil); err != nil {
		return err
	}
	return l.StageOffsets(l.y.t.Context(), id, by, "readers", groups.Committer{Generation: -1}, map[groups.Partition]groups.Position{{Log: l.y.log}: {Offset: offset, Epoch: -1}})
}

// committed is the group's offset; negative: none.
func (l *life) committed() int64 {
	l.y.t.Helper()
	testkit.Must(l.y.t, testkit.Err(l.groups.Stages.Unstable(l.y.t.Context(), "readers")))
	position, found := testkit.Value(l.groups.Offsets(l.y.t.Context(), "readers", l.y.log))(l.y.t)[0]
	if !found {
		return -1
	}
	return position.Offset
}

// read gives what readers see of each partition.
func (l *life) read() (all []string) {
	l.y.t.Helper()
	for n := range partitions {
		c := testkit.Value(l.broker.Cursor(l.y.t.Context(), "orders", broker.DefaultGroup, strconv.Itoa(n), eventlog.Earliest()))(l.y.t)
		text := ""
		for _, m := range storagetest.ReadAll(l.y.t, c) {
			body, _ := message.Body([]byte(m))
			text += string(body)
		}
		all = append(all, text)
	}
	return all
}

// K3: what is written in a transaction counts with its offsets, when it is committed, everywhere or nowhere.
func TestCommitAndAbort(t *testing.T) {
	y := newYard(t)
	l := y.begin()
	by := l.init("app")
	testkit.ErrorIs(t, l.put("app", by, 0, "early"), txn.ErrState, "before the partition was added")
	for n, commit := range []bool{true, false, true} {
		testkit.Must(t, l.add("app", by))
		for p := range partitions {
			testkit.Must(t, l.put("app", by, p, strconv.Itoa(n)))
		}
		before := l.committed()
		testkit.Must(t, l.stage("app", by, int64(10*(n+1))))
		testkit.Equal(t, len(testkit.Value(l.groups.Stages.Unstable(t.Context(), "readers"))(t)), 1)
		testkit.Equal(t, l.committed(), before, "while it goes on")
		testkit.Equal(t, len(testkit.Value(l.Open(t.Context()))(t)), partitions)
		testkit.Must(t, l.End(t.Context(), "app", by, commit, nil))
		testkit.Must(t, l.End(t.Context(), "app", by, commit, nil), "once more, since its answer may be lost")
		testkit.ErrorIs(t, l.End(t.Context(), "app", by, !commit, nil), txn.ErrState)
		testkit.ErrorIs(t, l.put("app", by, 0, "late"), txn.ErrState)
		testkit.ErrorIs(t, l.StageOffsets(t.Context(), "app", by, "readers", groups.Committer{Generation: -1}, nil), txn.ErrState)
		testkit.Equal(t, len(testkit.Value(l.Open(t.Context()))(t)), 0)
	}
	testkit.Slices(t, l.read(), []string{"02", "02", "02"})
	testkit.Equal(t, l.committed(), 30)
	testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/staged/"))(t)), 0, "what is left of offsets")
	l.stop()
}

// K3: who takes a transactional id over aborts what was begun under it, and ends the producer before.
func TestInitFences(t *testing.T) {
	y := newYard(t)
	l := y.begin()
	old := l.init("app")
	testkit.Must(t, l.add("app", old))
	testkit.Must(t, l.put("app", old, 0, "lost"))
	testkit.Must(t, l.stage("app", old, 5))
	by := l.init("app")
	testkit.Equal(t, by, txn.Claim{Producer: old.Producer, Epoch: old.Epoch + 2})
	testkit.ErrorIs(t, l.add("app", old), txn.ErrFenced)
	testkit.ErrorIs(t, l.End(t.Context(), "app", old, true, nil), txn.ErrFenced)
	testkit.ErrorIs(t, l.put("app", old, 0, "zombie"), broker.ErrProducerFenced)
	testkit.That(t, l.put("app", old, 1, "zombie") != nil, "it wrote to a partition in which nothing was begun")
	l.next = map[int]int32{}
	testkit.Must(t, l.add("app", by))
	testkit.Must(t, l.put("app", by, 0, "kept"))
	testkit.Must(t, l.End(t.Context(), "app", by, true, nil))
	testkit.Slices(t, l.read(), []string{"kept", "", ""})
	testkit.Equal(t, l.committed(), -1)
	l.stop()
}

// K3: a transaction that takes too long is aborted, though nobody asks.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		l := y.begin()
		by := l.init("app")
		testkit.Must(t, l.add("app", by))
		testkit.Must(t, l.put("app", by, 0, "slow"))
		time.Sleep(time.Minute + 2*lookInterval)
		synctest.Wait()
		testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "app", nil))(t).State, txn.CompleteAbort)
		testkit.ErrorIs(t, l.End(t.Context(), "app", by, true, nil), txn.ErrFenced)
		testkit.Slices(t, l.read(), []string{"", "", ""})
		l.stop()
	})
}

// K3: ids that nobody has used for long are forgotten, and there are only so many.
func TestIDsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		l := y.begin()
		l.init("one")
		l.init("two")
		testkit.ErrorIs(t, testkit.Err(l.Init(t.Context(), "three", txn.None, time.Minute, nil)), ErrTooMany)
		testkit.ErrorIs(t, testkit.Err(l.Init(t.Context(), "", txn.None, time.Minute, nil)), ErrInvalidID)
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		l.init("three")
		testkit.Equal(t, len(testkit.Value(l.List(t.Context(), nil))(t)), 1)
		l.stop()
	})
}

// K5: a transactional id is not to be disturbed by who may not send to its hubs.
func TestRights(t *testing.T) {
	y := newYard(t)
	l := y.begin()
	by := l.init("app")
	nowhere := May(func(string) bool { return false })
	testkit.Must(t, l.add("app", by))
	for _, what := range []string{"while it goes on", "afterwards"} {
		testkit.ErrorIs(t, testkit.Err(l.Init(t.Context(), "app", txn.None, time.Minute, nowhere)), ErrRights, what)
		testkit.ErrorIs(t, testkit.Err(l.Describe(t.Context(), "app", nowhere)), ErrRights, what)
		testkit.Equal(t, len(testkit.Value(l.List(t.Context(), nowhere))(t)), 0, what)
		if what == "while it goes on" {
			testkit.ErrorIs(t, l.End(t.Context(), "app", by, true, nowhere), ErrRights)
			testkit.ErrorIs(t, l.AddPartitions(t.Context(), "app", by, nil, nowhere), ErrRights)
			testkit.ErrorIs(t, l.AddGroup(t.Context(), "app", by, "readers", nowhere), ErrRights)
		}
		testkit.Must(t, l.End(t.Context(), "app", by, true, nil))
	}
	testkit.Must(t, l.AddGroup(t.Context(), "app", by, "readers", nil))
	testkit.Must(t, l.End(t.Context(), "app", by, true, nil))
	testkit.ErrorIs(t, testkit.Err(l.Init(t.Context(), "app", txn.None, time.Minute, nowhere)), ErrRights, "after one about offsets alone")
	l.stop()
}

// K3, R1: while a transactional id is about no hub it is its account's, since a right to one says nothing then.
func TestAnIDThatHasWrittenNothingIsItsAccounts(t *testing.T) {
	l := newYard(t).begin()
	anywhere := May(func(string) bool { return true })
	owner, stranger := For(t.Context(), "owner"), For(t.Context(), "stranger")
	by, err := l.Init(owner, "app", txn.None, time.Minute, anywhere)
	testkit.Must(t, err)
	for _, what := range []string{"before its first transaction", "after one about offsets alone"} {
		testkit.ErrorIs(t, testkit.Err(l.Init(stranger, "app", txn.None, time.Minute, anywhere)), ErrRights, what)
		testkit.ErrorIs(t, l.AddPartitions(stranger, "app", by, nil, anywhere), ErrRights, what)
		testkit.ErrorIs(t, l.AddGroup(stranger, "app", by, "readers", anywhere), ErrRights, what)
		testkit.Must(t, l.AddGroup(owner, "app", by, "readers", anywhere), what)
		testkit.ErrorIs(t, l.End(stranger, "app", by, true, anywhere), ErrRights, what)
		testkit.Must(t, l.End(owner, "app", by, true, anywhere), what)
	}
	testkit.Must(t, l.add("app", by))
	testkit.Must(t, l.End(stranger, "app", by, true, anywhere), "who has the right to the hub")
	l.stop()
}

// K3, R1: a transaction whose entry is lost, as after a restore, or whose end was lost with the power, is aborted once
// readers wait for it; one that goes on is not.
func TestTransactionsThatNobodyKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		l := y.begin()
		lost, kept := l.init("lost"), l.init("kept")
		testkit.Must(t, l.add("lost", lost))
		testkit.Must(t, l.put("lost", lost, 0, "gone"))
		l.next = map[int]int32{}
		testkit.Must(t, l.add("kept", kept))
		testkit.Must(t, l.put("kept", kept, 0, "a"))
		testkit.Must(t, l.put("kept", kept, 1, "b"))
		entry := testkit.Value(y.Meta.Get(t.Context(), keyOf("lost")))(t)
		testkit.Must(t, y.Meta.Delete(t.Context(), entry.Key, entry.Revision))
		for range 3 {
			l.read()
			time.Sleep(holdupAge + 2*lookInterval)
			synctest.Wait()
		}
		testkit.Slices(t, l.read(), []string{"", "", ""}, "what goes on")
		testkit.Must(t, l.End(t.Context(), "kept", kept, true, nil))
		testkit.Slices(t, l.read(), []string{"a", "b", ""})
		l.stop()
	})
}

var errDied = errors.New("the process died here")

// K3, R1: the process dies at any write while a transaction is being ended. The next life ends it, and everything it has
// written counts, or nothing does; everything, if its producer was told so.
func TestAnyCrash(t *testing.T) {
	for step := int64(1); ; step++ {
		died := false
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			y := newYard(t)
			l := y.begin()
			by := l.init("app")
			testkit.Must(t, l.add("app", by))
			for p := range partitions {
				testkit.Must(t, l.put("app", by, p, "x"))
			}
			testkit.Must(t, l.stage("app", by, 7))
			var taken atomic.Int64
			next := func() error {
				if taken.Add(1) >= step {
					return errDied
				}
				return nil
			}
			y.Meta.Inject(func(op metatest.Op) error {
				if op.Changes() {
					return next()
				}
				return nil
			})
			y.Engine.Inject(func(op logtest.Op) error {
				if op.Kind == logtest.OpSubmit {
					return next()
				}
				return nil
			})
			said := l.End(t.Context(), "app", by, true, nil)
			l.stop()
			died = taken.Load() >= step
			y.Meta.Inject(nil)
			y.Engine.Inject(nil)

			l = y.begin()
			l.init("app") // who comes next ends what is open
			got, offset := l.read(), l.committed()
			want, wantOffset := []string{"x", "x", "x"}, int64(7)
			if said != nil && got[0] == "" {
				want, wantOffset = []string{"", "", ""}, -1
			}
			testkit.Slices(t, got, want, "its producer was told %v", said)
			testkit.Equal(t, offset, wantOffset, "its producer was told %v", said)
			l.stop()
		})
		if !died || t.Failed() {
			break
		}
	}
}

// K3, C1: two nodes do everything for one transactional id at once: it is ended once, and what was written counts.
func TestTwoNodes(t *testing.T) {
	y := newYard(t)
	one, two := y.beginOn(y.Join(t), true), y.beginOn(y.Join(t), true)
	by := one.init("app")
	for n := range 10 {
		testkit.Eventually(t, "the one before is over at both nodes", func() bool {
			err := one.add("app", by)
			testkit.That(t, err == nil || errors.Is(err, txn.ErrConcurrent), "a partition is not added: %v", err)
			return err == nil
		})
		testkit.Must(t, one.put("app", by, 0, strconv.Itoa(n)))
		done := make(chan error)
		for _, l := range []*life{one, two} {
			go func() { done <- l.End(t.Context(), "app", by, true, nil) }()
		}
		testkit.Must(t, <-done)
		testkit.Must(t, <-done)
	}
	testkit.Equal(t, one.read()[0], "0123456789")
	one.stop()
	two.stop()
}
