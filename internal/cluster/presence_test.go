package cluster

import (
	"testing"
	"time"
)

// C4: who is dead, by what a node has seen and its own clock.
func TestRoster(t *testing.T) {
	a, again, b := Node{"a", "1"}, Node{"a", "2"}, Node{"b", "1"}
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	type found = map[Node]presence
	tests := []struct {
		name string
		run  func(r roster)
		now  float64
		dead []Node
		live []Node
	}{
		{"who changes lives", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.observe(at(14), found{a: {Counter: 2}})
		}, 28.9, nil, []Node{a}},
		{"who does not change is dead in the end", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}, b: {Counter: 1}})
			r.observe(at(14), found{a: {Counter: 1}, b: {Counter: 2}})
		}, 15, []Node{a}, []Node{b}},
		{"but not before", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.observe(at(14), found{a: {Counter: 1}})
		}, 14.9, nil, []Node{a}},
		{"who was dead and changes lives", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.bury(at(15))
			r.observe(at(40), found{a: {Counter: 2}})
		}, 41, nil, []Node{a}},
		{"who takes its entry away is dead at once", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.observe(at(1), found{})
		}, 1, []Node{a}, nil},
		{"who was replaced has its time, whoever has the ID now", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.observe(at(1), found{again: {Counter: 1}})
			r.observe(at(14), found{again: {Counter: 2}})
		}, 14.9, nil, []Node{a, again}},
		{"and no more than that", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.observe(at(14), found{again: {Counter: 1}})
		}, 15, []Node{a}, []Node{again}},
		{"who was never seen lives for as long as anyone", func(r roster) {
			r.alive(at(5), a, 0)
			r.observe(at(6), found{})
		}, 19.9, nil, []Node{a}},
		{"and is dead then", func(r roster) {
			r.alive(at(5), a, 0)
			r.observe(at(6), found{})
		}, 20, []Node{a}, nil},
		{"a claim of a later term is a sign of life", func(r roster) {
			r.observe(at(0), found{a: {Counter: 3}})
			r.bury(at(15))
			r.alive(at(20), a, 4)
			r.observe(at(21), found{a: {Counter: 3}}) // a stale look
		}, 34.9, nil, []Node{a}},
		{"for as long as any other", func(r roster) {
			r.observe(at(0), found{a: {Counter: 3}})
			r.bury(at(15))
			r.alive(at(20), a, 4)
			r.observe(at(21), found{a: {Counter: 4}})
		}, 35, []Node{a}, nil},
		{"one of an earlier term is none", func(r roster) {
			r.observe(at(0), found{a: {Counter: 3}})
			r.bury(at(15))
			r.alive(at(20), a, 3)
		}, 20, []Node{a}, nil},
		{"the dead stay dead while nothing changes", func(r roster) {
			r.observe(at(0), found{a: {Counter: 1}})
			r.bury(at(15))
			r.observe(at(16), found{a: {Counter: 1}})
		}, 16, []Node{a}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := roster{}
			test.run(r)
			r.bury(at(test.now))
			for _, node := range test.dead {
				if r.alive(at(test.now), node, 0) {
					t.Errorf("%s lives", node)
				}
			}
			for _, node := range test.live {
				if !r.alive(at(test.now), node, 0) {
					t.Errorf("%s is dead", node)
				}
			}
		})
	}
}

func TestDeadNodesAreForgotten(t *testing.T) {
	r, now := roster{}, time.Unix(1000, 0)
	gone, stays := Node{"a", "1"}, Node{"b", "1"}
	r.observe(now, map[Node]presence{gone: {Counter: 1}, stays: {Counter: 1}})
	r.observe(now, map[Node]presence{stays: {Counter: 1}})
	r.bury(now.Add(DeadAfter))
	if left := r.forget(now.Add(ForgetAfter - 1)); len(left) > 0 || len(r) != 2 {
		t.Errorf("too early: %v, %d known", left, len(r))
	}
	if left := r.forget(now.Add(ForgetAfter)); len(left) != 1 || left[0] != stays || len(r) != 1 {
		t.Errorf("got %v, %d known; want the entry of %s to be removed, and %s forgotten", left, len(r), stays, gone)
	}
}

// C4: a term is a span of time without a break in which a node may act.
func TestStanding(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	var s standing
	if s.mayAct(at(0)) {
		t.Error("it may act before it has written anything")
	}
	steps := []struct {
		from, to int
		term     uint64
		until    int // may act until then, and no longer
	}{
		{0, 0, 1, 11},
		{3, 4, 1, 14},   // counted from before the write
		{6, 13, 1, 17},  // answered in time
		{9, 18, 4, 20},  // quiet from 17 on
		{40, 60, 5, 51}, // too late to be of use
		{62, 62, 6, 73},
	}
	for i, step := range steps {
		s = s.wrote(uint64(i+1), at(step.from), at(step.to))
		if s.term != step.term {
			t.Errorf("step %d: term %d, want %d", i, s.term, step.term)
		}
		if !s.mayAct(at(step.until-1)) || s.mayAct(at(step.until)) {
			t.Errorf("step %d: it may act until another time than %d", i, step.until)
		}
	}
}

// C4: a machine that stood still with its clock is quiet once the wall clock is right again.
func TestStandingOfAPausedMachine(t *testing.T) {
	now := time.Now()
	s := standing{}.wrote(1, now, now)
	later := now.Add(time.Second)
	if !s.mayAct(later) {
		t.Error("it is quiet after a second")
	}
	s.wall = s.wall.Add(-QuietAfter) // as if the wall clock had been set
	if s.mayAct(later) {
		t.Error("it may act although the wall clock says that too much time has passed")
	}
}
