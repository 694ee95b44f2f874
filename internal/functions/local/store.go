package local

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/processor"
)

// Store is the yard's group store as the processor of one instance sees it. Leases and presences
// are written again and again for one reason only: so that other instances see that this one lives.
// A hundred idle functions would write five hundred records a second for nobody. So while no other
// instance is there a renewal is made in memory: the record stands as it is, in a version that only
// this instance sees, and is written now and then for operators. Leases that hang on the presence
// are not written at all. And while the store tells that nothing has changed, what every round reads
// is not read again.
//
// Why that suffices: an instance tells of itself before it looks at leases, and takes one only when
// it has not changed for a whole lease time. The store tells of its presence at once, and from then
// on everything is written and read. What is recorded decides as before: a record that is in
// another version than ours is not renewed in memory, and the hub's epochs and the checkpoint's
// fence hold whatever is believed here.
type Store struct {
	*groups.Registry
	id string
	// function is the one whose records have to be the yard's own; empty: whatever is there counts.
	function string
	log      *slog.Logger

	mu    sync.Mutex
	views map[processor.Group]*view // guarded by mu
}

var (
	_ processor.Store      = (*Store)(nil)
	_ processor.Watcher    = (*Store)(nil)
	_ processor.Subscriber = (*Store)(nil)
)

// NewStore makes one for an instance.
func NewStore(k *groups.Registry, instance string) *Store {
	return &Store{Registry: k, id: instance, views: map[processor.Group]*view{}}
}

// NewStoreOf makes one for an instance of a function, which believes nothing that clients wrote of
// the function's work, failures and circuit: before the group was the function's they could, and
// made it pass over events. What they left is removed.
func NewStoreOf(k *groups.Registry, instance, function string, log *slog.Logger) *Store {
	s := NewStore(k, instance)
	s.function, s.log = function, log
	return s
}

// How often a renewal is written that nobody else is there to see: a presence often enough for
// operators, who take an instance and its leases for alive for groups.AliveWithin since, and a
// lease so that it is not for ever as old as it looks.
const (
	rewritePresence = groups.AliveWithin * 3 / 4
	rewriteLease    = 20 * groups.AliveWithin
)

// What a processor reads in every round: where instances tell of themselves, who is to have a
// partition next, and leases.
const (
	presences  = "presence/"
	nexts      = "next/"
	leasesRead = "leases"
)

// view is what an instance knows of a group. All of it is guarded by mu.
type view struct {
	mu sync.Mutex
	// others: another instance is present; foreign: one owns something that tells nothing of
	// itself. Both also where it is not known.
	others, foreign bool
	// standing are our records in the form in which they were last written: leases by partition,
	// the presence by its key.
	standing map[string]*standing
	// read is what was last read, good until something changes: then changes is another. watched:
	// the store tells of changes.
	read    map[string]reading
	changes int
	watched bool
}

// standing is a record of ours that may be renewed in memory.
type standing struct {
	epoch    int64  // of a lease
	presence string // what a lease hangs on
	value    []byte // of a presence
	version  processor.Version
	at       time.Time // when it was written
	renewals int       // since then
}

// reading is what was read when there had been so many changes.
type reading struct {
	changes int
	entries []processor.Entry
	leases  []processor.Lease
}

func (s *Store) of(g processor.Group) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[g.Canonical()]
	if v == nil {
		v = &view{others: true, foreign: true, standing: map[string]*standing{}, read: map[string]reading{}}
		s.views[g.Canonical()] = v
	}
	return v
}

// shown is the version that the instance is told.
func (r *standing) shown() processor.Version {
	if r.renewals == 0 {
		return r.version
	}
	return r.version + processor.Version("~"+strconv.Itoa(r.renewals))
}

// stored is the version that the store knows.
func stored(v processor.Version) processor.Version {
	version, _, _ := strings.Cut(string(v), "~")
	return processor.Version(version)
}

// Subscribe has what was read forgotten before anybody hears of a change.
func (s *Store) Subscribe(ctx context.Context, g processor.Group, changed func()) error {
	v := s.of(g)
	err := s.Registry.Subscribe(ctx, g, func() {
		v.forget()
		changed()
	})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watched = true
	context.AfterFunc(ctx, v.unwatched)
	return nil
}

// unwatched is when one who was told of changes has left. Whoever is left reads.
func (v *view) unwatched() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watched = false
}

func (v *view) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changes++
}

// again gives what was read before if nothing has changed since; else a reading to fill.
func (v *view) again(what string) (r reading, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r, ok = v.read[what]; ok && v.watched && v.aloneLocked() && r.changes == v.changes {
		return r, true
	}
	return reading{changes: v.changes}, false
}

// aloneLocked: nobody else is there to see renewals, or whose renewals have to be seen.
func (v *view) aloneLocked() bool { return !v.others && !v.foreign }

// shownLocked is the version in which a record that was read is told. One that was written by
// somebody else is ours no more.
func (v *view) shownLocked(key string, read processor.Version) processor.Version {
	r := v.standing[key]
	switch {
	case r == nil:
		return read
	case r.version != read:
		delete(v.standing, key)
		return read
	}
	return r.shown()
}

// forgetMissingLocked is for records that somebody has removed, maybe with the whole group: they
// are to be written again.
func (v *view) forgetMissingLocked(missing func(key string) bool) {
	maps.DeleteFunc(v.standing, func(key string, _ *standing) bool { return missing(key) })
}

// standsLocked tells whether a record in this version may be renewed in memory.
func (v *view) standsLocked(r *standing, version processor.Version, rewrite time.Duration) bool {
	return r != nil && v.aloneLocked() && r.shown() == version && time.Since(r.at) < rewrite
}

// Entries sees who is present.
func (s *Store) Entries(ctx context.Context, g processor.Group, prefix string) (_ []processor.Entry, err error) {
	if prefix != presences && prefix != nexts {
		return s.believed(ctx, g, prefix)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	v := s.of(g)
	r, known := v.again(prefix)
	if !known {
		r.entries, err = s.Registry.Entries(ctx, g, prefix)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.others = true
		return nil, err
	}
	v.read[prefix] = r
	entries := slices.Clone(r.entries)
	if prefix == presences {
		v.forgetMissingLocked(func(key string) bool {
			return key == presences+s.id && !slices.ContainsFunc(entries, func(f processor.Entry) bool { return f.Key == key })
		})
		v.others = slices.ContainsFunc(entries, func(f processor.Entry) bool { return f.Key != presences+s.id })
	}
	for i, f := range entries {
		entries[i].Version = v.shownLocked(f.Key, f.Version)
	}
	return entries, nil
}

// Leases sees whether ours are as they were.
func (s *Store) Leases(ctx context.Context, g processor.Group) (_ []processor.Lease, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	v := s.of(g)
	r, known := v.again(leasesRead)
	if !known {
		r.leases, err = s.Registry.Leases(ctx, g)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.foreign = true
		return nil, err
	}
	v.read[leasesRead] = r
	leases := slices.Clone(r.leases)
	v.forgetMissingLocked(func(key string) bool {
		return key != presences+s.id && !slices.ContainsFunc(leases, func(l processor.Lease) bool { return l.Partition == key })
	})
	v.foreign = slices.ContainsFunc(leases, func(l processor.Lease) bool { return l.Owner != s.id && l.Owner != "" })
	for i, l := range leases {
		leases[i].Version = v.shownLocked(l.Partition, l.Version)
	}
	return leases, nil
}

// Claim renews in memory if that is all there is to do.
func (s *Store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	v := s.of(g)
	if renewed := v.renew(s.id, leases); renewed != nil {
		return renewed, nil
	}
	at, asked := time.Now(), make([]processor.Lease, 0, len(leases))
	for _, l := range leases {
		if !v.outdated(l.Partition, l.Version) {
			l.Version = stored(l.Version)
			asked = append(asked, l)
		}
	}
	written, err := s.Registry.Claim(ctx, g, asked)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changes++
	for _, l := range asked {
		delete(v.standing, l.Partition)
	}
	for _, l := range written {
		if l.Owner == s.id {
			v.standing[l.Partition] = &standing{epoch: l.Epoch, presence: l.Presence, version: l.Version, at: at}
		}
	}
	return written, err
}

// outdated tells whether a record was renewed in memory since it was in this version.
func (v *view) outdated(key string, version processor.Version) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.standing[key]
	return r != nil && r.version == stored(version) && r.shown() != version
}

// renew gives the leases in new versions if all of them are ours and nobody else is there to see
// it; else nil.
func (v *view) renew(id string, leases []processor.Lease) []processor.Lease {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range leases {
		r := v.standing[l.Partition]
		if l.Owner != id || !v.standsLocked(r, l.Version, rewriteLease) || r.epoch != l.Epoch || r.presence != l.Presence {
			return nil
		}
	}
	renewed := slices.Clone(leases)
	for i, l := range renewed {
		r := v.standing[l.Partition]
		r.renewals++
		renewed[i].Version = r.shown()
	}
	return renewed
}

// Begin names the lease in the version that the store knows, and so does Save.
func (s *Store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	l.Version = stored(l.Version)
	return s.Registry.Begin(ctx, g, l)
}

func (s *Store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	l.Version = stored(l.Version)
	return s.Registry.Save(ctx, g, l, c)
}

// Put renews the presence in memory if it says nothing new.
func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	if err := context.Cause(ctx); err != nil {
		return processor.Entry{}, err
	}
	v, own := s.of(g), f.Key == presences+s.id
	switch {
	case own && v.repeat(&f):
		return f, nil
	case v.outdated(f.Key, f.Version):
		return processor.Entry{}, processor.ErrConflict
	}
	at := time.Now()
	f.Version = stored(f.Version)
	put, err := s.Registry.Put(ctx, g, f)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changes++
	if delete(v.standing, f.Key); own && err == nil {
		v.standing[f.Key] = &standing{value: bytes.Clone(put.Value), version: put.Version, at: at}
	}
	return put, err
}

// repeat gives an entry that says what it said before a new version, if nobody else is there to see
// it.
func (v *view) repeat(f *processor.Entry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.standing[f.Key]
	if !v.standsLocked(r, f.Version, rewritePresence) || !bytes.Equal(r.value, f.Value) {
		return false
	}
	r.renewals++
	f.Version = r.shown()
	return true
}

// Remove names the entry in the version that the store knows.
func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	v := s.of(g)
	if v.outdated(f.Key, f.Version) {
		return processor.ErrConflict
	}
	defer v.forget()
	f.Version = stored(f.Version)
	return s.Registry.Remove(ctx, g, f)
}

// believed reads entries without those of the function that a client wrote, and removes these.
func (s *Store) believed(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if s.function == "" {
		return s.Registry.Entries(ctx, g, prefix)
	}
	all, clients, err := s.EntriesByWriter(ctx, g, prefix)
	if err != nil {
		return nil, err
	}
	for _, f := range clients {
		kind, rest, _ := strings.Cut(f.Key, "/")
		if name, _, _ := strings.Cut(rest, "/"); name != s.function || !groups.OfFunctions(f.Key) {
			all = append(all, f)
			continue
		}
		s.log.Warn("a client had left a record of a function of the yard, it is removed",
			"hub", g.Hub, "group", g.Group, "function", s.function, "record", kind)
		if err := s.Registry.Remove(ctx, g, f); err != nil && !errors.Is(err, processor.ErrConflict) { // another was quicker
			return nil, err
		}
	}
	return all, nil
}
