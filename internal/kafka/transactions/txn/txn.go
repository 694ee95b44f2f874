// Package txn is a transaction of Kafka's as a value: what each request makes of it. It has no clock, lock or storage.
//
// A transactional id has one producer at a time, whose epoch rises with each that takes the id over. It is in one of
// these states:
//
//	empty            no transaction was begun since the producer came
//	ongoing          partitions, or a group's offsets, are part of one
//	prepareCommit    it is decided, and every partition has yet to be told
//	prepareAbort     the same
//	completeCommit   every partition was told
//	completeAbort    the same
//
// What is in a prepare state is stored before the first partition is told: nothing turns it round any more.
package txn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// State is what a transactional id is doing.
type State string

// The states.
const (
	Empty          State = "empty"
	Ongoing        State = "ongoing"
	PrepareCommit  State = "prepareCommit"
	PrepareAbort   State = "prepareAbort"
	CompleteCommit State = "completeCommit"
	CompleteAbort  State = "completeAbort"
)

// Decided: what becomes of it is stored, and the partitions have yet to be told.
func (s State) Decided() bool { return s == PrepareCommit || s == PrepareAbort }

// Open: readers of what is committed wait for it.
func (s State) Open() bool { return s == Ongoing || s.Decided() }

const (
	// MaxTimeout is how long a transaction may take at most.
	MaxTimeout = 15 * time.Minute
	// MaxPartitions is how many partitions one may have, and MaxGroups how many groups' offsets.
	MaxPartitions = 2048
	MaxGroups     = 64
	// lastEpoch is the greatest that a producer is given: another number comes after it, which ends what it has begun.
	lastEpoch = math.MaxInt16 - 2
)

// Why a request is refused.
var (
	// ErrFenced: another producer has taken the transactional id over, or the transaction took too long.
	ErrFenced = errors.New("there is a newer producer with this transactional id, or its transaction was ended because it took too long")
	// ErrProducer: the transactional id is that of another producer id.
	ErrProducer = errors.New("the producer id is not that of the transactional id")
	// ErrState: the transaction is not one to which this can be done.
	ErrState = errors.New("the transaction is in a state that does not allow this")
	// ErrConcurrent: the transaction before is not ended yet. It is to be tried again.
	ErrConcurrent = errors.New("the transaction before is still being ended: try again")
	// ErrTimeout: a transaction may not take so long.
	ErrTimeout = fmt.Errorf("a transaction may take from 1 ms to %v", MaxTimeout)
	// ErrTooLarge: it has too many partitions, or groups.
	ErrTooLarge = fmt.Errorf("a transaction has at most %d partitions, and offsets of %d groups", MaxPartitions, MaxGroups)
)

// Partition is a part of a transaction.
type Partition struct {
	Log    string `json:"log"`
	Number int32  `json:"number"`
	// From is a number that nothing of the transaction lies below there.
	From int64 `json:"from"`
}

// Transaction is what is stored of a transactional id. Methods give the next value, and change nothing; slices are
// shared, and never written to.
type Transaction struct {
	Producer int64 `json:"producer"`
	Epoch    int16 `json:"epoch"`
	// Former is the epoch that the present one was given in exchange for, to who has shown it; -1: there is none.
	Former int16 `json:"former"`
	State  State `json:"state"`
	// Timeout is in milliseconds.
	Timeout int64 `json:"timeout"`
	// Number counts the transactions.
	Number     int64       `json:"transaction"`
	Began      time.Time   `json:"began,omitzero"`
	Changed    time.Time   `json:"changed"`
	Partitions []Partition `json:"partitions,omitempty"`
	// Groups are those whose offsets are part of it.
	Groups []string `json:"groups,omitempty"`
	// Logs are the hubs that the last transaction wrote to, while there is no other: who wants the transactional id
	// needs a right to them.
	Logs []string `json:"logs,omitempty"`
	// By is the account that it is counted for; empty: for none.
	By string `json:"by,omitempty"`
}

// Claim is who asks: a producer that says which it is.
type Claim struct {
	Producer int64
	Epoch    int16
}

// None is the claim of who has no number yet.
var None = Claim{-1, -1}

// New is a transactional id that nobody has used.
func New(producer int64, timeout time.Duration, now time.Time) (Transaction, error) {
	if timeout < time.Millisecond || timeout > MaxTimeout {
		return Transaction{}, ErrTimeout
	}
	return Transaction{Producer: producer, Former: -1, State: Empty, Timeout: timeout.Milliseconds(), Changed: now}, nil
}

// Init gives the transactional id to a producer: what others have begun is aborted first. Then the state is
// PrepareAbort, and once that is complete Init is to be called again. fresh is a producer id for when epochs are used up.
func (t Transaction) Init(by Claim, timeout time.Duration, fresh int64, now time.Time) (Transaction, error) {
	switch {
	case timeout < time.Millisecond || timeout > MaxTimeout:
		return t, ErrTimeout
	case by != None && by.Producer != t.Producer:
		return t, ErrProducer
	case by != None && by.Epoch != t.Epoch && (by.Epoch != t.Former || t.Former < 0):
		return t, ErrFenced
	case t.State.Decided():
		return t, ErrConcurrent
	case t.State == Ongoing:
		t = t.fence(now)
		if by != None {
			t.Former = by.Epoch
		}
		return t, nil
	case by != None && by.Epoch != t.Epoch && t.State == Empty:
		return t, nil // its answer was lost
	}
	t.Former = by.Epoch
	if t.Epoch++; t.Epoch > lastEpoch {
		t.Producer, t.Epoch, t.Former = fresh, 0, -1
	}
	t.State, t.Timeout, t.Changed = Empty, timeout.Milliseconds(), now
	return t, nil
}

// fence decides that a transaction is aborted, and ends the epoch of who has begun it.
func (t Transaction) fence(now time.Time) Transaction {
	t.Epoch, t.Former = t.Epoch+1, -1
	return t.decide(PrepareAbort, now)
}

func (t Transaction) decide(s State, now time.Time) Transaction {
	t.State, t.Changed = s, now
	if len(t.Partitions) > 0 { // else it is about offsets alone, and stays with who has written to them before
		t.Logs = nil
	}
	for _, p := range t.Partitions {
		if !slices.Contains(t.Logs, p.Log) {
			t.Logs = append(t.Logs, p.Log)
		}
	}
	return t
}

// check refuses who is not the present producer.
func (t Transaction) check(by Claim) error {
	switch {
	case by.Producer != t.Producer:
		return ErrProducer
	case by.Epoch != t.Epoch:
		return ErrFenced
	}
	return nil
}

// Add makes partitions, or offsets of a group where that is not empty, part of the transaction, which begins with the
// first. What is part of it already stays as it is.
func (t Transaction) Add(by Claim, partitions []Partition, group string, now time.Time) (Transaction, error) {
	if err := t.check(by); err != nil {
		return t, err
	}
	if t.State.Decided() {
		return t, ErrConcurrent
	}
	before := t
	if t.State != Ongoing {
		t.State, t.Began, t.Partitions, t.Groups = Ongoing, now, nil, nil
		t.Number++
	}
	t.Partitions, t.Groups = slices.Clone(t.Partitions), slices.Clone(t.Groups)
	for _, p := range partitions {
		if !t.Has(p.Log, p.Number) {
			t.Partitions = append(t.Partitions, p)
		}
	}
	if group != "" && !slices.Contains(t.Groups, group) {
		t.Groups = append(t.Groups, group)
	}
	if len(t.Partitions) > MaxPartitions || len(t.Groups) > MaxGroups {
		return before, ErrTooLarge
	}
	t.Changed = now
	return t, nil
}

// Has: the partition is part of it.
func (t Transaction) Has(log string, number int32) bool {
	return slices.ContainsFunc(t.Partitions, func(p Partition) bool { return p.Number == number && p.Log == log })
}

// Takes says why a producer may not write to a partition in the transaction; nil: it may.
func (t Transaction) Takes(by Claim, log string, number int32) error {
	if err := t.check(by); err != nil {
		return err
	}
	if t.State != Ongoing || !t.Has(log, number) {
		return ErrState
	}
	return nil
}

// TakesOffsets says why a producer may not commit offsets of a group in the transaction; nil: it may.
func (t Transaction) TakesOffsets(by Claim, group string) error {
	if err := t.check(by); err != nil {
		return err
	}
	if t.State != Ongoing || !slices.Contains(t.Groups, group) {
		return ErrState
	}
	return nil
}

// End decides. What was decided so before is no error: an answer may have been lost.
func (t Transaction) End(by Claim, commit bool, now time.Time) (Transaction, error) {
	prepare, complete := PrepareAbort, CompleteAbort
	if commit {
		prepare, complete = PrepareCommit, CompleteCommit
	}
	if err := t.check(by); err != nil {
		return t, err
	}
	switch t.State {
	case Ongoing:
		return t.decide(prepare, now), nil
	case prepare, complete:
		return t, nil
	}
	return t, ErrState
}

// Expire aborts a transaction that takes too long, and ends the epoch of its producer.
func (t Transaction) Expire(now time.Time) (Transaction, bool) {
	if t.State != Ongoing || now.Before(t.Due()) {
		return t, false
	}
	return t.fence(now), true
}

// Due is when an ongoing transaction has taken too long.
func (t Transaction) Due() time.Time { return t.Began.Add(time.Duration(t.Timeout) * time.Millisecond) }

// Complete says that every partition was told.
func (t Transaction) Complete(now time.Time) Transaction {
	switch t.State {
	case PrepareCommit:
		t.State = CompleteCommit
	case PrepareAbort:
		t.State = CompleteAbort
	}
	t.Partitions, t.Groups, t.Changed = nil, nil, now
	return t
}
