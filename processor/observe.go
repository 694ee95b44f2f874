package processor

import "time"

// observer remembers, for each record of the group, its version and when this instance first saw
// it. That is all that expiry is judged by: a record that has not changed for the lease time on our
// own monotonic clock is dead, and clocks of machines are never compared.
//
// What was seen is dated when the read had returned. An owner counts from before its write
// began, so that it gives up before anyone who observes takes over.
type observer struct {
	lease   time.Duration            // of instances that keep a presence
	foreign time.Duration            // of those that do not
	seen    map[string]sighting      // entries by key
	leases  map[string]leaseSighting // by partition
}

type sighting struct {
	version Version
	since   time.Time
}

type leaseSighting struct {
	sighting // since also when what it hangs on has last changed
	backing  string
	owner    string
	epoch    int64
	taken    time.Time // when this owner under this epoch was first seen
}

// world is what one reading of the records says, judged at one time.
type world struct {
	now       time.Time
	leases    map[string]leaseSeen    // by partition
	instances map[string]instanceSeen // by id; those with a presence, living or dead
	nexts     map[string]nextSeen     // by partition
	// change is when the next living record dies if nobody renews it; zero: none can.
	change time.Time
}

type leaseSeen struct {
	Lease
	since time.Time
	// taken is since when it has this owner under this epoch.
	taken time.Time
	// foreign: its owner keeps no presence.
	foreign bool
	// dead: it has an owner, who has not renewed it.
	dead bool
	// backed: it hangs on a presence that is there. While that is so its owner can renew it, so who
	// takes it for dead ends the presence first.
	backed bool
}

type instanceSeen struct {
	presence
	entry Entry
	since time.Time
	dead  bool
}

// living: it may be given partitions.
func (i instanceSeen) living() bool { return !i.dead && !i.Leaving }

// backs: the lease hangs on the presence in this life of it.
func (i instanceSeen) backs(l Lease) bool { return l.Presence != "" && i.Life == l.Presence }

type nextSeen struct {
	instance string
	entry    Entry
	since    time.Time
}

func newObserver(lease time.Duration) *observer {
	return &observer{lease: lease, foreign: max(foreignLease, lease)}
}

// look takes a reading in that had returned by now.
func (o *observer) look(now time.Time, leases []Lease, presences, nexts []Entry) world {
	w := world{
		now: now, leases: make(map[string]leaseSeen, len(leases)), instances: make(map[string]instanceSeen, len(presences)),
		nexts: make(map[string]nextSeen, len(nexts)),
	}
	kept := make(map[string]sighting, len(presences)+len(nexts))
	keptLeases := make(map[string]leaseSighting, len(leases))
	for _, f := range presences {
		id, p := decodePresence(f)
		since := o.date(kept, f.Key, f.Version, now)
		w.instances[id] = instanceSeen{presence: p, entry: f, since: since, dead: p.Ended || w.dies(since, o.lease)}
	}
	for _, l := range leases {
		s, known := o.leases[l.Partition]
		owner, present := w.instances[l.Owner]
		backing := s.backedBy(l, owner)
		if !known || s.version != l.Version || s.backing != backing {
			s.version, s.backing, s.since = l.Version, backing, now
		}
		if !known || s.owner != l.Owner || s.epoch != l.Epoch {
			s.owner, s.epoch, s.taken = l.Owner, l.Epoch, now
		}
		keptLeases[l.Partition] = s
		seen := leaseSeen{Lease: l, since: s.since, taken: s.taken}
		if l.Owner != "" {
			seen.foreign = !present && l.Presence == ""
			seen.dead = w.dies(seen.since, o.lifetime(seen.foreign))
			seen.backed = owner.backs(l) && !owner.Ended
		}
		w.leases[l.Partition] = seen
	}
	for _, f := range nexts {
		partition, instance := decodeNext(f)
		w.nexts[partition] = nextSeen{instance: instance, entry: f, since: o.date(kept, f.Key, f.Version, now)}
	}
	o.seen, o.leases = kept, keptLeases
	return w
}

// backedBy gives what a lease hangs on; while it stays the same nobody has renewed the lease by it.
// That a life was ended is no renewal: it was unchanged for a lease time before. A presence that is
// gone, or of another life, was not ended by who had watched it, so its time is counted anew.
func (s leaseSighting) backedBy(l Lease, owner instanceSeen) string {
	switch {
	case l.Presence == "":
		return ""
	case !owner.backs(l):
		return l.Presence + " is gone"
	case owner.Ended:
		return s.backing
	}
	return l.Presence + " " + string(owner.entry.Version)
}

func (o *observer) lifetime(foreign bool) time.Duration {
	if foreign {
		return o.foreign
	}
	return o.lease
}

// date gives when a record was first seen in this version.
func (o *observer) date(kept map[string]sighting, key string, v Version, now time.Time) time.Time {
	s, ok := o.seen[key]
	if !ok || s.version != v {
		s = sighting{version: v, since: now}
	}
	kept[key] = s
	return s.since
}

// dies reports whether something seen since then is dead by now, and keeps the earliest
// time at which something living will be.
func (w *world) dies(since time.Time, lifetime time.Duration) bool {
	end := since.Add(lifetime)
	if !w.now.Before(end) {
		return true
	}
	if w.change.IsZero() || end.Before(w.change) {
		w.change = end
	}
	return false
}

// knowLives reports whether all that are there know leases which hang on a presence. One of an older
// version counts also when it seems dead: it may wake up, and takes a lease that it has seen in one
// version for a lease time.
func (w *world) knowLives() bool {
	for _, i := range w.instances {
		if i.Life == "" {
			return false
		}
	}
	return !w.foreigners()
}

// foreigners reports whether an owner that knows nothing of us is at work.
func (w *world) foreigners() bool {
	for _, l := range w.leases {
		if l.foreign && !l.dead {
			return true
		}
	}
	return false
}
