package entries

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1, C5: what becomes of a change whose answer never comes.
func TestNoAnswer(t *testing.T) {
	servers := natstest.Shared(t, 1)
	const key = "records/log/id/lease/0"
	var s, other *Store
	var before meta.Revision
	land := func(ctx context.Context, subject string, encoded []byte, header nats.Header) {
		testkit.Must(t, testkit.Err(s.request(ctx, subject, encoded, header)))
	}
	rival := func(times int) {
		revision := before
		for i := range times {
			revision = set(t, other, key, revision, fmt.Sprint("rival ", i))
		}
		heard(t, s, key, revision)
	}
	tests := []struct {
		name string
		// happens in place of the write, to which nobody answers
		happens func(ctx context.Context, subject string, encoded []byte, header nats.Header)
		want    error
		value   string
	}{
		{"it was stored", land, nil, "mine"},
		{"it was lost", func(context.Context, string, []byte, nats.Header) {}, meta.ErrUncertain, "before"},
		{"another took its place", func(context.Context, string, []byte, nats.Header) { rival(1) }, meta.ErrConflict, "rival 0"},
		{"several others did", func(context.Context, string, []byte, nats.Header) { rival(3) }, meta.ErrConflict, "rival 2"},
		{"it was stored and replaced", func(ctx context.Context, subject string, encoded []byte, header nats.Header) {
			defer unseeing(s, key)()
			land(ctx, subject, encoded, header)
			testkit.Must(t, other.Fresh(ctx, "records/"))
			e := testkit.Value(other.Get(ctx, key))(t)
			set(t, other, key, e.Revision, "rival behind")
		}, meta.ErrUncertain, "rival behind"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := yard(t, servers)
			s, other = open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 0), cfg)
			before = set(t, s, key, 0, "before")
			testkit.Must(t, other.Fresh(t.Context(), ""))
			s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
				if subject != s.layout.subject(s.layout.bucketOf(key), key) {
					return s.request(ctx, subject, encoded, header)
				}
				tt.happens(ctx, subject, encoded, header)
				return 0, errDoubt
			}
			revision, err := s.CompareAndSet(t.Context(), key, before, []byte("mine"))
			testkit.ErrorIs(t, err, tt.want)
			if e, err := s.Get(t.Context(), key); err != nil || string(e.Value) != tt.value || tt.want == nil && e.Revision != revision {
				t.Errorf("read %q at %d, %v, want %q", e.Value, e.Revision, err, tt.value)
			}
		})
	}
}

// heard waits until a store has heard of a revision.
func heard(t *testing.T, s *Store, key string, revision meta.Revision) {
	t.Helper()
	testkit.Eventually(t, "a change to be heard of", func() bool {
		it, _ := s.replica.state(key)
		return it.revision() >= revision
	})
}

// unseeing keeps a store from hearing of anything in the bucket of a key until see is called: of what is replaced by
// then it never hears, unless that was announced.
func unseeing(s *Store, key string) (see func()) {
	b := s.buckets[s.layout.bucketOf(key)]
	b.mu.Lock()
	return b.mu.Unlock
}

// C5: a busy key is tried again, a store without a leader too, and what was never handed over is not
// in doubt.
func TestRefusalsThatPass(t *testing.T) {
	servers := natstest.Shared(t, 1)
	for _, refusal := range []error{errBusy, errNobody} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			cfg := yard(t, servers)
			cfg.patience = 3 * time.Second
			s := open(t, servers.Dial(t, 0), cfg)
			refusals := 5
			s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
				if refusals--; refusals >= 0 {
					return 0, refusal
				}
				return s.request(ctx, subject, encoded, header)
			}
			revision := set(t, s, "hubs/orders", 0, "1")
			refusals = 1 << 30
			testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), "hubs/orders", revision, nil)), meta.ErrUnavailable, "for ever")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("the caller has left"))
			testkit.ErrorIs(t, s.Delete(ctx, "hubs/orders", revision), context.DeadlineExceeded, "a caller who leaves")
			cancel()
			refusals = 0
			testkit.Must(t, s.Delete(t.Context(), "hubs/orders", revision))
		})
	}
}

func TestJudge(t *testing.T) {
	refused := func(code int, text string) string {
		return fmt.Sprintf(`{"error":{"code":400,"err_code":%d,"description":%q},"stream":"s","seq":0}`, code, text)
	}
	tests := []struct {
		name, answer string
		seq          uint64
		want         error
	}{
		{"it is stored", `{"stream":"s","seq":7}`, 7, nil},
		{"the key is busy", refused(10164, "wrong last sequence"), 0, errBusy},
		{"the servers are full", refused(10047, "insufficient storage resources available"), 0, meta.ErrNoSpace},
		{"the account is full", refused(10002, "resource limits exceeded for account"), 0, meta.ErrNoSpace},
		{"too many write", refused(10167, "too many requests"), 0, meta.ErrUnavailable},
		{"the store of the leader is closed", refused(10077, "store is closed"), 0, errDoubt},
		{"anything else", refused(10999, "something new"), 0, errDoubt},
		{"another sequence without its number", refused(10071, "wrong last sequence"), 0, errBusy},
		{"no answer of JetStream's", "+OK", 0, errDoubt},
		{"an answer without a sequence", `{}`, 0, errDoubt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seq, err := judge([]byte(tt.answer))
			testkit.ErrorIs(t, err, tt.want)
			testkit.Equal(t, seq, tt.seq)
		})
	}
	_, err := judge([]byte(refused(10071, "wrong last sequence: 42")))
	if wrong, ok := errors.AsType[*wrongSequence](err); !ok || wrong.at != 42 {
		t.Errorf("got %v", err)
	}
}

func TestExpectation(t *testing.T) {
	at := func(seq uint64, k kind) item { return item{message: message{seq: seq, kind: k, key: "k"}} }
	forgotten := at(5, deletion)
	forgotten.forgotten = true
	tests := []struct {
		name     string
		known    item
		expected meta.Revision
		before   uint64
		possible bool
	}{
		{"nothing is known, and it is to be created", item{}, 0, 0, true},
		{"its deletion is known", at(5, deletion), 0, 5, true},
		{"its deletion was found out, and is no message", forgotten, 0, 0, true},
		{"a value is known, which may be gone by now", at(5, value), 0, 0, true},
		{"the value is the one expected", at(5, value), 10, 5, true},
		{"a later one is known", at(6, value), 10, 0, false},
		{"we are behind", at(4, value), 10, 5, true},
		{"it was deleted since", at(6, deletion), 10, 0, false},
		{"it was found to be deleted", forgotten, 10, 0, false},
		{"a deletion is no expectation", at(5, deletion), 11, 0, false},
		{"whether it is known or not", item{}, 11, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, possible := expectation(tt.known, tt.expected)
			if before != tt.before || possible != tt.possible {
				t.Errorf("got %d, %t", before, possible)
			}
		})
	}
}

// C2: a leader that was frozen refuses changes by what it knows, which others have changed since. That is no
// conflict: nobody has changed the key since it was read.
func TestALeaderThatIsBehindIsAskedAgain(t *testing.T) {
	servers := natstest.Shared(t, 1)
	s := open(t, servers.Dial(t, 0), yard(t, servers))
	first := set(t, s, "hubs/orders", 0, "1")
	second := set(t, s, "hubs/orders", first, "2")
	refusals := 0
	s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
		if refusals--; refusals >= 0 {
			return 0, &wrongSequence{at: uint64(first / 2)}
		}
		return s.request(ctx, subject, encoded, header)
	}
	refusals = 5
	third := set(t, s, "hubs/orders", second, "3")
	refusals = 5
	testkit.Must(t, s.Delete(t.Context(), "hubs/orders", third))
	refusals = 5
	fourth := set(t, s, "hubs/orders", 0, "4")
	refusals = 0
	testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), "hubs/orders", third, nil)), meta.ErrConflict)
	testkit.That(t, fourth > third, "revisions %d and %d", third, fourth)
}

// C2: a change is handed to a leader that was frozen and to the one after it. The first may refuse it by what
// it has, and be heard, while the second makes it.
func TestALeaderThatIsBehindRefusesWhatAnotherMakes(t *testing.T) {
	const key = "records/log/id/a"
	servers := natstest.Shared(t, 1)
	tests := []struct {
		name  string
		busy  bool // the refusal; else it is by what the leader has
		made  bool // by the leader that is not heard
		seen  bool // what was made, before another replaces it
		rival int  // how often another changes it before the next try
		knows bool // the one that is heard: it refuses by the newest that there is
		want  error
	}{
		{"it is there", false, true, false, 0, false, nil},
		{"it is there, and was called busy", true, true, false, 0, false, nil},
		{"it is there, and refused for itself", false, true, false, 0, true, nil},
		{"it was replaced", false, true, false, 1, false, meta.ErrUncertain},
		{"it was replaced, and was called busy", true, true, false, 1, false, meta.ErrUncertain},
		{"it was replaced, and refused for that", false, true, false, 1, true, meta.ErrUncertain},
		{"it was replaced, and seen before", false, true, true, 1, true, nil},
		{"another came before it", false, false, false, 1, false, meta.ErrConflict},
		{"another came before it, and it was called busy", true, false, false, 1, false, meta.ErrConflict},
		{"another came before it, and again behind that", false, false, true, 2, true, meta.ErrConflict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := yard(t, servers)
			s, other := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 0), cfg)
			first := set(t, s, key, 0, "first")
			second := set(t, s, key, first, "second")
			newest, mine := second, meta.Revision(0)
			happen := func(ctx context.Context, subject string, encoded []byte, header nats.Header) {
				if !tt.seen {
					defer unseeing(s, key)()
				}
				if tt.made {
					mine = meta.Revision(2 * testkit.Value(s.request(ctx, subject, encoded, header))(t))
					newest = mine
				}
				testkit.Must(t, other.Fresh(ctx, "records/"))
				if tt.seen {
					heard(t, s, key, newest)
				}
				for range tt.rival {
					newest = set(t, other, key, newest, "rival")
				}
				if tt.seen {
					heard(t, s, key, newest)
				}
			}
			refused := false
			s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
				if refused || subject != s.layout.subject(s.layout.bucketOf(key), key) {
					return s.request(ctx, subject, encoded, header)
				}
				refused = true
				happen(ctx, subject, encoded, header)
				switch {
				case tt.busy:
					return 0, errBusy
				case tt.knows:
					return 0, &wrongSequence{at: uint64(newest / 2)}
				}
				return 0, &wrongSequence{at: uint64(first / 2)}
			}
			revision, err := s.CompareAndSet(t.Context(), key, second, []byte("mine"))
			testkit.ErrorIs(t, err, tt.want)
			if tt.want == nil {
				testkit.Equal(t, revision, mine)
				testkit.Equal(t, testkit.Value(s.Get(t.Context(), key))(t).Revision, newest)
			}
		})
	}
}

// C2: what is known to be there cannot be created, and that leaves no doubt, however often it has changed meanwhile.
func TestWhatIsThereIsNotCreated(t *testing.T) {
	const key = "records/log/id/a"
	servers := natstest.Shared(t, 1)
	for name, changes := range map[string]int{"it is as it was": 0, "it was changed": 1, "it was changed again": 3} {
		t.Run(name, func(t *testing.T) {
			cfg := yard(t, servers)
			s, other := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 0), cfg)
			revision := set(t, s, key, set(t, s, key, 0, "first"), "second")
			testkit.Must(t, other.Fresh(t.Context(), ""))
			s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
				for ; changes > 0 && subject == s.layout.subject(s.layout.bucketOf(key), key); changes-- {
					revision = set(t, other, key, revision, "rival")
				}
				return s.request(ctx, subject, encoded, header)
			}
			testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), key, 0, nil)), meta.ErrConflict)
		})
	}
}

// C1: where many change a key, what replaced the expected value may be announced after what has replaced that: it is
// waited for, so that who lost hears of a conflict and not of a doubt.
func TestAnnouncementsThatAreOvertaken(t *testing.T) {
	const key = "records/log/id/a"
	servers := natstest.Shared(t, 1)
	cfg := yard(t, servers)
	s, other := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 0), cfg)
	before := set(t, s, key, 0, "before")
	b, refused := other.buckets[other.layout.bucketOf(key)], false
	s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
		if !refused && subject == s.layout.subject(b.name, key) {
			refused = true
			see := unseeing(s, key)
			first := message{kind: value, key: key, nonce: 1, before: uint64(before / 2)}.encode()
			seq := testkit.Value(other.request(ctx, subject, first, header))(t)
			testkit.Must(t, other.Fresh(ctx, ""))
			set(t, other, key, meta.Revision(2*seq), "rival")
			see()
			time.AfterFunc(200*time.Millisecond, func() { other.announce(b, seq, first) })
		}
		return s.request(ctx, subject, encoded, header)
	}
	testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), key, before, []byte("mine"))), meta.ErrConflict)
}

// C2: who creates a key meets the deletion of one that he has not heard of, and creates it behind that, unless a leader may have
// been replaced meanwhile: then his own may be what was deleted.
func TestAKeyThatCameAndWent(t *testing.T) {
	const key = "records/log/id/a"
	servers := natstest.Shared(t, 1)
	for name, tt := range map[string]struct {
		takes time.Duration
		want  error
	}{
		"at once": {0, nil}, "after as long as a new leader takes": {soonestLeader + 100*time.Millisecond, meta.ErrUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := yard(t, servers)
			s, other := open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, 0), cfg)
			refused := false
			s.take = func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
				if !refused && subject == s.layout.subject(s.layout.bucketOf(key), key) {
					refused = true
					see := unseeing(s, key)
					unannounced := testkit.Value(other.request(ctx, subject, message{kind: value, key: key, nonce: 1}.encode(), nil))(t)
					testkit.Must(t, other.Fresh(ctx, ""))
					testkit.Must(t, other.Delete(ctx, key, meta.Revision(2*unannounced)))
					see()
					time.Sleep(tt.takes) // as servers do, whose clock is nobody's
				}
				return s.request(ctx, subject, encoded, header)
			}
			testkit.ErrorIs(t, testkit.Err(s.CompareAndSet(t.Context(), key, 0, []byte("mine"))), tt.want)
		})
	}
}
