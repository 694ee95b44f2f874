package processor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// planned writes a decision down in a line.
func planned(d decision) string {
	var list []string
	for _, l := range d.claim {
		list = append(list, fmt.Sprintf("claim %s as %q at %d", l.Partition, l.Owner, l.Epoch))
	}
	for id, to := range d.handOver {
		list = append(list, "hand "+id+" to "+to)
	}
	for _, f := range d.put {
		list = append(list, "put "+f.Key+string(f.Version))
	}
	for _, f := range d.remove {
		list = append(list, "remove "+f.Key)
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

func TestARoundsDecision(t *testing.T) {
	const lease = 30 * time.Second
	now := time.Now()
	old := now.Add(-time.Hour)
	owned := func(id, owner string, epoch int64) leaseSeen {
		return leaseSeen{Lease: Lease{Partition: id, Owner: owner, Epoch: epoch, Version: "v"}, since: now}
	}
	living := func(id string) instanceSeen {
		return instanceSeen{entry: presenceEntry(id, presence{}, "v"), since: now}
	}
	wish := func(id, who string, since time.Time) nextSeen {
		return nextSeen{instance: who, entry: nextEntry(id, who, "v"), since: since}
	}
	// has gives the partitions 0 and 1 to two owners, who live; what is ours has a pump.
	has := func(s *situation, zero, one string) {
		for id, owner := range map[string]string{"0": zero, "1": one} {
			s.leases[id], s.held[id] = owned(id, owner, 1), owner == "me"
			if owner != "" {
				s.instances[owner] = living(owner)
			}
		}
	}
	type change func(s *situation)
	for name, c := range map[string]struct {
		change change
		want   string
	}{
		"free partitions are taken with a raised epoch": {
			func(s *situation) { s.leases["0"] = owned("0", "", 7) },
			`claim 0 as "me" at 8; claim 1 as "me" at 1`},
		"the epoch is also above one that the hub has refused": {
			func(s *situation) { s.floor["0"], s.leases["1"] = 40, owned("1", "me", 1); s.held["1"] = true },
			`claim 0 as "me" at 41`},
		"a lease in our name that nobody works under is taken up with a raised epoch": {
			func(s *situation) {
				s.leases["0"], s.leases["1"] = owned("0", "me", 3), owned("1", "me", 3)
				s.held["1"] = true
			}, `claim 0 as "me" at 4`},
		"but released where it has just failed here": {
			func(s *situation) {
				s.leases["0"], s.leases["1"] = owned("0", "me", 3), owned("1", "me", 3)
				s.held["1"], s.barred["0"] = true, true
			}, `claim 0 as "" at 3`},
		"what is ours and wanted by the living is handed over": {
			func(s *situation) {
				has(s, "me", "me")
				s.instances["you"] = living("you")
				s.nexts["0"] = wish("0", "you", now)
			}, "hand 0 to you"},
		"but not to the dead": {
			func(s *situation) {
				has(s, "me", "me")
				i := living("you")
				i.dead = true
				s.instances["you"] = i
				s.nexts["0"] = wish("0", "you", now)
			}, ""},
		"what another has too many of is asked for": {
			func(s *situation) {
				has(s, "you", "you")
				s.partitions = []string{"0", "1"}
				s.leases["1"] = owned("1", "you", 1)
				s.nexts["1"] = wish("1", "dead", old)
				s.nexts["0"] = wish("0", "dead", now)
			}, "*put"},
		"what was asked for is waited for": {
			func(s *situation) { has(s, "you", "you"); s.nexts["0"] = wish("0", "me", now) }, ""},
		"but not for ever": {
			func(s *situation) {
				has(s, "you", "you")
				s.nexts["0"] = wish("0", "me", now.Add(-35*time.Second))
			}, `claim 0 as "me" at 2`},
		"and an owner that has come meanwhile has its full time": {
			func(s *situation) {
				new := owned("0", "you", 1)
				new.taken = now.Add(-10 * time.Second)
				s.leases["0"], s.leases["1"] = new, owned("1", "you", 1)
				s.instances["you"] = living("you")
				s.nexts["0"] = wish("0", "me", now.Add(-35*time.Second))
			}, ""},
		"what was released for us is taken": {
			func(s *situation) { has(s, "", "you"); s.nexts["0"] = wish("0", "me", now) }, `claim 0 as "me" at 2`},
		"what was released for another is left alone": {
			func(s *situation) {
				has(s, "", "me")
				s.instances["you"] = living("you")
				s.nexts["0"] = wish("0", "you", now)
			}, ""},
		"but not when that one has forgotten it": {
			func(s *situation) {
				free := owned("0", "", 1)
				free.since = now.Add(-lease)
				s.leases["0"], s.leases["1"] = free, owned("1", "me", 1)
				s.held["1"] = true
				s.instances["you"] = living("you")
				s.nexts["0"] = wish("0", "you", now.Add(-lease))
			}, `claim 0 as "me" at 2`},
		"what was released and is another's turn is left to it": {
			func(s *situation) { has(s, "", "me"); s.instances["you"] = living("you") }, ""},
		"but not when it is left lying": {
			func(s *situation) {
				free := owned("0", "", 1)
				free.since = now.Add(-time.Second)
				s.leases["0"], s.leases["1"] = free, owned("1", "me", 1)
				s.held["1"] = true
				s.instances["you"] = living("you")
			}, `claim 0 as "me" at 2`},
		"our wish for what we have is removed": {
			func(s *situation) { has(s, "me", "me"); s.nexts["0"] = wish("0", "me", now) }, "remove next/0"},
		"what the dead have left is removed": {
			func(s *situation) {
				has(s, "me", "me")
				s.instances["dead"] = instanceSeen{entry: presenceEntry("dead", presence{}, "v"), since: old, dead: true}
				s.nexts["0"] = wish("0", "dead", old)
			}, "remove next/0; remove presence/dead"},
		"partitions of one that leaves are not counted": {
			func(s *situation) {
				has(s, "", "you")
				i := living("you")
				i.Leaving = true
				s.instances["you"] = i
			}, `claim 0 as "me" at 2`},
		"what still has a pump is not started a second time": {
			func(s *situation) { s.held["0"], s.held["1"] = true, true }, ""},
		"one that leaves takes nothing": {
			func(s *situation) { s.leaving = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &situation{self: "me", partitions: []string{"0", "1"}, held: map[string]bool{}, barred: map[string]bool{},
				floor: map[string]int64{}, force: 35 * time.Second, lease: lease, orphan: 20 * time.Second, released: time.Second}
			s.world = world{now: now, leases: map[string]leaseSeen{}, nexts: map[string]nextSeen{},
				instances: map[string]instanceSeen{"me": living("me")}}
			c.change(s)
			got := planned(s.decide())
			if c.want == "*put" {
				if !strings.HasPrefix(got, "put next/") || strings.Contains(got, "claim") {
					t.Errorf("planned %q", got)
				}
				return
			}
			testkit.Equal(t, got, c.want, "planned")
		})
	}
}

func TestAForeignOwnersSurplusIsTakenWithoutAsking(t *testing.T) {
	now := time.Now()
	s := &situation{self: "me", partitions: []string{"0", "1", "2", "3"}, force: time.Minute, lease: time.Minute, orphan: time.Minute, released: time.Minute}
	s.world = world{now: now, leases: map[string]leaseSeen{}, instances: map[string]instanceSeen{"me": {entry: Entry{Key: "presence/me"}, since: now}}}
	for _, id := range s.partitions {
		s.leases[id] = leaseSeen{Lease: Lease{Partition: id, Owner: "official", Version: "v"}, since: now, foreign: true}
	}
	d := s.decide()
	if len(d.claim) != 1 || len(d.put) != 0 || !d.foreign {
		t.Errorf("planned %q, foreign %v", planned(d), d.foreign)
	}
	s.greedy = true
	if d := s.decide(); len(d.claim) != 2 {
		t.Errorf("greedy: planned %q", planned(d))
	}
}

// P2: what failed here is left to others, if there are any, until they have had their turn.
func TestWhatFailedHereIsLeftToOthers(t *testing.T) {
	const renew, poll = 10 * time.Second, 10 * time.Second
	left := time.Unix(1000, 0)
	for _, c := range []struct {
		name  string
		other instanceSeen
		bar   bar
		after time.Duration
		want  bool
	}{
		{"alone only the back-off counts", instanceSeen{dead: true}, bar{until: left.Add(time.Second), left: left}, time.Second, false},
		{"who leaves takes nothing", instanceSeen{presence: presence{Leaving: true}}, bar{until: left.Add(time.Second), left: left}, time.Second, false},
		{"others have to hear of it", instanceSeen{}, bar{until: left.Add(time.Second), left: left}, 4*poll + renew/50 - 1, true},
		{"but are not waited for longer", instanceSeen{}, bar{until: left.Add(time.Second), left: left}, 4*poll + renew/50, false},
		{"a longer back-off counts", instanceSeen{}, bar{until: left.Add(time.Hour), left: left}, time.Hour - 1, true},
		{"what the hub refused is not left to them", instanceSeen{}, bar{until: left.Add(time.Second)}, time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &instance{id: "me", cfg: Config{Renew: renew, Poll: poll}}
			co := &coordinator{instance: in, presence: newHeartbeat(in), barred: map[string]*bar{"0": &c.bar}}
			s := co.situation(world{now: left.Add(c.after), instances: map[string]instanceSeen{"me": {}, "other": c.other}})
			testkit.Equal(t, s.barred["0"], c.want)
		})
	}
}
