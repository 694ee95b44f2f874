package entries

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// stream is what a bucket's stream is, on paper: all that was written, and servers that are each so
// far with it. Of each key a server has the newest message only.
type stream struct {
	written []message // by sequence, from 1
	servers []int     // how much of it each has
	expired map[uint64]bool
	latest  map[string]uint64
}

func newStream(servers int) *stream {
	return &stream{servers: make([]int, servers), expired: map[uint64]bool{}, latest: map[string]uint64{}}
}

func (s *stream) write(m message) message {
	m.seq = uint64(len(s.written)) + 1
	m.before = s.latest[m.key]
	s.written = append(s.written, m)
	s.latest[m.key] = m.seq
	return m
}

// has gives the messages that are there when n were written, by sequence.
func (s *stream) has(n int) []message {
	newest := map[string]message{}
	for _, m := range s.written[:n] {
		newest[m.key] = m
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b message) int { return int(a.seq) - int(b.seq) })
}

// read is a batched direct get from one server.
func (s *stream) read(server int, from uint64, most int) (batch []message, ended bool) {
	there := slices.DeleteFunc(s.has(s.servers[server]), func(m message) bool { return m.seq < from || s.expired[m.seq] })
	return there[:min(most, len(there))], len(there) <= most
}

// state is what entries there are when n messages were written.
func (s *stream) state(n int) map[string]meta.Revision {
	state := map[string]meta.Revision{}
	for _, m := range s.has(n) {
		if m.kind == value {
			state[m.key] = m.revision()
		}
	}
	return state
}

func stateOf(r *replica) map[string]meta.Revision {
	state := map[string]meta.Revision{}
	for _, e := range r.list("") {
		state[e.Key] = e.Revision
	}
	return state
}

// follower is a watch that is read now and then.
type follower struct {
	watcher
	state map[string]meta.Change
}

func (f *follower) read(t *rapid.T) {
	for _, c := range f.take() {
		if before, reported := f.state[c.Key]; reported && c.Revision <= before.Revision {
			t.Fatalf("%s is reported at revision %d after %d", c.Key, c.Revision, before.Revision)
		}
		f.state[c.Key] = c
	}
}

func (f *follower) live() map[string]meta.Revision {
	live := map[string]meta.Revision{}
	for key, c := range f.state {
		if !c.Deleted {
			live[key] = c.Revision
		}
	}
	return live
}

// C2: who wants some keys of a prefix hears of these alone, and pays for no others.
func TestAWatcherThatSelects(t *testing.T) {
	r, now := newReplica(), time.Now()
	put := func(seq uint64, does kind, key string) {
		r.apply("s0", 1, now, message{seq: seq, kind: does, key: key, value: []byte("x")})
	}
	for i, key := range []string{"records/a/g/lease/0", "records/a/g/fact/circuit/f", "records/b/g/checkpoint/0"} {
		put(uint64(i)+1, value, key)
	}
	w := &watcher{prefix: "records/", wants: func(key string) bool { return strings.Contains(key, "/fact/circuit/") },
		ready: make(chan struct{}, 1), pending: map[string]meta.Change{}}
	keys := func(changes []meta.Change) (keys []string) {
		for _, c := range changes {
			keys = append(keys, c.Key)
		}
		return keys
	}
	testkit.Slices(t, keys(r.begin(w)), []string{"records/a/g/fact/circuit/f"}, "at first")
	put(4, value, "records/a/g/lease/0")
	testkit.Equal(t, len(w.ready), 0, "woken by a lease")
	put(5, value, "records/b/g/fact/circuit/f")
	put(6, deletion, "records/a/g/fact/circuit/f")
	testkit.Equal(t, len(w.ready), 1, "woken by circuits")
	testkit.Slices(t, keys(w.take()), []string{"records/a/g/fact/circuit/f", "records/b/g/fact/circuit/f"}, "later")
}

// C2: whatever order announcements come in, whichever are lost or come twice, whichever server
// answers and however little: no read is older than what the bucket says is complete, watchers are
// told each key's changes in order, and in the end all is as the stream has it.
func TestEveryWayToLearnLeadsToOneState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r := newStream(3), newReplica()
		b := newBucket("s0", r)
		f := &follower{watcher: watcher{ready: make(chan struct{}, 1), pending: map[string]meta.Change{}}, state: map[string]meta.Change{}}
		r.begin(&f.watcher)
		var flying []message // announced, not received
		write := func(own bool) {
			key := fmt.Sprintf("k/%d", rapid.IntRange(0, 4).Draw(t, "key"))
			m := message{kind: value, key: key, nonce: uint64(len(s.written) + 1)}
			if before := s.latest[key]; before > 0 && s.written[before-1].kind == value && rapid.Bool().Draw(t, "delete") {
				m.kind = deletion
			}
			m = s.write(m)
			if own {
				b.acknowledged(m)
				return
			}
			flying = append(flying, m)
		}
		read := func(most int) (ended bool) {
			server := rapid.IntRange(0, len(s.servers)-1).Draw(t, "server")
			from := b.position() + 1
			batch, ended := s.read(server, from, most)
			b.fetched(from, batch, ended)
			return ended
		}
		settle := func() {
			if b.unsettled() {
				m := s.write(message{kind: barrier})
				b.receive(m)
				b.settle(m.seq)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write":     func(*rapid.T) { write(false) },
			"write own": func(*rapid.T) { write(true) },
			"replicate": func(t *rapid.T) {
				i := rapid.IntRange(0, len(s.servers)-1).Draw(t, "server")
				s.servers[i] = rapid.IntRange(s.servers[i], len(s.written)).Draw(t, "to")
			},
			"announce": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
				if m := flying[i]; rapid.Bool().Draw(t, "whole") {
					b.receive(m)
				} else {
					b.learn(m.seq)
				}
				if !rapid.Bool().Draw(t, "twice") {
					flying = slices.Delete(flying, i, i+1)
				}
			},
			"lose": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip()
				}
				flying = flying[1:]
			},
			"read":   func(t *rapid.T) { read(rapid.IntRange(1, 3).Draw(t, "most")) },
			"settle": func(*rapid.T) { settle() },
			"watch":  func(t *rapid.T) { f.read(t) },
			"": func(t *rapid.T) {
				if b.line.complete > uint64(len(s.written)) {
					t.Fatalf("complete up to %d of %d", b.line.complete, len(s.written))
				}
				for _, m := range s.has(int(b.line.complete)) {
					it, ok := r.state(m.key)
					if m.kind != barrier && (!ok || it.seq < m.seq) {
						t.Fatalf("complete up to %d, but %s is at %d and not at %d", b.line.complete, m.key, it.seq, m.seq)
					}
				}
			},
		})
		// All servers come to have all, and the feeder goes on until nothing is missing.
		for tries := 0; b.line.complete < uint64(len(s.written)); tries++ {
			for i := range s.servers {
				s.servers[i] = len(s.written)
			}
			if read(1000) {
				settle()
			}
			if tries > 100 {
				t.Fatalf("complete is only %d of %d: %+v", b.line.complete, len(s.written), b.line)
			}
		}
		f.read(t)
		want := s.state(len(s.written))
		if got := stateOf(r); !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if got := f.live(); !maps.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
	})
}

// C1: a node that has heard nothing until the stream has forgotten deletions learns of them by
// reading everything anew, and tells its watchers.
func TestForgottenDeletionsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r := newStream(1), newReplica()
		b := newBucket("s0", r)
		catchUp := func(most int) {
			s.servers[0] = len(s.written)
			for tries := 0; b.line.doubt || b.line.reached < uint64(len(s.written)) || b.reading; tries++ {
				from := b.position() + 1
				batch, ended := s.read(0, from, most)
				b.fetched(from, batch, ended)
				if ended && b.unsettled() {
					m := s.write(message{kind: barrier})
					s.servers[0] = len(s.written)
					b.settle(m.seq)
				}
				if tries > 1000 {
					t.Fatalf("it never ends: %+v", b.line)
				}
			}
		}
		change := func(n int) {
			for range n {
				key := fmt.Sprintf("k/%d", rapid.IntRange(0, 5).Draw(t, "key"))
				m := message{kind: value, key: key}
				if before := s.latest[key]; before > 0 && s.written[before-1].kind == value && rapid.Bool().Draw(t, "delete") {
					m.kind = deletion
				}
				s.write(m)
			}
		}
		s.write(message{kind: value, key: "k/first"})
		change(10)
		catchUp(1000)
		f := &follower{watcher: watcher{ready: make(chan struct{}, 1), pending: map[string]meta.Change{}}, state: map[string]meta.Change{}}
		for _, c := range r.begin(&f.watcher) {
			f.state[c.Key] = c
		}
		change(rapid.IntRange(0, 20).Draw(t, "changes"))
		s.write(message{kind: value, key: "k/last"})
		for _, m := range s.written {
			if m.kind == deletion {
				s.expired[m.seq] = true
			}
		}
		if !b.rereadAfter(0) {
			t.Fatal("it does not begin anew")
		}
		catchUp(rapid.IntRange(1, 4).Draw(t, "most"))
		f.read(t)
		want := s.state(len(s.written))
		if got := stateOf(r); !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if got := f.live(); !maps.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
	})
}

// The index is as a sorted list.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		model := map[string]bool{}
		for range rapid.IntRange(0, 4000).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 3000).Draw(t, "key"))
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				x.remove(key)
				delete(model, key)
			} else {
				x.add(key)
				model[key] = true
			}
		}
		start := fmt.Sprint(rapid.IntRange(0, 3000).Draw(t, "start"))
		var got, want []string
		x.from(start, func(key string) bool {
			got = append(got, key)
			return true
		})
		for _, key := range slices.Sorted(maps.Keys(model)) {
			if key >= start {
				want = append(want, key)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("from %s: got %d keys, want %d", start, len(got), len(want))
		}
		for _, run := range x.runs {
			if len(run) == 0 || len(run) > maxRun {
				t.Fatalf("a run of %d", len(run))
			}
		}
	})
}
