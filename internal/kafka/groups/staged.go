package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Offsets that are committed in a transaction count when that is. Until then they are in an entry of their own, by
// group and transaction, which whoever coordinates the transaction makes before the first of them comes (Stage.Open).
// The group's coordinator adds to it (Stage.Put), and it is settled with the transaction, be it by another node. All of
// that is by compare-and-set of this one entry, so that nothing is added to one that is settled, and nothing that comes
// late passes for a part of the next transaction.
//
// What was settled is written to the group's offsets by its coordinator, before it answers anything about them, and
// before it writes any others (fold). Only then the entry is deleted. Of one group one at a time does so, in the order in
// which they were settled: so no offset goes back.

// stagedPrefix is what the keys of offsets in transactions begin with.
const stagedPrefix = "kafka/staged/"

// maxStagedBytes is what such an entry measures at most, with something left for whoever seals it. It is one, so that all of
// it counts at once.
const maxStagedBytes = meta.MaxValueBytes - 4<<10

// ErrNotStaged: the transaction has no offsets of the group, or is over.
var ErrNotStaged = errors.New("the transaction goes on no more, or the group was not made part of it")

// staged is such an entry as the store keeps it.
type staged struct {
	// Opened is when it was made.
	Opened time.Time `json:"opened"`
	// Settled is when it was committed; zero: it was not. By it they are written in order; see Stage.order.
	Settled   time.Time        `json:"settled,omitzero"`
	Positions []stagedPosition `json:"positions,omitempty"`
}

type stagedPosition struct {
	Log    string `json:"log"`
	Number int32  `json:"number"`
	Position
}

// Stages are the offsets of groups in transactions. All methods may be called by many goroutines at once.
type Stages struct {
	coordinator *Coordinator
	// turns have room each for the one who writes what was settled; see turn.
	turns [foldings]chan struct{}
}

func newStages(c *Coordinator) *Stages {
	s := &Stages{coordinator: c}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	return s
}

// Stage is the offsets of a group in one transaction.
type Stage struct {
	coordinator *Coordinator
	group, key  string
}

// Of gives the offsets of a group in a transaction, which has a name of its own: a segment of a key. Any node may use it,
// but for Put.
func (s *Stages) Of(group, transaction string) (Stage, error) {
	if err := checkID(group); err != nil {
		return Stage{}, err
	}
	return Stage{s.coordinator, group, stagedKeys(group) + transaction}, nil
}

// Allowed says why somebody may not have offsets of a group be part of a transaction; nil: he may. It takes a right to all
// hubs in which the group has offsets. Any node may say so.
func (s *Stages) Allowed(ctx context.Context, id string, right func(hub string) bool) error {
	if err := checkID(id); err != nil {
		return err
	}
	c := s.coordinator
	there, err := getEntry(ctx, c, groupKey(id))
	if errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read group %.80q: %w", id, err)
	}
	e, err := decodeEntry(there)
	if err != nil {
		return err
	}
	return may(right).all(hubsOf(c.cfg.Broker, e))
}

func stagedKeys(group string) string { return stagedPrefix + segment(group) + "/" }

// stagedGroup is the group that a key is of.
func stagedGroup(key string) (string, error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, stagedPrefix), "/")
	return url.PathUnescape(id)
}

func decodeStaged(e meta.Entry) (s staged, err error) {
	if err = json.Unmarshal(e.Value, &s); err != nil {
		err = fmt.Errorf("read offsets %s: %w", e.Key, err)
	}
	return s, err
}

// Open makes the entry; one that is there stays.
func (s Stage) Open(ctx context.Context) error {
	_, err := s.coordinator.cfg.Meta.CompareAndSet(ctx, s.key, 0, encode(staged{Opened: time.Now()}))
	if err != nil && !errors.Is(err, meta.ErrConflict) {
		return fmt.Errorf("make %s: %w", s.key, err)
	}
	return nil
}

// change lets the entry be changed while it is not settled, again if somebody else was faster; keep false deletes it.
// Where there is none, or it was settled, it gives ErrNotStaged; where it would measure too much, ErrTooManyOffsets.
func (s Stage) change(ctx context.Context, how func(*staged) (keep bool)) error {
	store, looked := s.coordinator.cfg.Meta, !s.coordinator.cfg.Several
	return mirror.Uncontested(ctx, func() error {
		e, err := store.Get(ctx, s.key)
		if errors.Is(err, meta.ErrNotFound) && !looked {
			looked = true
			if err = store.Fresh(ctx, stagedKeys(s.group)); err == nil {
				e, err = store.Get(ctx, s.key)
			}
		}
		if errors.Is(err, meta.ErrNotFound) {
			return ErrNotStaged
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.key, err)
		}
		now, err := decodeStaged(e)
		if err != nil {
			return err
		}
		if !now.Settled.IsZero() {
			return ErrNotStaged
		}
		if !how(&now) {
			err = store.Delete(ctx, s.key, e.Revision)
		} else if raw := encode(now); len(raw) > maxStagedBytes {
			return ErrTooManyOffsets
		} else {
			_, err = store.CompareAndSet(ctx, s.key, e.Revision, raw)
		}
		if errors.Is(err, meta.ErrNotFound) {
			err = meta.ErrConflict
		}
		return err
	})
}

// Put adds positions. It returns when they are durable. It is for the group's coordinator, which judges whether who
// commits may, as Coordinator.Commit does, but that somebody who is no member may while there are some: older clients do
// not say whom they commit for.
func (s Stage) Put(ctx context.Context, by Committer, positions map[Partition]Position) error {
	allowed := func() error { return s.may(ctx, by, positions) }
	if err := allowed(); err != nil {
		return err
	}
	// What is staged must be possible to write when the transaction is committed: then it is too late to refuse it, and
	// nobody knows any more whose group it is.
	if err := s.coordinator.findOrMake(ctx, s.group, func(g *group) error { return g.reserve(ctx, positions) }); err != nil {
		return err
	}
	err := s.change(ctx, func(to *staged) bool {
		for p, position := range positions {
			position.Time = time.Now()
			to.Positions = slices.DeleteFunc(to.Positions, func(o stagedPosition) bool { return o.Log == p.Log && o.Number == p.Number })
			to.Positions = append(to.Positions, stagedPosition{p.Log, p.Number, position})
		}
		return true
	})
	if err != nil {
		return err
	}
	// Its partitions may have become another member's before the entry was written. That one waits for all
	// transactions that it can see, and has not seen this.
	return allowed()
}

// reserve has the group stored, for the account that asks, where it is not yet, and refuses what would be too much for it.
func (g *group) reserve(ctx context.Context, positions map[Partition]Position) error {
	c := &commit{done: make(chan struct{})}
	err := g.do(func(time.Time) error {
		shards := slices.Clone(g.entry.Shards)
		for p := range positions {
			if s := shardOf(p); !slices.Contains(shards, s) {
				shards = append(shards, s)
			}
		}
		switch {
		case len(shards) > maxShards:
			return ErrTooManyGroups
		case g.revision != 0:
			close(c.done)
			return nil
		case !g.coordinator.room(g.account):
			g.giveUpLocked(ErrTooManyGroups) // another account may have room for a group of that name
			return ErrTooManyGroups
		}
		g.wanted++
		g.commits = append(g.commits, c)
		g.writeLocked()
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ErrStopping
	}
}

// may says why somebody may not commit positions; nil: it may.
func (s Stage) may(ctx context.Context, by Committer, positions map[Partition]Position) error {
	change := make(map[Partition]*Position, len(positions))
	for p, position := range positions {
		if len(position.Metadata) > MaxMetadataBytes {
			return ErrMetadata
		}
		change[p] = &position
	}
	g, err := s.coordinator.find(ctx, s.group, false)
	if errors.Is(err, ErrNotFound) {
		if by.outside() {
			return nil
		}
		err = member.ErrGeneration // there is no group to be a member of
	}
	if err != nil {
		return err
	}
	return g.do(func(now time.Time) error {
		if by.outside() && by.May != nil {
			return may(by.May).all(g.hubsLocked())
		}
		if by.outside() {
			return nil
		}
		return g.kind.commit(now, by, change)
	})
}

// Settle has the offsets count, or forgets them. Where that was done before nothing happens.
func (s Stage) Settle(ctx context.Context, commit bool) error {
	when := time.Now()
	var err error
	if commit {
		when, err = s.order(ctx, when)
	}
	if err == nil {
		err = s.change(ctx, func(to *staged) bool {
			to.Settled = when
			return commit && len(to.Positions) > 0
		})
	}
	if errors.Is(err, ErrNotStaged) {
		err = nil
	}
	if err != nil || !commit || !s.coordinator.cfg.Mine(s.group) {
		return err
	}
	if _, err := s.coordinator.Stages.fold(ctx, s.group); err != nil { // whoever asks for them has it done
		s.coordinator.cfg.Log.Debug("offsets of a transaction are written later", "group", s.group, "error", err)
	}
	return nil
}

// order gives the time by which a transaction is settled now: behind all that were before, of which some may not be written
// yet. The clock alone does not say so: it may have been stepped back, or be behind that of the node which has settled those.
func (s Stage) order(ctx context.Context, now time.Time) (time.Time, error) {
	store := s.coordinator.cfg.Meta
	if s.coordinator.cfg.Several {
		if err := store.Fresh(ctx, stagedKeys(s.group)); err != nil {
			return now, fmt.Errorf("read offsets of group %.80q: %w", s.group, err)
		}
	}
	settled, _, err := s.coordinator.Stages.list(ctx, s.group)
	if err != nil || len(settled) == 0 {
		return now, err
	}
	if last := settled[len(settled)-1].Settled; !now.After(last) {
		now = last.Add(1)
	}
	return now, nil
}

// Unstable gives the partitions of which a group has offsets in transactions that are not decided. Those that were
// committed by anybody before the call count when it returns.
func (s *Stages) Unstable(ctx context.Context, id string) (map[Partition]bool, error) {
	c := s.coordinator
	if err := checkID(id); err != nil {
		return nil, err
	}
	if !c.cfg.Mine(id) {
		return nil, ErrNotCoordinator
	}
	if c.cfg.Several {
		if err := c.cfg.Meta.Fresh(ctx, stagedKeys(id)); err != nil {
			return nil, fmt.Errorf("read offsets of group %.80q: %w", id, err)
		}
	}
	return s.fold(ctx, id)
}

// FoldAll writes what was settled of all groups that are this node's, and that nobody may ask for. What is older than
// old is forgotten: it was made when its transaction had just ended, and nobody will say what becomes of it.
func (s *Stages) FoldAll(ctx context.Context, old time.Duration) error {
	c := s.coordinator
	entries, err := c.cfg.Meta.List(ctx, stagedPrefix)
	if err != nil {
		return fmt.Errorf("read offsets of transactions: %w", err)
	}
	seen := make(map[string]bool)
	var errs []error // those of some groups are not to keep others waiting
	for _, e := range entries {
		id, err := stagedGroup(e.Key)
		if err != nil || seen[id] || !c.cfg.Mine(id) {
			continue
		}
		if one, err := decodeStaged(e); err == nil && one.Settled.IsZero() && time.Since(one.Opened) > old {
			if err := c.cfg.Meta.Delete(ctx, e.Key, e.Revision); err != nil && !mirror.GoneOrChanged(err) {
				errs = append(errs, fmt.Errorf("delete %s: %w", e.Key, err))
			}
			continue
		}
		seen[id] = true
		if _, err := s.fold(ctx, id); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// foldings is how many groups may be written at once: those whose ids share a turn wait for each other.
const foldings = 64

// turn gives who may write what was settled of a group.
func (s *Stages) turn(id string) chan struct{} {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return s.turns[h.Sum32()%foldings]
}

// fold writes what was settled to the group's offsets, and gives the partitions of what was not.
func (s *Stages) fold(ctx context.Context, id string) (map[Partition]bool, error) {
	return s.foldBy(ctx, id, func(do func(*group) error) error { return s.coordinator.findOrMake(ctx, id, do) })
}

// foldHere is for changes of a group of this node's that must not come before what was committed in transactions.
func (s *Stages) foldHere(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	return s.foldFor(ctx, id, func(do func(*group) error) error { return s.coordinator.findOrMake(ctx, id, do) })
}

// foldFor is fold for who may visit a group of another node's, and for what must not miss what other nodes have settled.
func (s *Stages) foldFor(ctx context.Context, id string, visit func(do func(*group) error) error) error {
	if c := s.coordinator; c.cfg.Several {
		if err := c.cfg.Meta.Fresh(ctx, stagedKeys(id)); err != nil {
			return fmt.Errorf("read offsets of group %.80q: %w", id, err)
		}
	}
	_, err := s.foldBy(ctx, id, visit)
	return err
}

func (s *Stages) foldBy(ctx context.Context, id string, visit func(do func(*group) error) error) (map[Partition]bool, error) {
	settled, unstable, err := s.list(ctx, id)
	if err != nil || len(settled) == 0 {
		return unstable, err
	}
	turn := s.turn(id)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-turn }()
	if settled, unstable, err = s.list(ctx, id); err != nil { // others may have been at work
		return nil, err
	}
	for _, one := range settled {
		if err := s.foldOne(ctx, id, one, visit); err != nil {
			return nil, err
		}
	}
	return unstable, nil
}

// settledEntry is one that is to be written.
type settledEntry struct {
	meta.Entry
	staged
}

// list reads the offsets of a group in transactions: those that were settled, in order, and the partitions of the
// others.
func (s *Stages) list(ctx context.Context, id string) (settled []settledEntry, unstable map[Partition]bool, err error) {
	c := s.coordinator
	entries, err := c.cfg.Meta.List(ctx, stagedKeys(id))
	if err != nil {
		return nil, nil, fmt.Errorf("read offsets of group %.80q: %w", id, err)
	}
	for _, e := range entries {
		one, err := decodeStaged(e)
		if err != nil {
			return nil, nil, err
		}
		if !one.Settled.IsZero() {
			settled = append(settled, settledEntry{e, one})
			continue
		}
		for _, p := range one.Positions {
			if unstable == nil {
				unstable = make(map[Partition]bool)
			}
			unstable[Partition{p.Log, p.Number}] = true
		}
	}
	slices.SortFunc(settled, func(x, y settledEntry) int { return x.Settled.Compare(y.Settled) })
	return settled, unstable, nil
}

// written says whether somebody has written an entry, and forgotten it.
func (s *Stages) written(ctx context.Context, id string, from settledEntry) (bool, error) {
	c := s.coordinator
	if !c.cfg.Several {
		return false, nil
	}
	if err := c.cfg.Meta.Fresh(ctx, stagedKeys(id)); err != nil {
		return false, err
	}
	_, err := c.cfg.Meta.Get(ctx, from.Key)
	if errors.Is(err, meta.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// foldOne writes what one transaction has committed, and forgets it then.
func (s *Stages) foldOne(ctx context.Context, id string, from settledEntry, visit func(do func(*group) error) error) error {
	c := s.coordinator
	change := make(map[Partition]*Position)
	for _, p := range from.Positions {
		if broker.HubOf(c.cfg.Broker, p.Log) == "" {
			if broker.LogGone(ctx, c.cfg.Broker, p.Log) {
				continue
			}
			return fmt.Errorf("write offsets of group %.80q: %w: a hub is not known here yet", id, eventlog.ErrUnavailable)
		}
		change[Partition{p.Log, p.Number}] = &p.Position
	}
	if len(change) > 0 {
		var failed map[Partition]error
		err := visit(func(g *group) (err error) {
			// The coordinator before this one may have written it until this one had the group, and something later.
			if gone, err := s.written(ctx, id, from); gone || err != nil {
				return err
			}
			// Reserved it was, perhaps beside others.
			failed, err = g.commitWithin(ctx, 2*maxShards, change, func(time.Time) error { return nil })
			return err
		})
		for _, why := range failed {
			if _, gone := errors.AsType[*broker.NotFoundError](why); err == nil && !gone {
				err = why
			}
		}
		if err != nil {
			return fmt.Errorf("write offsets of group %.80q: %w", id, err)
		}
	}
	if err := c.cfg.Meta.Delete(ctx, from.Key, from.Revision); err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("delete %s: %w", from.Key, err)
	}
	return nil
}
