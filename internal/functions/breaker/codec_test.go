package breaker

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTheZeroRecordIsStoredAsClosed(t *testing.T) {
	b := EncodeRecord(Record{})
	testkit.Equal(t, string(b), `{"state":"closed","term":0}`, "%s", b)
	if r, err := DecodeRecord(b); err != nil || !r.Closed() {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestARecordThatCannotBeReadIsNoClosedCircuit(t *testing.T) { // F5
	for name, text := range map[string]string{
		"nothing":               ``,
		"no JSON":               `closed`,
		"cut off":               `{"state":"closed","te`,
		"two of them":           `{"state":"closed"}{"state":"closed"}`,
		"no state":              `{}`,
		"null":                  `null`,
		"an unknown state":      `{"state":"ajar"}`,
		"a state in capitals":   `{"state":"Closed"}`,
		"a negative term":       `{"state":"closed","term":-1}`,
		"a term beyond numbers": `{"state":"closed","term":9223372036854775807}`,
		"negative trips":        `{"state":"open","trips":-1}`,
		"negative failures":     `{"state":"open","failures":-1}`,
		"a time that is none":   `{"state":"open","since":"yesterday"}`,
		"a long incident":       `{"state":"open","incident":"` + strings.Repeat("x", 201) + `"}`,
	} {
		if r, err := DecodeRecord([]byte(text)); !errors.Is(err, ErrUnreadable) || r.State != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if r, err := DecodeRecord([]byte(`{"state":"held","term":3,"later":{"more":1}}`)); err != nil || r.State != Held {
		t.Errorf("what a later version adds is no trouble: %+v, %v", r, err)
	}
}

func TestTalliesThatMakeNoSense(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"term":-1}`, `{"total":-1}`, `{"buckets":[{"age":-1,"n":1}]}`, `{"buckets":[{"age":1,"n":-1}]}`} {
		if got, err := DecodeTally([]byte(text)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestRecordsFitWhateverTheSamples(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                 strings.Repeat("no such customer ", 1000),
		"six bytes each":        strings.Repeat("\x01", 4000),
		"of HTML":               strings.Repeat("<&>", 2000),
		"no valid text":         strings.Repeat("\xff\xfe", 4000),
		"cut in a poison event": strings.Repeat("ä", 4000),
		"one too many":          strings.Repeat("x", maxErrorBytes-1) + "ää",
	} {
		r := Record{State: Open, Incident: "i", By: text, Reason: text}
		for range 20 {
			r.Samples = append(r.Samples, Sample{At: epoch, Partition: text, Error: text})
		}
		b := EncodeRecord(r)
		back, err := DecodeRecord(b)
		if err != nil || len(b) > maxRecordBytes || len(back.Samples) == 0 {
			t.Errorf("%s: %d bytes, %d samples, %v", name, len(b), len(back.Samples), err)
		}
		for _, s := range back.Samples {
			if len(s.Error) > maxErrorBytes || len(s.Error) == 0 || !utf8.ValidString(s.Error) {
				t.Errorf("%s: a sample of %d bytes: %q", name, len(s.Error), s.Error)
			}
		}
	}
}

func TestTalliesFit(t *testing.T) {
	long := Tally{Term: math.MaxInt32, Total: math.MaxInt64}
	for range 1000 {
		long.Buckets = append(long.Buckets, Bucket{Age: math.MaxInt64, Count: 1_000_000})
	}
	b := EncodeTally(long)
	back, err := DecodeTally(b)
	if err != nil || len(b) > maxTallyBytes || back.Count() != long.Count() || back.Count() != 1_000_000_000 {
		t.Errorf("%d bytes, %d of %d, %v", len(b), back.Count(), long.Count(), err)
	}
	testkit.That(t, len(long.Buckets) == 1000 && long.Buckets[0].Count == 1_000_000, "encoding has changed the tally")
	// What a window gives is never joined: 128 failures of an hour keep their times.
	var w Window
	for i := range maxBuckets {
		w.Add(1, 1, at(time.Duration(i)*28*time.Second))
	}
	if back, err := DecodeTally(EncodeTally(w.Tally(time.Hour, at(time.Hour-time.Second)))); err != nil || len(back.Buckets) != maxBuckets {
		t.Errorf("%d buckets, %v", len(back.Buckets), err)
	}
}

func TestTimesThatNoCalendarHasAreLeftOut(t *testing.T) {
	never := time.Date(123456, 1, 1, 0, 0, 0, 0, time.UTC)
	r, err := DecodeRecord(EncodeRecord(Record{State: Open, Since: never, Opened: never, Samples: []Sample{{At: never, Error: "no"}}}))
	testkit.That(t, err == nil && r.Since.IsZero() && r.Samples[0].At.IsZero(), "%+v, %v", r, err)
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"state":"half-open","term":7,"incident":"x","since":"2026-03-01T12:00:00Z","prober":"a","trips":3,"samples":[{"error":"\u0001"}]}`))
	f.Add([]byte(`{"state":"open","policy":{"failures":-1,"within":30000000000},"untried":true}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(b)
		if err != nil {
			return
		}
		once := EncodeRecord(r)
		back, err := DecodeRecord(once)
		if err != nil || string(EncodeRecord(back)) != string(once) {
			t.Fatalf("%s came back as %s, %v", once, EncodeRecord(back), err)
		}
		for _, next := range successors(r) {
			testkit.MustEqual(t, next.Term, r.Term+1, "%+v after %+v", next, r)
		}
	})
}

// successors are what may become of a record in one step.
func successors(r Record) (all []Record) {
	add := func(next Record, changed bool) {
		if changed {
			all = append(all, next)
		}
	}
	add(Decide(Policy{Probe: time.Second}, View{Record: r, Failures: 1000, Ready: true, Unchanged: 24 * time.Hour, Now: epoch}))
	add(Hold(r, "i", "ann", "", epoch))
	add(Resume(r, "ann", "", epoch))
	add(Probed(r, true, "a", "", epoch), r.State == HalfOpen)
	add(Returned(r, "a", epoch), r.State == HalfOpen)
	return all
}

func FuzzDecodeTally(f *testing.F) {
	f.Add([]byte(`{"term":3,"buckets":[{"age":1000000,"n":4}],"total":9}`))
	f.Add([]byte(fmt.Sprintf(`{"term":0,"buckets":[{"age":%d,"n":%d},{"n":%[2]d}]}`, math.MaxInt64, math.MaxInt64)))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeTally(b)
		if err != nil {
			return
		}
		now := epoch
		n := Sum(got.Term, time.Hour, got, []Seen{{got, now.Add(-time.Minute)}, {got, now}}, now)
		if n < 0 || n > maxCount || len(EncodeTally(got)) > maxTallyBytes {
			t.Fatalf("%s sums to %d in %d bytes", b, n, len(EncodeTally(got)))
		}
	})
}
