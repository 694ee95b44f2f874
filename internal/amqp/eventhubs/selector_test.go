package eventhubs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4: every form in which clients say where to begin.
func TestSelectorsInEveryForm(t *testing.T) {
	ms := func(n int64) eventlog.Position { return eventlog.Since(time.UnixMilli(n)) }
	tests := []struct {
		what, text string
		want       eventlog.Position
	}{
		{"the earliest", "amqp.annotation.x-opt-offset > '-1'", eventlog.Earliest()},
		{"the earliest, as .NET writes it", "amqp.annotation.x-opt-offset > -1", eventlog.Earliest()},
		{"the earliest, inclusive", "amqp.annotation.x-opt-offset >= '-1'", eventlog.Earliest()},
		{"the latest", "amqp.annotation.x-opt-offset > '@latest'", eventlog.Latest()},
		{"the latest, as .NET writes it", "amqp.annotation.x-opt-offset > @latest", eventlog.Latest()},
		{"the latest, inclusive", "amqp.annotation.x-opt-offset >= '@latest'", eventlog.Latest()},
		{"after an offset", "amqp.annotation.x-opt-offset > '41'", eventlog.At(42)},
		{"at an offset", "amqp.annotation.x-opt-offset >= '41'", eventlog.At(41)},
		{"at an offset without quotes", "amqp.annotation.x-opt-offset >= 41", eventlog.At(41)},
		{"after a number", "amqp.annotation.x-opt-sequence-number > '41'", eventlog.At(42)},
		{"at a number", "amqp.annotation.x-opt-sequence-number >= '41'", eventlog.At(41)},
		{"after number zero", "amqp.annotation.x-opt-sequence-number > '0'", eventlog.At(1)},
		{"at number zero", "amqp.annotation.x-opt-sequence-number >= 0", eventlog.At(0)},
		{"after number -1", "amqp.annotation.x-opt-sequence-number > '-1'", eventlog.Earliest()},
		{"at number -1", "amqp.annotation.x-opt-sequence-number >= '-1'", eventlog.Earliest()},
		{"the largest number", "amqp.annotation.x-opt-sequence-number > '9223372036854775807'", eventlog.At(9223372036854775807)},
		{"more than any number", "amqp.annotation.x-opt-offset > '99999999999999999999'", eventlog.At(9223372036854775807)},
		{"after a time", "amqp.annotation.x-opt-enqueued-time > '1700000000000'", ms(1700000000001)},
		{"at a time", "amqp.annotation.x-opt-enqueued-time >= '1700000000000'", ms(1700000000000)},
		{"after a time without quotes", "amqp.annotation.x-opt-enqueued-time > 1700000000000", ms(1700000000001)},
		{"the time of an empty partition", "amqp.annotation.x-opt-enqueued-time > '-62135596800000'", ms(-62135596799999)},
		{"the legacy name", "amqp.annotation.x-opt-enqueuedtimeutc > 1700000000000", ms(1700000000001)},
		{"no blanks", "amqp.annotation.x-opt-offset>='41'", eventlog.At(41)},
		{"many blanks", "  amqp.annotation.x-opt-offset   >   '41'  ", eventlog.At(42)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			s := testkit.Value(parseSelector(tt.text))(t)
			testkit.Equal(t, s.at.String(), tt.want.String(), "%q begins at %v, want %v", tt.text, s.at, tt.want)
		})
	}
}

func TestSelectorsThatCannotBeUnderstood(t *testing.T) {
	for _, text := range []string{
		"", "nonsense", "amqp.annotation.x-opt-offset", "amqp.annotation.x-opt-offset >", "amqp.annotation.x-opt-offset > ''",
		"amqp.annotation.x-opt-offset < '1'", "amqp.annotation.x-opt-offset = '1'", "x-opt-offset > '1'",
		"amqp.annotation.x-opt-offset > '2:-1:-1'", "amqp.annotation.x-opt-offset > 'abc'",
		"amqp.annotation.x-opt-sequence-number > '@latest'", "amqp.annotation.x-opt-partition-key > 'a'",
		"amqp.annotation.x-opt-enqueued-time > 'yesterday'", "amqp.annotation.x-opt-offset > '1' AND 1=1",
	} {
		if s, err := parseSelector(text); !errors.Is(err, errSelector) {
			t.Errorf("%q was understood as %v, %v", text, s.at, err)
		}
	}
	_, err := parseSelector("amqp.annotation.x-opt-offset > '" + strings.Repeat("9\xff", 10000) + "'")
	if text := err.Error(); len(text) > 1000 || strings.Contains(text, "\xff") {
		t.Errorf("a stranger's text is repeated to him: %.100q…", text)
	}
}

// Each client puts the same filter under another descriptor; one puts it under none.
func TestTheFilterIsFoundWhateverItsDescriptor(t *testing.T) {
	const text = "amqp.annotation.x-opt-offset > '6'"
	for what, filters := range map[string]wire.Map{
		"a number":                         {{Key: wire.Symbol(selectorFilter), Value: wire.Described{Descriptor: uint64(0x0000468C00000004), Value: text}}},
		"a name":                           {{Key: wire.Symbol(selectorFilter), Value: wire.Described{Descriptor: wire.Symbol(selectorFilter), Value: text}}},
		"another number":                   {{Key: wire.Symbol(selectorFilter), Value: wire.Described{Descriptor: uint64(0x137000000A), Value: text}}},
		"none":                             {{Key: wire.Symbol(selectorFilter), Value: text}},
		"the key as text":                  {{Key: selectorFilter, Value: text}},
		"beside others":                    {{Key: wire.Symbol("else"), Value: int32(1)}, {Key: wire.Symbol(selectorFilter), Value: wire.Described{Descriptor: uint64(1), Value: text}}},
		"under a key of its own, named":    {{Key: wire.Symbol("selector"), Value: wire.Described{Descriptor: wire.Symbol(selectorFilter), Value: text}}},
		"under a key of its own, numbered": {{Key: wire.Symbol("selector"), Value: wire.Described{Descriptor: uint64(0x468C00000004), Value: text}}},
		"the value binary":                 {{Key: wire.Symbol(selectorFilter), Value: wire.Described{Descriptor: uint64(1), Value: []byte(text)}}},
	} {
		s := testkit.Value(selectorOf(filters))(t)
		testkit.Equal(t, s.at.String(), eventlog.At(7).String(), "descriptor is %s: begins at %v", what, s.at)
	}
	if s, err := selectorOf(nil); err != nil || !s.at.IsEarliest() {
		t.Errorf("without a filter it begins at %v, %v", s.at, err)
	}
	if _, err := selectorOf(wire.Map{{Key: wire.Symbol(selectorFilter), Value: int32(1)}}); !errors.Is(err, errSelector) {
		t.Errorf("a number for a filter is %v", err)
	}
}

// The text names what was asked for, not the position that it came to.
func TestErrorTextsOfPositionsPastTheEnd(t *testing.T) {
	tests := []struct{ text, want string }{
		{"amqp.annotation.x-opt-sequence-number > '488'", "The supplied sequence number '488' is invalid. The last sequence number in the system is '482'"},
		{"amqp.annotation.x-opt-sequence-number >= 488", "The supplied sequence number '488' is invalid. The last sequence number in the system is '482'"},
		{"amqp.annotation.x-opt-offset > '99999999999999999999'", "The supplied offset '99999999999999999999' is invalid. The last offset in the system is '482'"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			s := testkit.Value(parseSelector(tt.text))(t)
			testkit.Equal(t, s.textPastEnd(&eventlog.PositionError{Asked: 489, Last: 482}), tt.want, "it is refused with")
		})
	}
}

func FuzzSelector(f *testing.F) {
	for _, seed := range []string{"amqp.annotation.x-opt-offset > '-1'", "amqp.annotation.x-opt-enqueued-time >= 5", ">", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSelector(text)
		if err != nil && !errors.Is(err, errSelector) {
			t.Fatalf("%q: %v", text, err)
		}
		if n, numbered := s.at.Sequence(); numbered && n < 0 {
			t.Fatalf("%q begins at %d", text, n)
		}
	})
}
