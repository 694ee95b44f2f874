package pending_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

var published = time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)

func example() pending.Delivery {
	return pending.Delivery{
		Subscription: "abcdefghij234", Source: "topic-zyxwvutsrq765", Partition: 3, Sequence: 1 << 40,
		Published: published, Alive: published, Attempts: 4, LastAttempt: published.Add(time.Minute),
		LastOutcome: retry.Busy, LastStatus: 503, Due: published.Add(6 * time.Minute),
		Form: schema.EventGridForm, Event: []byte(`{"id":"1"}`),
	}
}

// G5: what waits comes back as it was.
func TestStored(t *testing.T) {
	tests := []struct {
		name string
		edit func(p *pending.Delivery)
	}{
		{"one that was tried", func(*pending.Delivery) {}},
		{"nothing at all", func(p *pending.Delivery) { *p = pending.Delivery{Event: []byte{}} }},
		{"one that was never tried", func(p *pending.Delivery) {
			p.Attempts, p.LastAttempt, p.LastOutcome, p.LastStatus, p.Due = 0, time.Time{}, "", 0, time.Time{}
		}},
		{"a dead letter that was redriven", func(p *pending.Delivery) {
			p.Reason, p.Redrives, p.Alive = retry.ReasonAge, 2, published.Add(24*time.Hour)
		}},
		{"one that was passed on", func(p *pending.Delivery) { p.Hops = 3 }},
		{"one whose attempts are kept", func(p *pending.Delivery) { p.History = attempts(2) }},
		{"as many as are kept, of one that was passed on", func(p *pending.Delivery) { p.History, p.Hops = attempts(pending.MaxHistory), 3 }},
		{"one with a trace", func(p *pending.Delivery) { p.Trace = trace }},
		{"one with a trace, attempts and hops", func(p *pending.Delivery) { p.Trace, p.History, p.Hops = trace, attempts(2), 3 }},
		{"a CloudEvent", func(p *pending.Delivery) { p.Form = schema.CloudEventForm }},
		{"an event of a MiB", func(p *pending.Delivery) { p.Event = bytes.Repeat([]byte("x"), 1<<20) }},
		{"an outcome that nobody knows", func(p *pending.Delivery) { p.LastOutcome = "Größe" }},
		{"the largest numbers", func(p *pending.Delivery) {
			p.Partition, p.Sequence, p.Attempts, p.LastStatus, p.Redrives = math.MaxInt, math.MaxInt64, math.MaxInt, math.MaxInt, math.MaxInt
		}},
		{"the smallest numbers", func(p *pending.Delivery) {
			p.Partition, p.Sequence, p.Attempts, p.LastStatus, p.Redrives = math.MinInt, math.MinInt64, math.MinInt, math.MinInt, math.MinInt
		}},
		{"times far apart", func(p *pending.Delivery) {
			p.Published, p.Due = time.Date(-200000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(200000, 1, 1, 0, 0, 0, 0, time.UTC)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := example()
			test.edit(&p)
			wantBack(t, p)
		})
	}
}

var trace = tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1")

func attempts(n int) []pending.Attempt {
	all := make([]pending.Attempt, n)
	for i := range all {
		all[i] = pending.Attempt{
			At: published.Add(time.Duration(i) * time.Minute), Took: time.Duration(i) * time.Millisecond, Outcome: retry.Busy, Status: 503,
			Said: strings.Repeat("x", i), Probe: i%2 == 1,
		}
	}
	return all
}

// V2: the newest attempts are kept, what was said to them in brief.
func TestHistoryIsBounded(t *testing.T) {
	var p pending.Delivery
	for i := range pending.MaxHistory + 5 {
		before := p
		p.Note(pending.Attempt{At: published.Add(time.Duration(i) * time.Second), Took: 1500 * time.Microsecond, Outcome: retry.Busy, Said: "no\n\xff" + strings.Repeat("é", 100)})
		testkit.Equal(t, len(before.History), min(i, pending.MaxHistory), "a copy of before has another history")
	}
	testkit.Equal(t, len(p.History), pending.MaxHistory)
	last := p.History[len(p.History)-1]
	testkit.That(t, p.History[0].At.Equal(published.Add(5*time.Second)) && last.At.Equal(published.Add(14*time.Second)), "kept are %v", p.History)
	testkit.That(t, last.Took == time.Millisecond && strings.HasPrefix(last.Said, "no é") && len(last.Said) < 100, "kept is %+v", last)
	p.Event = []byte("{}")
	wantBack(t, p)
}

// R6, V2: what older releases have written is read as ever, and written the same.
func TestFormsOfEachVersion(t *testing.T) {
	plain, passed, kept, traced := example(), example(), example(), example()
	passed.Hops = 3
	kept.Hops, kept.History = 3, attempts(2)
	traced.Trace = trace
	const begins, texts, ends = "010d1304000a0680808080804008ee0700", "6162636465666768696a323334746f7069632d7a79787776757473727137363542757379", "7b226964223a2231227d"
	for stored, want := range map[string]pending.Delivery{
		"01" + begins + "f6a9a894956700c0a90780f92b" + texts + ends:                                                                              plain,
		"02" + begins + "06f6a9a894956700c0a90780f92b" + texts + ends:                                                                            passed,
		"03" + begins + "06f6a9a894956700c0a90780f92b" + "020000ee07000400c0a90702ee07020401" + texts + "427573794275737978" + ends:              kept,
		"04" + begins + "00f6a9a894956700c0a90780f92b" + "00" + "4bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b70103" + texts + "613d31" + ends: traced,
	} {
		got := testkit.Value(pending.Parse(testkit.Value(hex.DecodeString(stored))(t)))(t)
		testkit.Diff(t, want, got)
		testkit.Equal(t, hex.EncodeToString(want.Append(nil)), stored)
	}
}

type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

func wantBack(t fatal, p pending.Delivery) {
	t.Helper()
	stored := p.Append([]byte("before"))
	if len(stored) > len("before")+p.Bytes() {
		t.Fatalf("%d bytes were written, at most %d announced", len(stored), p.Bytes())
	}
	got, err := pending.Parse(stored[len("before"):])
	if err != nil {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(p, got, cmp.Comparer(sameBytes)); diff != "" {
		t.Fatalf("it came back otherwise (-put +got):\n%s", diff)
	}
}

// sameBytes is what cmp would find too, of a MiB after seconds.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func TestStoredProperty(t *testing.T) {
	text := rapid.String()
	at := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.IntRange(0, 4).Draw(t, "none") == 0 {
			return time.Time{}
		}
		return time.UnixMilli(rapid.Int64().Draw(t, "ms")).UTC()
	})
	rapid.Check(t, func(t *rapid.T) {
		wantBack(t, pending.Delivery{
			Subscription: text.Draw(t, "subscription"), Source: text.Draw(t, "source"),
			Partition: rapid.Int().Draw(t, "partition"), Sequence: rapid.Int64().Draw(t, "sequence"),
			Published: at.Draw(t, "published"), Alive: at.Draw(t, "alive"),
			Attempts: rapid.Int().Draw(t, "attempts"), LastAttempt: at.Draw(t, "last attempt"),
			LastOutcome: retry.Outcome(text.Draw(t, "outcome")), LastStatus: rapid.Int().Draw(t, "status"),
			Due: at.Draw(t, "due"), Reason: text.Draw(t, "reason"), Redrives: rapid.Int().Draw(t, "redrives"),
			History: append([]pending.Attempt(nil), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pending.Attempt {
				return pending.Attempt{
					At: time.UnixMilli(rapid.Int64().Draw(t, "at")).UTC(), Took: time.Duration(rapid.Int32().Draw(t, "took")) * time.Millisecond,
					Outcome: retry.Outcome(text.Draw(t, "ended")), Status: rapid.Int().Draw(t, "answer"), Said: text.Draw(t, "said"), Probe: rapid.Bool().Draw(t, "probe"),
				}
			}), 0, pending.MaxHistory).Draw(t, "history")...),
			Form:  schema.Form(rapid.Byte().Draw(t, "form")),
			Event: append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "event")...),
		})
	})
}

func TestTimesAreCutToTheMillisecond(t *testing.T) {
	p := example()
	zone := time.FixedZone("", 3600)
	p.Published = published.Add(999_999 * time.Nanosecond).In(zone)
	got, err := pending.Parse(p.Append(nil))
	testkit.Must(t, err)
	if got.Published != published {
		t.Errorf("published %v, want %v in UTC", got.Published, published)
	}
}

func TestParseRefuses(t *testing.T) {
	p := example()
	stored := p.Append(nil)
	change := func(at int, b ...byte) []byte {
		return append(append(bytes.Clone(stored[:at]), b...), stored[at+1:]...)
	}
	tests := []struct {
		name   string
		stored []byte
		words  string
	}{
		{"nothing", nil, "0 bytes"},
		{"the form with hops, without any", change(0, 2), "bytes are left"},
		{"a version of tomorrow", change(0, 5), "newer release"},
		{"the form with a trace, without any", change(0, 4), "longer than the whole"},
		{"the form with attempts, without any", change(0, 3), "longer than the whole"},
		{"the last version there can be", change(0, 31), "newer release"},
		{"what has no version", change(0, 0), "no version 0"},
		{"a text", []byte("what?"), "no version 119"},
		{"a number that is cut off", (&pending.Delivery{}).Append(nil)[:9], "cut off"},
		{"an event that is cut off", stored[:len(stored)-1], "are left"},
		{"a byte too many", append(bytes.Clone(stored), 0), "are left"},
		{"a text longer than the whole", change(2, 0xff, 0x7f), "longer than the whole"},
		{"a text longer than anything", change(2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), "longer than the whole"},
		{"a number longer than any", change(2, bytes.Repeat([]byte{0xff}, 11)...), "too large"},
		{"a number written longer than it need be", change(2, stored[2]|0x80, 0), "longer than it need be"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := pending.Parse(test.stored)
			if newer := strings.Contains(test.words, "newer"); errors.Is(err, pending.ErrNewer) != newer {
				t.Errorf("gave %v, want ErrNewer: %t", err, newer)
			}
			if !errors.Is(err, pending.ErrInvalid) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("gave %v, want ErrInvalid that says %q", err, test.words)
			}
			if diff := cmp.Diff(pending.Delivery{}, got); diff != "" {
				t.Errorf("something came with the error: %s", diff)
			}
		})
	}
}

func TestParseSharesTheEvent(t *testing.T) {
	p := example()
	stored := p.Append(nil)
	got, err := pending.Parse(stored)
	testkit.Must(t, err)
	testkit.Equal(t, &got.Event[0], &stored[len(stored)-len(got.Event)], "the event was copied")
	clear(stored)
	if got.Subscription != p.Subscription || got.LastOutcome != p.LastOutcome {
		t.Error("texts share the bytes too, which may change")
	}
	stored = p.Append(nil)
	if n := testing.AllocsPerRun(100, func() { _, _ = pending.Parse(stored) }); n > 1 {
		t.Errorf("reading allocates %.0f times, want once, for the texts", n)
	}
	if n := testing.AllocsPerRun(100, func() { stored = p.Append(stored[:0]) }); n > 0 {
		t.Errorf("writing into room that is there allocates %.0f times", n)
	}
}

// A pending delivery adds little to its event.
func TestDeliveriesAreSmall(t *testing.T) {
	p := example()
	if n := len(p.Append(nil)) - len(p.Event); n > 80 {
		t.Errorf("a pending delivery adds %d bytes to its event", n)
	}
}

// Parse never panics, and what it takes is what Append writes, byte for byte.
func FuzzParse(f *testing.F) {
	p := example()
	f.Add(p.Append(nil))
	empty := pending.Delivery{}
	f.Add(empty.Append(nil))
	p.History = attempts(3)
	f.Add(p.Append(nil))
	p.Reason, p.Redrives, p.Alive = retry.ReasonAttempts, 1, published.Add(time.Hour)
	f.Add(p.Append(nil))
	p.Trace = trace
	f.Add(p.Append(nil))
	f.Add([]byte{1, 1, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := pending.Parse(stored)
		if err != nil {
			return
		}
		if again := got.Append(nil); !bytes.Equal(again, stored) {
			t.Errorf("read from %x, written as %x", stored, again)
		}
	})
}
