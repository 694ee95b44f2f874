package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A performative outlives the buffer that its frame was read into, except for a delivery tag.
func TestWhatIsReadSharesNothingWithTheFrame(t *testing.T) {
	for _, v := range exactVectors() {
		if _, ok := v.value.(Transfer); ok {
			continue
		}
		buf := unhex(t, v.hex)
		got, _, _, err := readBody(buf)
		testkit.Must(t, err)
		for i := range buf {
			buf[i] = 0xff
		}
		testkit.Deep(t, got, v.value, "%s became", v.name)
	}
}

// A client's filter is repeated in the client's own encoding, which is not ours.
func TestASourceIsEchoedByteForByte(t *testing.T) {
	filter := unhex(t, "d1 00 00 00 16 00 00 00 02 b3 00 00 00 01 66 00 80 00 00 46 8c 00 00 00 04 a1 00")
	attach := func(filter []byte) []byte {
		return AppendAttach(nil, &Attach{Name: "n", Source: &Source{FilterBytes: filter, Capabilities: unhex(t, "e0 01 00")}})
	}
	sent := attach(filter)
	got, c, _, err := readBody(sent)
	testkit.Must(t, err)
	source := got.(Attach).Source
	testkit.Deep(t, source.Filter, Map{{Symbol("f"), Described{uint64(0x468c00000004), ""}}}, "filter")
	testkit.Slices(t, c.append(nil, got), sent, "echo")
	source.FilterBytes = nil
	if echo, want := c.append(nil, got), attach(unhex(t, hexFilterOfOurs)); !bytes.Equal(echo, want) {
		t.Errorf("echo % x without the bytes, want % x", echo, want)
	}
}

const hexFilterOfOurs = "c1 10 02 a3 01 66 00 80 00 00 46 8c 00 00 00 04 a1 00"

// H8: no text of a stranger, coming back through us, keeps a client from reading on.
func TestTextThatIsNotValidIsNotWritten(t *testing.T) {
	b := AppendEnd(nil, &End{&Error{Condition: "a:b", Description: "no hub \"\xff\xfe\""}})
	got, _, _, err := readBody(b)
	if want := "no hub \"\ufffd\""; err != nil || got.(End).Error.Description != want {
		t.Errorf("read %+v, %v; want the description %q", got, err, want)
	}
	b = AppendOpen(nil, &Open{ContainerID: "c", Properties: Map{{Symbol("ok"), 1}, {Symbol("k"), "\xff"}}})
	got, _, _, err = readBody(b)
	if err != nil || got.(Open).Properties != nil {
		t.Errorf("read %+v, %v; want no properties", got, err)
	}
}

func TestStatesOfOthersAreNotWritten(t *testing.T) {
	b := AppendDisposition(nil, &Disposition{State: State{Outcome: OutcomeOther}})
	if got, _, _, err := readBody(b); err != nil || got.(Disposition).State.Outcome != OutcomeNone {
		t.Errorf("read %+v, %v; want no state", got, err)
	}
}

func TestErrorsShowConditionAndDescription(t *testing.T) {
	if got := (&Error{Condition: "amqp:not-found", Description: "no such hub"}).Error(); got != "amqp:not-found: no such hub" {
		t.Error(got)
	}
	testkit.Equal(t, (&Error{Condition: "amqp:not-found"}).Error(), "amqp:not-found")
}

func TestAFieldOrAnother(t *testing.T) {
	testkit.Equal(t, Some[uint32](0).Or(7), 0, "a field of 0")
	testkit.Equal(t, (Opt[uint32]{}).Or(7), 7, "no field")
}

func TestArraysOfText(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		name string
		got  []byte
		want any
		code Code
	}{
		{"no symbols", AppendSymbolArray(nil, nil), Array{Of: CodeSymbol32, Values: []any{}}, CodeSymbol8},
		{"symbols", AppendSymbolArray(nil, []Symbol{"a", ""}), Array{Of: CodeSymbol32, Values: []any{Symbol("a"), Symbol("")}}, CodeSymbol8},
		{"a long symbol", AppendSymbolArray(nil, []Symbol{"a", Symbol(long)}),
			Array{Of: CodeSymbol32, Values: []any{Symbol("a"), Symbol(long)}}, CodeSymbol32},
		{"strings", AppendStringArray(nil, []string{"0", "1"}), Array{Of: CodeString32, Values: []any{"0", "1"}}, CodeString8},
		{"a long string", AppendStringArray(nil, []string{long}), Array{Of: CodeString32, Values: []any{long}}, CodeString32},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(c.got)
			testkit.Deep(t, testkit.Value(r.ReadAny())(t), c.want, "%s: read", c.name)
			if want, err := AppendAny(nil, c.want); err != nil || !bytes.Equal(c.got, want) || !bytes.Contains(want, []byte{byte(c.code)}) {
				t.Errorf("%s: written % x, want % x of %s", c.name, c.got, want, c.code)
			}
		})
	}
}

func TestSymbolsOfAField(t *testing.T) {
	for _, c := range []struct {
		name string
		hex  string
		want []Symbol
	}{
		{"null", "40", nil},
		{"one", "a3 01 61", []Symbol{"a"}},
		{"one, long form", "b3 00 00 00 01 61", []Symbol{"a"}},
		{"an array", "e0 06 02 a3 01 61 01 62", []Symbol{"a", "b"}},
		{"an array, long form", "f0 00 00 00 0f 00 00 00 02 b3 00 00 00 01 61 00 00 00 01 62", []Symbol{"a", "b"}},
		{"an array of none", "e0 02 00 a3", []Symbol{}},
		{"a list", "c0 07 02 a3 01 61 a3 01 62", []Symbol{"a", "b"}},
		{"a list of none", "45", []Symbol{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(unhex(t, c.hex))
			if got, err := r.ReadSymbols(); err != nil || !reflect.DeepEqual(got, c.want) || r.Len() != 0 {
				t.Errorf("%s: %#v, %v with %d bytes left; want %#v", c.name, got, err, r.Len(), c.want)
			}
		})
	}
}
