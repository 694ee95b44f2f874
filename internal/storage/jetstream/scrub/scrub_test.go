package scrub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// servers are copies of one stream in memory. Each question goes to a server at random.
type servers struct {
	copies map[string][]Message
	mute   string // is never asked
	frozen string // is asked, and does not answer
	batch  int
	random *rand.Rand
	// broken is a message that cannot be read, by server: reads end before it.
	broken map[string]uint64
	// healed is when all have what the first has.
	healed time.Time
}

var names = []string{"n0", "n1", "n2"}

// newServers gives three like copies, with messages of ten sequences each of which the third is gone.
func newServers(count int) *servers {
	s := &servers{copies: map[string][]Message{}, batch: 4, random: rand.New(rand.NewPCG(1, 2)), broken: map[string]uint64{}}
	for _, name := range names {
		for seq := uint64(1); seq <= uint64(count); seq++ {
			if seq%10 != 3 {
				s.copies[name] = append(s.copies[name], message(seq, "as written"))
			}
		}
	}
	return s
}

func message(seq uint64, text string) Message {
	return Message{seq, fmt.Sprintf("y.l.%d", seq%2), fmt.Appendf(nil, "%d %s", seq, text)}
}

// change has a server have something else.
func (s *servers) change(name string, do func(m Message) (Message, bool)) {
	var all []Message
	for _, m := range s.copies[name] {
		if m, kept := do(m); kept {
			all = append(all, m)
		}
	}
	s.copies[name] = all
}

func (s *servers) lose(name string, first, last uint64) {
	s.change(name, func(m Message) (Message, bool) { return m, m.Seq < first || m.Seq > last })
}

func (s *servers) Who(context.Context) (string, error) {
	for {
		if name := names[s.random.IntN(len(names))]; name != s.mute {
			return name, nil
		}
	}
}

func (s *servers) answer(ctx context.Context, wanted Wanted) (Answer, []Message, error) {
	if !s.healed.IsZero() && !time.Now().Before(s.healed) {
		for _, name := range names {
			s.copies[name] = s.copies["n0"]
		}
	}
	name, err := s.Who(ctx)
	if name == s.frozen && wanted(name) {
		time.Sleep(answerTime)
		err = ErrSilent
	}
	return Answer{Server: name}, s.copies[name], errors.Join(err, ctx.Err())
}

func (s *servers) Read(ctx context.Context, from uint64, wanted Wanted) (Answer, error) {
	a, all, err := s.answer(ctx, wanted)
	for _, m := range all {
		if m.Seq < from {
			continue
		}
		if a.More = len(a.Messages) == s.batch || m.Seq == s.broken[a.Server]; a.More {
			break
		}
		a.Messages = append(a.Messages, m)
	}
	return a, err
}

func (s *servers) Get(ctx context.Context, seq uint64, wanted Wanted) (Answer, error) {
	a, all, err := s.answer(ctx, wanted)
	if i := slices.IndexFunc(all, func(m Message) bool { return m.Seq == seq }); i >= 0 && seq != s.broken[a.Server] {
		a.Messages = all[i : i+1]
	}
	return a, err
}

// taken is a check that keeps what it is given.
type taken struct{ messages []Message }

func (c *taken) Intact(data []byte) error {
	if !bytes.HasSuffix(data, []byte("as written")) {
		return errors.New("it is damaged")
	}
	return nil
}

func (c *taken) Take(m Message) (first, next uint64) {
	c.messages = append(c.messages, m)
	return 10 * m.Seq, 10*m.Seq + 2
}

func (s *servers) compare(t testing.TB, last uint64) (Compared, []Message) {
	t.Helper()
	check := &taken{}
	done, err := s.stream(check, last).Compare(t.Context())
	testkit.Must(t, err)
	return done, check.messages
}

func (s *servers) stream(check Check, last uint64) Stream {
	return Stream{Reader: s, Servers: names, Patience: 10 * time.Second, First: 1, Last: last, Check: check}
}

// C1, C2: what a server has otherwise is named, and the check is given what is right.
func TestCopiesThatDiffer(t *testing.T) {
	const count = 100
	for name, tt := range map[string]struct {
		plant func(*servers)
		want  []Difference
	}{
		"all are alike": {func(*servers) {}, nil},
		"one message is missing": {
			func(s *servers) { s.lose("n1", 42, 42) },
			[]Difference{{Server: "n1", First: 42, Last: 42, Count: 1, Missing: true}},
		},
		"several are, at two servers": {
			func(s *servers) { s.lose("n2", 41, 45); s.lose("n0", 50, 50) },
			[]Difference{{Server: "n0", First: 50, Last: 50, Count: 1, Missing: true}, {Server: "n2", First: 41, Last: 45, Count: 4, Missing: true}},
		},
		"the beginning is missing": {
			func(s *servers) { s.lose("n0", 1, 30) },
			[]Difference{{Server: "n0", First: 1, Last: 30, Count: 27, Missing: true}},
		},
		"the end is missing": {
			func(s *servers) { s.lose("n0", 21, count) },
			[]Difference{{Server: "n0", First: 21, Last: 100, Count: 72, Missing: true}},
		},
		"everything is missing": {
			func(s *servers) { s.lose("n1", 1, count) },
			[]Difference{{Server: "n1", First: 1, Last: 100, Count: 90, Missing: true}},
		},
		"one message cannot be read": {
			func(s *servers) { s.broken["n1"] = 42 },
			[]Difference{{Server: "n1", First: 42, Last: 42, Count: 1, Missing: true}},
		},
		"one message is another": {
			func(s *servers) {
				s.change("n2", func(m Message) (Message, bool) {
					if m.Seq == 42 {
						return message(42, "changed"), true
					}
					return m, true
				})
			},
			[]Difference{{Server: "n2", First: 42, Last: 42, Count: 1}},
		},
		"most are damaged, and one is intact": {
			func(s *servers) {
				for _, name := range []string{"n0", "n1"} {
					s.change(name, func(m Message) (Message, bool) {
						if m.Seq == 42 {
							return message(42, "changed"), true
						}
						return m, true
					})
				}
			},
			[]Difference{{Server: "n0", First: 42, Last: 42, Count: 1}, {Server: "n1", First: 42, Last: 42, Count: 1}},
		},
		"one lags for a moment": {
			func(s *servers) { s.lose("n1", 21, count); s.healed = time.Now().Add(3 * time.Second) }, nil,
		},
		"one has removed something first": {
			func(s *servers) { s.lose("n0", 1, 30); s.healed = time.Now().Add(time.Second) }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServers(count)
				tt.plant(s)
				done, took := s.compare(t, count)
				for i := range tt.want {
					d := &tt.want[i]
					d.Subject, d.FirstEvent, d.NextEvent = message(d.First, "").Subject, 10*d.First, 10*d.First+2
				}
				testkit.Deep(t, done, Compared{Differences: tt.want}, "found")
				for _, m := range took {
					testkit.That(t, strings.HasSuffix(string(m.Data), "as written"), "the check took %q", m.Data)
				}
				if s.healed.IsZero() {
					testkit.Equal(t, len(took), 90, "messages that the check took")
				}
			})
		})
	}
}

// C1: a server that lagged for as long as it was looked at, and has everything by the time of judgement, is
// not accused; of one that has caught up but for some messages, only these are named.
func TestALagThatEndsBeforeItIsJudged(t *testing.T) {
	for name, tt := range map[string]struct {
		left func(*servers) // what is lost for good
		want []Difference
	}{
		"all has come": {func(*servers) {}, nil},
		"the first is lost for good": {
			func(s *servers) { s.lose("n1", 21, 21) },
			[]Difference{{Server: "n1", First: 21, Last: 21, Count: 1, Subject: "y.l.1", FirstEvent: 210, NextEvent: 212, Missing: true}},
		},
		"one behind it is lost for good": {
			func(s *servers) { s.lose("n1", 42, 42) },
			[]Difference{{Server: "n1", First: 42, Last: 42, Count: 1, Subject: "y.l.0", Missing: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServers(100)
				s.lose("n1", 21, 100)
				s.lose("n2", 7, 7)
				done, _ := s.compare(t, 100)
				testkit.MustThat(t, len(done.Differences) == 2, "while it lags: %+v", done)
				s.copies["n1"] = s.copies["n0"]
				tt.left(s)
				again := testkit.Value(s.stream(&taken{}, 100).Confirm(t.Context(), done.Differences))(t)
				lost := Difference{Server: "n2", First: 7, Last: 7, Count: 1, Subject: "y.l.1", FirstEvent: 70, NextEvent: 72, Missing: true}
				testkit.Deep(t, again, Compared{Differences: append(tt.want, lost)}, "found")
			})
		})
	}
}

// C1, C7: a server that answers nothing is named, also while it is waited for, the others are compared, and
// the wait does not grow with what there is to read.
func TestASilentServer(t *testing.T) {
	for name, plant := range map[string]func(*servers){
		"it is gone":   func(s *servers) { s.mute = "n1" },
		"it is frozen": func(s *servers) { s.frozen = "n1" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServers(100)
				plant(s)
				s.lose("n2", 42, 42)
				check, waited := &taken{}, map[string]bool{}
				stream := s.stream(check, 100)
				stream.Waiting = func(servers []string) { waited[strings.Join(servers, " ")] = true }
				began := time.Now()
				done := testkit.Value(stream.Compare(t.Context()))(t)
				testkit.Slices(t, done.Silent, []string{"n1"}, "silent")
				testkit.That(t, len(done.Differences) == 1 && done.Differences[0].Server == "n2", "found %+v", done.Differences)
				testkit.Equal(t, len(check.messages), 90, "messages that the check took")
				testkit.Deep(t, waited, map[string]bool{"n1": true}, "who was waited for")
				looked := 4100 * time.Millisecond // at what differs
				testkit.That(t, time.Since(began)-looked <= 10*time.Second+attendPause, "it took %v", time.Since(began))
			})
		})
	}
}

// C1: where all servers are silent that is an error, and nothing is taken for compared.
func TestAllServersAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers(100)
		s.frozen, s.mute = "n1", "n0"
		stream := s.stream(&taken{}, 100)
		stream.Servers = []string{"n1"}
		testkit.ErrorIs(t, testkit.Err(stream.Compare(t.Context())), ErrSilent, "the comparison")
	})
}

// C1: whatever one server has lost, and however much is read at once, exactly that is found.
func TestWhateverOneHasLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServers(60)
			s.batch = rapid.IntRange(1, 70).Draw(rt, "batch")
			s.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			lost := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 60), 0, 20, rapid.ID).Draw(rt, "lost")
			want := 0
			for _, seq := range lost {
				if s.lose("n1", seq, seq); seq%10 != 3 {
					want++
				}
			}
			done, took := s.compare(t, 60)
			count := 0
			for _, d := range done.Differences {
				testkit.That(t, d.Server == "n1" && d.Missing, "found %+v", d)
				count += d.Count
			}
			testkit.Equal(t, count, want, "messages that are missing")
			testkit.Equal(t, len(took), 54, "messages that the check took")
		})
	})
}

// C1: reading keeps to a pace, over all servers, and ends with its context.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pace{Rate: 1000}
		began := time.Now()
		for range 5 {
			testkit.Must(t, p.wait(t.Context(), 2000))
		}
		testkit.Equal(t, time.Since(began), 10*time.Second, "time")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.ErrorIs(t, p.wait(ctx, 2000), context.DeadlineExceeded, "a wait")
	})
}
