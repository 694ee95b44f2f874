package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/fact"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Facts reads the facts whose key begins with prefix.
func (k *Keeper) Facts(ctx context.Context, g processor.Group, prefix string) ([]processor.Fact, error) {
	if err := checkFact(fact.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	at, err := k.find(ctx, g)
	if err != nil {
		return nil, err
	}
	dated, err := k.facts(ctx, at, prefix)
	if err != nil {
		return nil, err
	}
	facts := make([]processor.Fact, len(dated))
	for i, d := range dated {
		facts[i] = processor.Fact{Key: d.key, Value: d.Value, Version: versionOf(d.revision)}
	}
	return facts, nil
}

// datedFact is a fact with the time at which it was put.
type datedFact struct {
	factRecord
	key      string
	revision meta.Revision
}

func (k *Keeper) facts(ctx context.Context, at place, prefix string) ([]datedFact, error) {
	entries, err := k.meta.List(ctx, at.fact(prefix))
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	facts := make([]datedFact, len(entries))
	for i, e := range entries {
		record, err := decode[factRecord](e)
		if err != nil {
			return nil, err
		}
		facts[i] = datedFact{record, strings.TrimPrefix(e.Key, at.facts()), e.Revision}
	}
	return facts, nil
}

// Put stores a fact on condition of its version. ErrTooManyFacts where a new one would be
// one too many, or they would measure too much together.
func (k *Keeper) Put(ctx context.Context, g processor.Group, f processor.Fact) (processor.Fact, error) {
	if err := checkFact(fact.Check(f.Key, f.Value)); err != nil {
		return processor.Fact{}, err
	}
	at, err := k.find(ctx, g)
	if err != nil {
		return processor.Fact{}, err
	}
	expected, ok := revisionOf(f.Version)
	if !ok {
		return processor.Fact{}, processor.ErrConflict
	}
	record := encode(factRecord{V: recordVersion, Put: now(), Value: f.Value})
	more := size{1, len(record)}
	if expected != 0 {
		more = size{0, len(record) - k.factBytes(ctx, at, f.Key)}
	}
	if err := k.admit(ctx, at, more); err != nil {
		return processor.Fact{}, fmt.Errorf("put fact %q: %w", f.Key, err)
	}
	if f.Version, err = k.put(ctx, at, f.Key, record, expected); err != nil {
		return processor.Fact{}, err
	}
	k.tally.add(at.Prefix, more)
	return f, nil
}

func (k *Keeper) put(ctx context.Context, at place, key string, record []byte, expected meta.Revision) (processor.Version, error) {
	revision, err := k.meta.CompareAndSet(ctx, at.fact(key), expected, record)
	if err != nil {
		return "", k.factError("put", key, err)
	}
	if expected == 0 {
		err = k.settle(ctx, at, created{at.fact(key), revision})
	}
	return versionOf(revision), err
}

// factBytes is what a fact measures now; 0 if it is not there, or cannot be read: then the
// write tells why.
func (k *Keeper) factBytes(ctx context.Context, at place, key string) int {
	entry, _ := k.meta.Get(ctx, at.fact(key))
	return len(entry.Value)
}

// admit wants room for more, if it is any. The tally does not know what other nodes did, so
// before it refuses, and at first, the facts are counted.
func (k *Keeper) admit(ctx context.Context, at place, more size) error {
	if more.facts <= 0 && more.bytes <= 0 {
		return nil
	}
	room, sure := k.tally.room(at.Prefix, more)
	if !room && !sure {
		entries, err := k.meta.List(ctx, at.facts())
		if err != nil {
			return fmt.Errorf("count facts: %w", err)
		}
		all := size{facts: len(entries)}
		for _, e := range entries {
			all.bytes += len(e.Value)
		}
		k.tally.set(at.Prefix, all)
		room, _ = k.tally.room(at.Prefix, more)
	}
	if !room {
		return fmt.Errorf("%w: at most %d of %d bytes together, remove what nobody needs", ErrTooManyFacts, k.tally.most.facts, k.tally.most.bytes)
	}
	return nil
}

// Remove deletes a fact on condition of its version.
func (k *Keeper) Remove(ctx context.Context, g processor.Group, f processor.Fact) error {
	if err := checkFact(fact.CheckKey(f.Key)); err != nil {
		return err
	}
	if f.Version == "" {
		return fmt.Errorf("remove fact %q: %w: it has no version", f.Key, ErrInvalid)
	}
	at, err := k.find(ctx, g)
	if err != nil {
		return err
	}
	expected, ok := revisionOf(f.Version)
	if !ok {
		return processor.ErrConflict
	}
	had := k.factBytes(ctx, at, f.Key)
	if err := k.meta.Delete(ctx, at.fact(f.Key), expected); err != nil {
		return k.factError("remove", f.Key, err)
	}
	k.tally.add(at.Prefix, size{-1, -had})
	return nil
}

func (k *Keeper) factError(doing, key string, err error) error {
	if errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound) {
		return processor.ErrConflict
	}
	return fmt.Errorf("%s fact %q: %w", doing, key, err)
}

// checkFact makes the rule's error one of ours.
func checkFact(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
