package logs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// audit gives what is wrong with messages of a stream.
func audit(t *testing.T, e *Engine, stream string, messages []streams.Message) []Damage {
	t.Helper()
	a := testkit.Value(NewAudit(t.Context(), e, stream))(t)
	first, last := a.Bounds()
	for _, m := range messages {
		if m.Seq >= first && m.Seq <= last {
			a.Take(m)
		}
	}
	found, more, err := a.End(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, more, 0, "found beyond those")
	return found
}

// C2: damage of a stream is found, with the partition and the numbers of events.
func TestAuditFindsDamage(t *testing.T) {
	const stream = "h-orders-0"
	of := func(all []streams.Message, subject string, nth int) int {
		return slices.IndexFunc(all, func(m streams.Message) bool {
			if m.Subject == subject {
				nth--
			}
			return nth < 0
		})
	}
	for name, tt := range map[string]struct {
		plant func(all []streams.Message) []streams.Message
		want  func(Damage) bool
		one   bool // nothing else is found
	}{
		"nothing": {plant: func(all []streams.Message) []streams.Message { return all }},
		"a body is flipped": {
			func(all []streams.Message) []streams.Message {
				m := &all[of(all, "1", 7)]
				m.Data = slices.Clone(m.Data)
				m.Data[len(m.Data)-1] ^= 1
				return all
			},
			func(d Damage) bool {
				return d.Partition == 1 && d.First == 7 && d.Next == 8 && strings.Contains(d.Text, "checksum")
			}, true,
		},
		"a header is flipped": {
			func(all []streams.Message) []streams.Message {
				m := &all[of(all, "1", 7)]
				m.Data = slices.Clone(m.Data)
				m.Data[20] ^= 1
				return all
			},
			func(d Damage) bool { return d.Partition == 1 && d.First == 7 && strings.Contains(d.Text, "checksum") }, false,
		},
		"a message is not a frame": {
			func(all []streams.Message) []streams.Message {
				all[of(all, "0", 3)].Data = []byte("something else")
				return all
			},
			func(d Damage) bool { return d.Partition == 0 && d.First == 3 && strings.Contains(d.Text, "no frame") }, false,
		},
		"a frame is missing": {
			func(all []streams.Message) []streams.Message {
				i := of(all, "2", 5)
				return slices.Delete(all, i, i+1)
			},
			func(d Damage) bool { return d.Partition == 2 && d.First <= 5 && d.Next > 5 }, false,
		},
		"the last messages are missing": {
			func(all []streams.Message) []streams.Message { return all[:len(all)-2] },
			func(d Damage) bool { return d.Partition == -1 && strings.Contains(d.Text, "missing at every server") }, true,
		},
		"a mark is flipped": {
			func(all []streams.Message) []streams.Message {
				m := &all[of(all, markSubject, 1)]
				m.Data = slices.Clone(m.Data)
				m.Data[len(m.Data)-1] ^= 1
				return all
			},
			func(d Damage) bool {
				return strings.HasPrefix(d.Text, "mark: ") && strings.Contains(d.Text, "checksum")
			}, true,
		},
		"a mark counts otherwise": {
			func(all []streams.Message) []streams.Message {
				m := &all[of(all, markSubject, 1)]
				frame := testkit.Value(frames.Decode(m.Data))(t)
				mark := testkit.Value(frames.DecodeMark(frame))(t)
				mark.Partitions[1].Next++
				m.Data = frames.AppendMark(nil, frame.Header, mark)
				return all
			},
			func(d Damage) bool {
				return d.Partition == 1 && d.Next == d.First+1 && strings.Contains(d.Text, "mark")
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
				a, b := y.open(t, "a"), y.open(t, "b")
				testkit.Run(t, a.Run)
				for i := range 40 {
					for number := range 3 {
						mustAppend(t, handle(t, []*Engine{a, b}[i%2], orders, number), fmt.Sprint(i))
					}
					time.Sleep(time.Second)
				}
				found := audit(t, a, stream, tt.plant(y.cluster.Messages(stream)))
				if tt.want == nil {
					testkit.Equal(t, len(found), 0, "found %+v", found)
					return
				}
				testkit.That(t, slices.ContainsFunc(found, func(d Damage) bool { return d.Log == "orders" && tt.want(d) || d.Log == "" && tt.want(d) }), "found %+v", found)
				testkit.That(t, !tt.one || len(found) == 1, "found %+v", found)
			})
		})
	}
}

// C2, H4: what retention has removed, from the beginning of a stream and in its midst, is no damage; nor
// is what was removed since it was read.
func TestAuditAndRetention(t *testing.T) {
	thin := func(cfg *Config) { small(cfg); cfg.thinBytes = 4 << 10 }
	inYard(t, model.Faults{}, thin, func(t *testing.T, y *yard) {
		const stream = "h-orders-0"
		shape := eventlog.Shape{Partitions: 3, Retention: eventlog.Retention{Bytes: 16 << 10}}
		a := y.open(t, "a")
		testkit.Run(t, a.Run)
		mustAppend(t, handle(t, a, shape, 0), "old")
		var before []streams.Message
		for i := range 600 {
			mustAppend(t, handle(t, a, shape, 1+i%2), strings.Repeat("x", 200))
			time.Sleep(100 * time.Millisecond)
			if i%100 == 50 {
				testkit.Equal(t, len(audit(t, a, stream, y.cluster.Messages(stream))), 0, "after %d", i)
				before = y.cluster.Messages(stream)
			}
		}
		time.Sleep(3 * time.Minute)
		state := testkit.Value(y.cluster.Node("x").State(t.Context(), stream))(t)
		testkit.That(t, holes(state), "nothing was removed in the midst: %+v", state)
		found := audit(t, a, stream, y.cluster.Messages(stream))
		testkit.Equal(t, len(found), 0, "found %+v", found)
		found = audit(t, y.open(t, "late"), stream, before)
		for _, d := range found {
			testkit.That(t, strings.Contains(d.Text, "missing at every server"), "of what was read before: %+v", d)
		}
	})
}

// C2: a stream that is gone while its log lives is named.
func TestLostStreams(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		mustAppend(t, handle(t, a, orders, 0), "x")
		testkit.Equal(t, len(testkit.Value(a.LostStreams(t.Context()))(t)), 0, "lost")
		testkit.Must(t, y.cluster.Node("x").Delete(t.Context(), "h-orders-0"))
		testkit.Deep(t, testkit.Value(a.LostStreams(t.Context()))(t), map[string]string{"h-orders-0": "orders"}, "lost")
		testkit.Must(t, a.Remove(t.Context(), "orders"))
		testkit.Equal(t, len(testkit.Value(a.LostStreams(t.Context()))(t)), 0, "lost")
	})
}
