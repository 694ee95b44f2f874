package processor

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/balance"
)

// situation is everything a round's decision rests on.
type situation struct {
	world
	self       string
	partitions []string
	// held are those with a pump of ours, in whatever state: never claimed again before
	// it has ended.
	held map[string]bool
	// barred are those that have just failed here and are left to others for a while.
	barred map[string]bool
	// floor is an epoch that the hub is known to have refused, by partition.
	floor   map[string]int64
	greedy  bool
	leaving bool
	life    string        // of our presence, for leases to hang on; empty: they do not
	force   time.Duration // after asking, when to take without consent
	lease   time.Duration
	// When a partition that nobody takes is anybody's: one whose owner died, and one that was
	// released.
	orphan, released time.Duration
}

// decision is what a round does.
type decision struct {
	// claim are leases to write: acquisitions, with their epoch raised, and leases in our name that
	// nobody here works under, released.
	claim []Lease
	// end are the dead, by id, whose presence has to be ended before what hangs on it is claimed.
	end map[string]instanceSeen
	// handOver are ours and wanted by the instance named.
	handOver map[string]string
	// put and remove are entries: who asks for what.
	put, remove []Entry
	// foreign: read without showing an epoch.
	foreign bool
	// asking: a partition is being waited for, or there are more to be taken, so look often.
	asking bool
	// again is when to look again even if nothing is reported; zero: never.
	again time.Time
}

// decide makes one round's plan. It is pure: the same situation, the same decision.
func (s *situation) decide() decision {
	d := decision{end: map[string]instanceSeen{}, handOver: map[string]string{}, foreign: s.foreigners(), again: s.change}
	for id, n := range s.nexts {
		if s.held[id] && n.instance != s.self && s.alive(n.instance) {
			d.handOver[id] = n.instance
		}
	}
	if s.leaving {
		return d
	}
	plan := balance.Decide(s.view())
	s.adopt(&d)
	s.takeFree(&d, plan)
	s.takeFromOthers(&d, plan)
	s.clean(&d)
	return d
}

// view is the group as the balance sees it. Partitions of instances that are leaving are
// left out: they will be free soon, and belong to nobody meanwhile.
func (s *situation) view() balance.View {
	v := balance.View{Self: s.self, Greedy: s.greedy}
	live := map[string]bool{s.self: true}
	for id, i := range s.instances {
		if i.living() {
			live[id] = true
		}
	}
	for _, id := range s.partitions {
		p := balance.Partition{ID: id, Next: s.next(id)}
		l := s.leases[id]
		switch {
		case l.Owner == "" || l.dead:
		case l.Owner != s.self && s.instances[l.Owner].Leaving:
			continue
		default:
			p.Owner, p.Foreign = l.Owner, l.foreign && l.Owner != s.self
			live[l.Owner] = true
		}
		v.Partitions = append(v.Partitions, p)
	}
	for id := range live {
		v.Live = append(v.Live, id)
	}
	slices.Sort(v.Live)
	return v
}

// next is the living instance that has asked for a partition. One that has left a free
// partition lying for a lease's time has forgotten it.
func (s *situation) next(id string) string {
	n, ok := s.nexts[id]
	if !ok || !s.alive(n.instance) {
		return ""
	}
	l := s.leases[id]
	forgotten := !s.now.Before(n.since.Add(s.lease)) && !s.now.Before(l.since.Add(s.lease))
	if n.instance != s.self && forgotten && (l.Owner == "" || l.dead) {
		return ""
	}
	return n.instance
}

func (s *situation) alive(instance string) bool {
	return instance == s.self || s.instances[instance].living() && s.instances[instance].entry.Key != ""
}

// adopt takes leases up that carry our name but that nothing here works under: of an earlier life
// under the same id, or of a claim whose answer was lost. They are taken like any other, with a
// raised epoch; what cannot be taken now is released.
func (s *situation) adopt(d *decision) {
	for id, l := range s.leases {
		if l.Owner != s.self || s.held[id] {
			continue
		}
		if s.barred[id] {
			d.claim = append(d.claim, l.released())
			continue
		}
		s.acquire(d, id)
	}
}

func (s *situation) takeFree(d *decision, plan balance.Plan) {
	for _, id := range plan.Claim {
		s.acquire(d, id)
	}
	orphans := 0
	for _, id := range s.partitions {
		l := s.leases[id]
		if l.Owner != "" && !l.dead {
			continue
		}
		switch next := s.next(id); {
		case slices.Contains(plan.Withdraw, id):
		case next == s.self:
			s.acquire(d, id) // we asked for it, and here it is
		case next != "" || l.Version == "": // another's, or never owned: its time has only come
		case s.now.Before(s.orphaned(l)):
			d.soon(s.orphaned(l))
		case orphans == 0:
			s.acquire(d, id)
			orphans++
		default:
			d.asking = true
		}
	}
}

// orphaned is when a partition has been free for so long that the instance whose turn it is cannot
// take it: one where it has just failed, or one that died a while ago and that a newcomer still
// takes for living. Better uneven than unread. That an owner is dead not all find out at the same
// time, but a release is seen at once.
func (s *situation) orphaned(l leaseSeen) time.Time {
	if l.dead {
		return l.since.Add(s.lease + s.orphan)
	}
	return l.since.Add(s.released)
}

// takeFromOthers asks for what others have too many of, takes it from those who know no
// asking, and takes what was asked for long ago.
func (s *situation) takeFromOthers(d *decision, plan balance.Plan) {
	for _, id := range plan.Take {
		s.acquire(d, id)
	}
	for _, id := range plan.Ask {
		n := s.nexts[id]
		if n.instance != s.self && !s.held[id] && !s.barred[id] {
			d.put = append(d.put, nextEntry(id, s.self, n.entry.Version))
			d.asking = true
		}
	}
	for _, id := range plan.Withdraw {
		if n := s.nexts[id]; n.instance == s.self {
			d.drop(n.entry)
		}
	}
	for id, n := range s.nexts {
		if n.instance != s.self || s.held[id] || slices.Contains(plan.Withdraw, id) {
			continue
		}
		// It is waited for, but not for ever. An owner that has come since has its full time.
		end := n.since.Add(s.force)
		if taken := s.leases[id].taken; taken.After(n.since) {
			end = taken.Add(s.force)
		}
		if !s.now.Before(end) {
			s.acquire(d, id)
			continue
		}
		d.asking = true
		d.soon(end)
	}
}

// acquire adds a claim with an epoch above every one seen.
func (s *situation) acquire(d *decision, id string) {
	l := s.leases[id]
	already := slices.ContainsFunc(d.claim, func(c Lease) bool { return c.Partition == id })
	if s.held[id] || s.barred[id] || already {
		return
	}
	if l.dead && l.backed {
		d.end[l.Owner] = s.instances[l.Owner]
	}
	d.claim = append(d.claim, Lease{
		Partition: id, Owner: s.self, Version: l.Version, Presence: s.life,
		Epoch: max(l.Epoch, s.floor[id]) + 1,
	})
}

// lives takes back what was decided because an instance was dead: it could not be ended.
func (d *decision) lives(instance string, leases map[string]leaseSeen) {
	d.claim = slices.DeleteFunc(d.claim, func(l Lease) bool {
		had := leases[l.Partition]
		return had.Owner == instance && had.dead && had.backed
	})
	d.asking = true
}

// clean removes what nobody needs: our wish for what we have, and, where we are the first of
// the living, what the dead have left behind. Their presence is kept a good while, as it shows that
// they are not foreign.
func (s *situation) clean(d *decision) {
	for id, n := range s.nexts {
		switch {
		case n.instance == s.self && s.held[id]:
			d.drop(n.entry)
		case s.first() && !s.alive(n.instance) && !s.now.Before(n.since.Add(4*s.lease)):
			d.drop(n.entry)
		}
	}
	for id, i := range s.instances {
		if s.first() && id != s.self && i.dead && !s.now.Before(i.since.Add(4*s.lease)) && !s.owns(id) {
			d.drop(i.entry)
		}
	}
}

// first: of the living instances ours has the lowest id.
func (s *situation) first() bool {
	for id, i := range s.instances {
		if i.living() && id < s.self {
			return false
		}
	}
	return true
}

// others: another instance lives that might take what we leave.
func (s *situation) others() bool {
	for id, i := range s.instances {
		if id != s.self && i.living() {
			return true
		}
	}
	return false
}

func (s *situation) owns(instance string) bool {
	for _, l := range s.leases {
		if l.Owner == instance {
			return true
		}
	}
	return false
}

// drop removes an entry, once.
func (d *decision) drop(f Entry) {
	if !slices.ContainsFunc(d.remove, func(r Entry) bool { return r.Key == f.Key }) {
		d.remove = append(d.remove, f)
	}
}

func (d *decision) soon(t time.Time) {
	if d.again.IsZero() || t.Before(d.again) {
		d.again = t
	}
}
