package poison

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/testkit"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 123e6, time.UTC)

// poisonEvent is one with everything.
func poisonEvent() Record {
	return Record{
		ID: "resize/images/3/1841", Function: "resize", Hub: "images", Group: "resizer", Partition: "3", Sequence: 1841, Offset: "774411",
		Enqueued: noon.Add(-time.Minute), Reason: "no such image", Stack: "goroutine 1", Attempts: 5, Deaths: 1, At: noon, Instance: "host-1",
		Event: event.Event{
			Key: "customer-42", Body: []byte(`{"a":1}`), ContentType: "application/json", MessageID: "m", CorrelationID: uint64(7), Subject: "image",
			Properties: map[string]any{"size": int32(7), "poison-level": "high"},
			System:     map[string]any{"reply-to": "here", "x-opt-mine": int64(1)},
			Partition:  "3", Sequence: 1841, Offset: "774411", Enqueued: noon.Add(-time.Minute),
		},
	}
}

// through is what a reader gets of a poison event that was written.
func through(t interface {
	Helper()
	Fatal(...any)
}, l Record) event.Event {
	t.Helper()
	stored, err := message.Append(nil, l.Message())
	if err != nil {
		t.Fatal(err)
	}
	ev, err := message.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = "0", 5, "55", noon
	return ev
}

func mustRead(t *testing.T, ev event.Event) Record {
	t.Helper()
	l, ok := Read(ev)
	if !ok {
		t.Fatalf("%+v is no poison event", ev)
	}
	return l
}

// F4: reason and attempts are there, and the original is whole again.
func TestAPoisonEventComesBackAsItWas(t *testing.T) {
	bare := Record{ID: "f/h/0/0", Function: "f", Hub: "h", Partition: "0", At: noon, Event: event.Event{Body: []byte{}, Partition: "0"}}
	redriven := poisonEvent()
	redriven.Redriven = 2
	redriven.Event.Properties[PropertyRedriven], redriven.Event.Properties[PropertyRedriveFor] = int32(2), "resize"
	value := poisonEvent()
	value.Event.Body, value.Event.Value = nil, []any{"a", int32(1)}
	slashes := poisonEvent()
	slashes.ID, slashes.Hub = "resize/team/images/3/1841", "team/images"
	for name, want := range map[string]Record{"a hub with slashes": slashes, "everything": poisonEvent(), "next to nothing": bare, "redriven before": redriven, "a body that is a value": value} {
		t.Run(name, func(t *testing.T) {
			got := mustRead(t, through(t, want))
			testkit.Diff(t, want, got)
		})
	}
}

func TestAnyReaderSeesWhatHappened(t *testing.T) {
	l := poisonEvent()
	ev := through(t, l)
	want := map[string]any{
		PropertyID: l.ID, PropertyFunction: "resize", PropertyHub: "images", PropertyGroup: "resizer", PropertyPartition: "3",
		PropertySequence: int64(1841), PropertyOffset: "774411", PropertyEnqueued: noon.Add(-time.Minute), PropertyKey: "customer-42",
		PropertyReason: "no such image", PropertyStack: "goroutine 1", PropertyAttempts: int32(5), PropertyDeaths: int32(1),
		PropertyAt: noon, PropertyInstance: "host-1", "size": int32(7), "poison-level": "high",
	}
	testkit.Diff(t, want, ev.Properties)
	testkit.Slices(t, []any{ev.Key, string(ev.Body), ev.Subject}, []any{"", `{"a":1}`, "image"})
}

// F4: the original that the host holds is used by the next call too.
func TestTheOriginalIsNotTouched(t *testing.T) {
	l := poisonEvent()
	before := maps.Clone(l.Event.Properties)
	l.Message()
	l.Redrive()
	testkit.Diff(t, before, l.Event.Properties)
}

// F4: a function that reads a poison hub may fail on what is in it.
func TestAPoisonEventAboutAPoisonEventKeepsBoth(t *testing.T) {
	first := poisonEvent()
	read := through(t, first)
	second := Record{
		ID: ID("mend", "resize-poison", "0", 5), Function: "mend", Hub: "resize-poison", Partition: "0", Sequence: 5, Offset: "55", Enqueued: noon,
		Reason: "cannot mend", Attempts: 1, At: noon.Add(time.Hour), Event: read,
	}
	third := second
	third.ID, third.Function, third.Event = ID("weep", "resize-poison", "0", 5), "weep", second.Message()
	third.Event.Partition, third.Event.Sequence, third.Event.Offset, third.Event.Enqueued = "0", 5, "55", noon

	got := mustRead(t, through(t, second))
	testkit.Diff(t, second, got)
	testkit.Diff(t, first, mustRead(t, got.Event))
	deep := mustRead(t, through(t, third))
	deep = mustRead(t, mustRead(t, deep.Event).Event)
	testkit.Diff(t, first, deep)
}

func TestWhatIsNoPoisonEvent(t *testing.T) {
	for name, id := range map[string]any{
		"no id": nil, "an id that is no text": 7, "an empty id": "", "too few parts": "f/h/0", "a hub of slashes": "f/h//0/1",
		"no function": "/h/0/1", "no hub": "f//0/1", "no partition": "f/h//1", "no number": "f/h/0/x", "a negative number": "f/h/0/-1",
		"a number in another form": "f/h/0/01", "a number too large": "f/h/0/9223372036854775808",
	} {
		t.Run(name, func(t *testing.T) {
			if l, ok := Read(event.Event{Properties: map[string]any{PropertyID: id, PropertyReason: "r"}}); ok {
				t.Errorf("read %+v", l)
			}
		})
	}
	if _, ok := Read(event.Text("hello")); ok {
		t.Error("an event without properties is a poison event")
	}
}

func TestPropertiesOfTheWrongTypeAreNotBelieved(t *testing.T) {
	l, ok := Read(event.Event{Enqueued: noon, Properties: map[string]any{
		PropertyID: "f/h/0/1", PropertyReason: 5, PropertyAttempts: "many", PropertyDeaths: int64(-3), PropertyAt: "noon", PropertyRedriven: int64(1 << 40),
	}})
	want := Record{ID: "f/h/0/1", Function: "f", Hub: "h", Partition: "0", Sequence: 1, At: noon, Redriven: 1<<31 - 1}
	want.Event = event.Event{Partition: "0", Sequence: 1, Properties: map[string]any{PropertyRedriven: int64(1 << 40)}}
	if diff := cmp.Diff(want, l); !ok || diff != "" {
		t.Error(ok, diff)
	}
	testkit.Equal[any](t, l.Redrive().Properties[PropertyRedriven], int32(1<<31-1), "it counts on to")
	testkit.Equal[any](t, (Record{Event: event.Text("x")}).Redrive().Properties[PropertyRedriven], int32(1), "of an event without properties")
	unnamed := Record{Function: "f", Hub: "h", Partition: "0", Sequence: 3, Event: event.Text("x")}
	testkit.Equal[any](t, unnamed.Message().Properties[PropertyID], "f/h/0/3", "the id")
}

// F4: redriven events say how often, for the loop guard, and for whom.
func TestRedrive(t *testing.T) {
	l := poisonEvent()
	for round := 1; round <= 3; round++ {
		ev := l.Redrive()
		if For(ev) != "resize" || ev.Properties[PropertyRedriven] != int32(round) || ev.Key != "customer-42" || string(ev.Body) != `{"a":1}` {
			t.Fatalf("round %d: %+v", round, ev)
		}
		if _, isPoisonEvent := Read(ev); isPoisonEvent {
			t.Fatal("it is still a poison event")
		}
		l.Event, l.Redriven = ev, 0 // whoever makes the next poison event need not know
		if l = mustRead(t, through(t, l)); l.Redriven != round {
			t.Fatalf("round %d: read %d", round, l.Redriven)
		}
	}
	if For(event.Text("x")) != "" || For(event.Event{Properties: map[string]any{PropertyRedriveFor: 7}}) != "" {
		t.Error("an event is for a function that was not redriven")
	}
}

// F4: whatever is large, the poison event fits into a hub.
func TestAPoisonEventFits(t *testing.T) {
	for _, test := range []struct {
		name                 string
		body, reason, stack  int
		wantReason, wantSack int
		group                string
	}{
		{"a small one has all", 100, 100, 100, 100, 100, "resizer"},
		{"reason and stack are cut", 100, 1 << 20, 1 << 20, maxReasonBytes, maxStackBytes, "resizer"},
		{"a large one has no stack", maxBytes - 10_000, 1 << 20, 1 << 20, maxReasonBytes, 0, "resizer"},
		{"a larger one a short reason", maxBytes - 2000, 1 << 20, 1 << 20, shortReason, 0, "resizer"},
		{"one that fills the hub its id and key", fullBytes - 300, 1 << 20, 1 << 20, 0, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := poisonEvent()
			l.Event.Body = bytes.Repeat([]byte("x"), test.body)
			l.Reason, l.Stack = strings.Repeat("r", test.reason), strings.Repeat("s", test.stack)
			if n := encodedBytes(l.Message()); n > 1<<20 || test.body < maxBytes-1000 && n > maxBytes {
				t.Errorf("it has %d bytes", n)
			}
			got := mustRead(t, through(t, l))
			if len(got.Reason) != test.wantReason || len(got.Stack) != test.wantSack || got.Group != test.group {
				t.Errorf("reason %d, stack %d, group %q", len(got.Reason), len(got.Stack), got.Group)
			}
			if !bytes.Equal(got.Event.Body, l.Event.Body) || got.ID != l.ID || got.Sequence != 1841 || got.At.IsZero() || got.Event.Key != "customer-42" || got.Reference {
				t.Errorf("%s came back with %d bytes and the key %q", got.ID, len(got.Event.Body), got.Event.Key)
			}
		})
	}
}

// F4: where the event leaves no room for a poison event it stays where it is, and the poison event
// says where that is.
func TestAPoisonEventWithoutItsEvent(t *testing.T) {
	for name, fill := range map[string]func(*event.Event){
		"a body that fills the hub": func(ev *event.Event) { ev.Body = bytes.Repeat([]byte("x"), 1<<20-200) },
		"a body beyond its limit":   func(ev *event.Event) { ev.Body = bytes.Repeat([]byte("x"), 1<<20+100_000) },
		"a value that does":         func(ev *event.Event) { ev.Body, ev.Value = nil, strings.Repeat("x", 1<<20) },
		"a property that does":      func(ev *event.Event) { ev.Properties["x"] = strings.Repeat("x", 1<<20) },
		"a message id that does":    func(ev *event.Event) { ev.MessageID = strings.Repeat("x", 1<<20) },
		"a key as long as they may be": func(ev *event.Event) {
			ev.Key, ev.Body = strings.Repeat("k", 1<<16-1), bytes.Repeat([]byte("x"), 1_000_000)
		},
		"properties with names of ours": func(ev *event.Event) { ev.Properties[PropertyReason] = strings.Repeat("x", 1<<20-100) },
		"what was redriven often before": func(ev *event.Event) {
			ev.Properties[PropertyRedriven], ev.Subject = int32(3), strings.Repeat("x", 1<<20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := poisonEvent()
			fill(&l.Event)
			l.Reason = strings.Repeat("r", 1<<20)
			m := l.Message()
			if n := encodedBytes(m); n > maxBytes || m.ContentType != "application/json" || m.Properties[PropertyReference] != true {
				t.Errorf("it has %d bytes and is %+v", n, m.Properties)
			}
			got := mustRead(t, through(t, l))
			if string(got.Event.Body) != `{"hub":"images","partition":"3","sequence":1841}` || !got.Reference || got.Event.Key != l.Event.Key ||
				!strings.HasPrefix(got.Reason, "too large") || len(got.Reason) > maxReasonBytes || !got.Enqueued.Equal(l.Enqueued) {
				t.Errorf("read %s with the reason %.60s", got.Event.Body, got.Reason)
			}
			if got.Attempts != 5 || got.Group != "resizer" || got.Redriven != redrivenOf(l.Event) || len(got.Event.Properties) > 1 {
				t.Errorf("read %+v", got)
			}
		})
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	for n := 10; n < 20; n++ {
		if got := cut(strings.Repeat("ü", 20), n); len(got) > n || got != strings.ToValidUTF8(got, "?") || !strings.HasSuffix(got, " [cut]") {
			t.Errorf("%d: %q", n, got)
		}
	}
	testkit.Equal(t, cut("short", 5), "short")
}

// F4: a poison event that cannot be written would keep its partition standing for good.
func TestWhatCannotBeWrittenIsPutIntoWords(t *testing.T) {
	type local struct{ A int }
	for name, ev := range map[string]event.Event{
		"a property of a type that AMQP lacks": {Body: []byte{}, Properties: map[string]any{"x": local{7}, "y": int32(1)}},
		"a property's broken text":             {Body: []byte{}, Properties: map[string]any{"x": "\xff", "y": int32(1)}},
		"a property's broken name":             {Body: []byte{}, Properties: map[string]any{"\xff": "x", "y": int32(1)}},
		"a system value with a field":          {Body: []byte{}, System: map[string]any{"subject": int32(7)}, Properties: map[string]any{"y": int32(1)}},
		"a system value of the wrong type":     {Body: []byte{}, System: map[string]any{"to": int32(7)}, Properties: map[string]any{"y": int32(1)}},
		"a body and a value":                   {Body: []byte("b"), Value: "v", Properties: map[string]any{"y": int32(1)}},
		"a value of no type":                   {Value: local{7}, Properties: map[string]any{"y": int32(1)}},
		"ids of no type":                       {Body: []byte{}, MessageID: local{7}, CorrelationID: 7, Properties: map[string]any{"y": int32(1)}},
		"a content type that is not ASCII":     {Body: []byte{}, ContentType: "grün", Subject: "\xff", Properties: map[string]any{"y": int32(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Record{ID: "f/h/0/1", Function: "f", Hub: "h", Partition: "0", Sequence: 1, Reason: "\xff", Event: ev}
			got := mustRead(t, through(t, l))
			testkit.Slices(t, []any{got.Event.Properties["y"], got.Reason}, []any{int32(1), "\uFFFD"}, "read")
			testkit.Check(t, testkit.Err(message.Append(nil, got.Redrive())), "redrive")
		})
	}
	moved := mustRead(t, through(t, Record{ID: "f/h/0/1", Event: event.Event{System: map[string]any{"subject": int32(7), "to": "there"}}}))
	if moved.Event.Properties["poison-system-subject"] != int32(7) || moved.Event.System["to"] != "there" {
		t.Errorf("read %+v", moved.Event)
	}
}

// F4: what a poison event is about makes no difference.
func TestAnyPoisonEventComesBack(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[a-z]{0,6}`), rapid.SampledFrom([]string{
		PropertyID, PropertyReason, PropertyStack, PropertyKey, PropertyDeaths, nested, nested + PropertyID, nested + nested + "x", "poison-", "poison-x",
	}))
	value := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Int64(), func(n int64) any { return n }))
	rapid.Check(t, func(t *rapid.T) {
		l := poisonEvent()
		l.Sequence = rapid.Int64Range(0, 1<<62).Draw(t, "sequence")
		l.ID, l.Event.Sequence = ID(l.Function, l.Hub, l.Partition, l.Sequence), l.Sequence
		l.Reason, l.Stack, l.Event.Key = rapid.String().Draw(t, "reason"), rapid.String().Draw(t, "stack"), rapid.String().Draw(t, "key")
		l.Attempts, l.Deaths = rapid.IntRange(0, 1<<31-1).Draw(t, "attempts"), rapid.IntRange(0, 1<<31-1).Draw(t, "deaths")
		l.Event.Body = rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		l.Event.Properties = rapid.MapOfN(name, value, 1, 8).Draw(t, "properties")
		got, ok := Read(through(t, l))
		if diff := cmp.Diff(l, got); !ok || diff != "" {
			t.Fatal(ok, diff)
		}
	})
}

// Anybody may write into a poison hub.
func FuzzRead(f *testing.F) {
	stored := testkit.Value(message.Append(nil, poisonEvent().Message()))(f)
	f.Add(stored)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, stored []byte) {
		ev, err := message.Decode(stored)
		if err != nil {
			return
		}
		l, ok := Read(ev)
		if !ok {
			return
		}
		if l.ID != ID(l.Function, l.Hub, l.Partition, l.Sequence) || l.Attempts < 0 || l.Redriven < 0 {
			t.Errorf("read %+v", l)
		}
		again, ok := Read(through(t, l))
		testkit.Slices(t, []any{ok, again.ID}, []any{true, l.ID}, "written again it")
		testkit.Check(t, testkit.Err(l.JSON()))
	})
}

// F4: an event whose body is null, as JavaScript's { body: null }, has none after it was put away and
// redriven: to its readers that is another thing than an empty one.
func TestANullBodyStaysNull(t *testing.T) {
	null := []byte{0x00, 0x53, 0x75, 0x40} // a data section that holds null (AMQP 1.0, 3.2.6)
	ev, err := message.Decode(null)
	testkit.Must(t, err)
	l := poisonEvent()
	l.Event = ev
	for range 2 {
		away, err := message.Append(nil, l.Message())
		testkit.Must(t, err)
		testkit.That(t, bytes.HasSuffix(away, null), "the poison event is % x", away)
		l = mustRead(t, through(t, l))
		testkit.That(t, l.Event.Body == nil && l.Event.Value == nil, "it is read as %#v", l.Event)
		again, err := message.Append(nil, l.Redrive())
		testkit.Must(t, err)
		testkit.That(t, bytes.HasSuffix(again, null), "what is redriven is % x", again)
		l.Event, err = message.Decode(again)
		testkit.Must(t, err)
	}
	l.Event = event.Bytes(nil)
	l = mustRead(t, through(t, l))
	testkit.That(t, l.Event.Body != nil && len(l.Event.Body) == 0, "an empty body is read as %#v", l.Event)
}
