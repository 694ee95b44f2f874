package txn

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fresh is a transactional id of producer 7 in an epoch.
func fresh(t testkit.T, epoch int16) Transaction {
	one := testkit.Value(New(7, time.Minute, start))(t)
	one.Epoch = epoch
	return one
}

// in is one in a state, of epoch 3.
func in(t testkit.T, s State) Transaction {
	one := fresh(t, 3)
	one.State, one.Number, one.Began = s, 1, start
	if s.Open() {
		one.Partitions = []Partition{{Log: "orders", Number: 1, From: 10}}
	}
	return one
}

var states = []State{Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort}

// K3: what each request comes to in each state.
func TestRequests(t *testing.T) {
	by := Claim{7, 3}
	ask := map[string]func(Transaction) (Transaction, error){
		"init":    func(o Transaction) (Transaction, error) { return o.Init(None, time.Minute, 8, start) },
		"init by": func(o Transaction) (Transaction, error) { return o.Init(by, time.Minute, 8, start) },
		"add":     func(o Transaction) (Transaction, error) { return o.Add(by, []Partition{{"orders", 2, 5}}, "", start) },
		"commit":  func(o Transaction) (Transaction, error) { return o.End(by, true, start) },
		"abort":   func(o Transaction) (Transaction, error) { return o.End(by, false, start) },
		"write":   func(o Transaction) (Transaction, error) { return o, o.Takes(by, "orders", 1) },
	}
	want := map[string]string{
		"init empty": "empty 4", "init ongoing": "prepareAbort 4", "init prepareCommit": "busy", "init prepareAbort": "busy",
		"init completeCommit": "empty 4", "init completeAbort": "empty 4",
		"init by empty": "empty 4", "init by ongoing": "prepareAbort 4", "init by prepareCommit": "busy", "init by prepareAbort": "busy",
		"init by completeCommit": "empty 4", "init by completeAbort": "empty 4",
		"add empty": "ongoing 3", "add ongoing": "ongoing 3", "add prepareCommit": "busy", "add prepareAbort": "busy",
		"add completeCommit": "ongoing 3", "add completeAbort": "ongoing 3",
		"commit empty": "state", "commit ongoing": "prepareCommit 3", "commit prepareCommit": "prepareCommit 3", "commit prepareAbort": "state",
		"commit completeCommit": "completeCommit 3", "commit completeAbort": "state",
		"abort empty": "state", "abort ongoing": "prepareAbort 3", "abort prepareCommit": "state", "abort prepareAbort": "prepareAbort 3",
		"abort completeCommit": "state", "abort completeAbort": "completeAbort 3",
		"write empty": "state", "write ongoing": "ongoing 3", "write prepareCommit": "state", "write prepareAbort": "state",
		"write completeCommit": "state", "write completeAbort": "state",
	}
	for name, request := range ask {
		for _, s := range states {
			next, err := request(in(t, s))
			got := fmt.Sprint(next.State, " ", next.Epoch)
			switch {
			case errors.Is(err, ErrConcurrent):
				got = "busy"
			case errors.Is(err, ErrState):
				got = "state"
			case err != nil:
				got = err.Error()
			}
			testkit.Equal(t, got, want[name+" "+string(s)], "%s while it is %s", name, s)
		}
	}
	testkit.ErrorIs(t, in(t, Ongoing).Takes(by, "orders", 2), ErrState, "a partition that was not added")
}

// K3: whoever is not the present producer is refused everything.
func TestFencing(t *testing.T) {
	for _, s := range states {
		for claim, want := range map[Claim]error{{7, 2}: ErrFenced, {7, 4}: ErrFenced, {6, 3}: ErrProducer, None: ErrProducer} {
			one := in(t, s)
			testkit.ErrorIs(t, testkit.Err(one.Add(claim, nil, "g", start)), want, "%s, %v", s, claim)
			testkit.ErrorIs(t, testkit.Err(one.End(claim, true, start)), want, "%s, %v", s, claim)
			testkit.ErrorIs(t, one.Takes(claim, "orders", 1), want, "%s, %v", s, claim)
			testkit.ErrorIs(t, one.TakesOffsets(claim, "g"), want, "%s, %v", s, claim)
			if claim != None {
				testkit.ErrorIs(t, testkit.Err(one.Init(claim, time.Minute, 8, start)), want, "%s, %v", s, claim)
			}
		}
	}
}

// K3: a producer whose answer was lost asks again for the epoch after its own, and gets the same; after an abort of
// what it had begun it gets the next.
func TestInitAgain(t *testing.T) {
	by := Claim{7, 3}
	next := testkit.Value(fresh(t, 3).Init(by, time.Minute, 8, start))(t)
	testkit.Equal(t, next.Epoch, 4)
	again := testkit.Value(next.Init(by, time.Minute, 8, start))(t)
	testkit.Equal(t, again.Epoch, 4, "asked again")
	testkit.ErrorIs(t, testkit.Err(again.Init(Claim{7, 2}, time.Minute, 8, start)), ErrFenced)

	aborting := testkit.Value(in(t, Ongoing).Init(by, time.Minute, 8, start))(t)
	testkit.Equal(t, aborting.State, PrepareAbort)
	testkit.Equal(t, aborting.Epoch, 4, "what fences the one before")
	done := testkit.Value(aborting.Complete(start).Init(by, time.Minute, 8, start))(t)
	testkit.Equal(t, done.Epoch, 5)
}

// K3: when epochs are used up there is another producer id.
func TestEpochsAreUsedUp(t *testing.T) {
	one := fresh(t, lastEpoch)
	testkit.Equal(t, lastEpoch < math.MaxInt16-1, true, "one is left to fence with")
	next := testkit.Value(one.Init(None, time.Minute, 8, start))(t)
	testkit.Equal(t, Claim{next.Producer, next.Epoch}, Claim{8, 0})
	one.State = Ongoing
	fenced := testkit.Value(one.Init(None, time.Minute, 8, start))(t)
	testkit.Equal(t, Claim{fenced.Producer, fenced.Epoch}, Claim{7, lastEpoch + 1})
	next = testkit.Value(fenced.Complete(start).Init(None, time.Minute, 8, start))(t)
	testkit.Equal(t, Claim{next.Producer, next.Epoch}, Claim{8, 0})
}

// K3, K6
func TestLimits(t *testing.T) {
	for _, timeout := range []time.Duration{-1, 0, MaxTimeout + 1} {
		testkit.ErrorIs(t, testkit.Err(New(7, timeout, start)), ErrTimeout)
		testkit.ErrorIs(t, testkit.Err(fresh(t, 0).Init(None, timeout, 8, start)), ErrTimeout)
	}
	one := fresh(t, 3)
	many := make([]Partition, MaxPartitions)
	for i := range many {
		many[i] = Partition{Log: "orders", Number: int32(i)}
	}
	one = testkit.Value(one.Add(Claim{7, 3}, many, "", start))(t)
	one = testkit.Value(one.Add(Claim{7, 3}, many[:3], "", start))(t)
	testkit.Equal(t, len(one.Partitions), MaxPartitions)
	same, err := one.Add(Claim{7, 3}, []Partition{{Log: "other"}}, "", start)
	testkit.ErrorIs(t, err, ErrTooLarge)
	testkit.Equal(t, len(same.Partitions), MaxPartitions)
}

// K3: a transaction that takes too long is aborted, and its producer fenced.
func TestExpiry(t *testing.T) {
	one := in(t, Ongoing)
	_, over := one.Expire(start.Add(time.Minute - 1))
	testkit.Equal(t, over, false)
	next, over := one.Expire(start.Add(time.Minute))
	testkit.Equal(t, over, true)
	testkit.Equal(t, next.State, PrepareAbort)
	testkit.Equal(t, next.Epoch, 4)
	for _, s := range states {
		if s != Ongoing {
			_, over := in(t, s).Expire(start.Add(time.Hour))
			testkit.Equal(t, over, false, "%s", s)
		}
	}
}

// K3: whatever comes in whatever order: what is decided stays so until it is complete, epochs of a producer never go
// back, transactions are counted up, and parts are kept until all were told.
func TestAnyCourse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, now := fresh(t, 0), start
		seen := map[int64]int16{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := one
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			by := Claim{one.Producer, one.Epoch + int16(rapid.IntRange(-1, 1).Draw(t, "epoch"))}
			var err error
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				one, err = one.Init(None, time.Minute, one.Producer+1, now)
			case 1:
				one, err = one.Init(by, time.Minute, one.Producer+1, now)
			case 2:
				one, err = one.Add(by, []Partition{{"orders", rapid.Int32Range(0, 3).Draw(t, "partition"), 1}}, "", now)
			case 3:
				one, err = one.Add(by, nil, "group", now)
			case 4:
				one, err = one.End(by, rapid.Bool().Draw(t, "commit"), now)
			case 5:
				one, _ = one.Expire(now)
			case 6:
				if one.State.Decided() {
					one = one.Complete(now)
				}
			}
			if err != nil && fmt.Sprint(one) != fmt.Sprint(before) {
				t.Fatalf("%v, and it has changed: %+v, %+v", err, before, one)
			}
			if last, known := seen[one.Producer]; known && one.Epoch < last {
				t.Fatalf("epoch %d comes after %d", one.Epoch, last)
			}
			seen[one.Producer] = one.Epoch
			if before.State.Decided() && one.State != before.State && one.State != before.Complete(now).State {
				t.Fatalf("%s became %s", before.State, one.State)
			}
			if before.State.Open() && one.State.Open() && (one.Number != before.Number || len(one.Partitions) < len(before.Partitions)) {
				t.Fatalf("a part of it is gone: %+v, %+v", before, one)
			}
			if one.Number < before.Number || one.Number > before.Number+1 {
				t.Fatalf("transaction %d comes after %d", one.Number, before.Number)
			}
		}
	})
}
