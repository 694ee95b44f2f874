package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// section encodes one section; the value may be anything that AppendAny takes.
func section(t testing.TB, d Descriptor, value any) []byte {
	t.Helper()
	return testkit.Value(AppendAny(AppendDescriptor(nil, d), value))(t)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// H3: a message is taken apart into exactly its parts.
func TestSectionsOfAFullMessage(t *testing.T) {
	header := section(t, DescriptorHeader, []any{true})
	delivery := section(t, DescriptorDeliveryAnnotations, Map{{Symbol("d"), 1}})
	annotations := section(t, DescriptorMessageAnnotations, Map{{Symbol("m"), 1}})
	properties := section(t, DescriptorProperties, []any{"id"})
	application := section(t, DescriptorApplicationProperties, Map{{"a", 1}})
	data := section(t, DescriptorData, []byte("body"))
	more := section(t, DescriptorData, []byte("more"))
	footer := section(t, DescriptorFooter, Map{{Symbol("f"), 1}})

	m := testkit.Value(Sections(join(header, delivery, annotations, properties, application, data, more, footer)))(t)
	for _, c := range []struct {
		name      string
		got, want []byte
	}{
		{"header", m.Header, header},
		{"delivery annotations", m.DeliveryAnnotations, delivery},
		{"message annotations", m.MessageAnnotations, annotations},
		{"properties", m.Properties, properties},
		{"application properties", m.ApplicationProperties, application},
		{"body", m.Body, join(data, more)},
		{"footer", m.Footer, footer},
		{"tail", m.Tail, join(properties, application, data, more, footer)},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Slices(t, c.got, c.want, "%s", c.name)
		})
	}
	testkit.Equal(t, m.BodyKind, BodyData, "body is of kind")
	testkit.Equal(t, m.BodyCount, 2, "body is of kind")
	r := NewReader(m.Body)
	for _, want := range []string{"body", "more"} {
		testkit.Equal(t, string(testkit.Value(r.ReadData())(t)), want, "ReadData =")
	}
	testkit.ErrorIs(t, testkit.Err(r.ReadData()), ErrTruncated, "ReadData at the end")
	r = NewReader(footer)
	testkit.ErrorIs(t, testkit.Err(r.ReadData()), ErrMalformed, "ReadData of a footer")
}

func TestKindsOfBody(t *testing.T) {
	data := section(t, DescriptorData, []byte("x"))
	sequence := section(t, DescriptorSequence, []any{1, 2})
	value := section(t, DescriptorValue, "x")
	footer := section(t, DescriptorFooter, Map{})
	for _, c := range []struct {
		name  string
		msg   []byte
		kind  BodyKind
		count int
	}{
		{"nothing at all", nil, BodyNone, 0},
		{"no body", footer, BodyNone, 0},
		{"one data section", data, BodyData, 1},
		{"three data sections and a footer", join(data, data, data, footer), BodyData, 3},
		{"two sequences", join(sequence, sequence), BodySequence, 2},
		{"a value", join(value, footer), BodyValue, 1},
		{"a value of null", section(t, DescriptorValue, nil), BodyValue, 1},
		{"a data section that holds null", section(t, DescriptorData, nil), BodyData, 1},
		{"a sequence that is null", section(t, DescriptorSequence, nil), BodySequence, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Sections(c.msg)
			if err != nil || m.BodyKind != c.kind || m.BodyCount != c.count {
				t.Errorf("%s: kind %d, %d sections, %v; want kind %d, %d sections", c.name, m.BodyKind, m.BodyCount, err, c.kind, c.count)
			}
			testkit.Equal(t, bytes.Equal(m.Tail, c.msg), true, "%s: tail is % x, want all of % x", c.name, m.Tail, c.msg)
		})
	}
}

// H3: sections in any order are found, and stored in the standard's.
func TestSectionsInAnyOrder(t *testing.T) {
	header := section(t, DescriptorHeader, []any{true})
	delivery := section(t, DescriptorDeliveryAnnotations, Map{{Symbol("d"), 1}})
	annotations := section(t, DescriptorMessageAnnotations, Map{{Symbol("m"), 1}, {Symbol(AnnotationPartitionKey), "key"}})
	mine := section(t, DescriptorMessageAnnotations, Map{{Symbol("m"), 1}})
	properties := section(t, DescriptorProperties, []any{"id"})
	application := section(t, DescriptorApplicationProperties, Map{{"a", 1}})
	data := section(t, DescriptorData, []byte("body"))
	nothing := section(t, DescriptorData, nil)
	footer := section(t, DescriptorFooter, Map{{Symbol("f"), 1}})
	for _, c := range []struct {
		name      string
		msg, want []byte
	}{
		{"rhea: the footer before the body", join(header, annotations, properties, application, footer, data, data),
			join(header, mine, properties, application, data, data, footer)},
		{"rhea: the same without a body's bytes", join(header, annotations, footer, nothing), join(header, mine, nothing, footer)},
		{"pyamqp: delivery annotations at the end", join(header, annotations, properties, data, footer, delivery),
			join(header, mine, properties, data, footer)},
		{"all from the last to the first", join(footer, data, application, properties, annotations, delivery, header),
			join(header, mine, properties, application, data, footer)},
		{"with names for descriptors", join(symbolic(footer, "amqp:footer:map"), symbolic(data, "amqp:data:binary"), annotations),
			join(mine, data, footer)},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testkit.Value(Sections(c.msg))(t)
			testkit.Equal(t, m.Tail == nil, true, "there is a tail of sections in disorder")
			stored, own, err := Normalize(nil, c.msg)
			testkit.Must(t, err)
			testkit.Slices(t, stored, c.want)
			testkit.Equal(t, string(own.Key), "key")
			checkStored(t, c.msg, c.want, own)
			ordered := testkit.Value(Sections(stored))(t)
			testkit.Equal(t, ordered.disordered, false, "what is stored is in disorder")
			testkit.Must(t, testkit.Err(AppendDelivery(nil, &Delivery{}, stored)))
		})
	}
}

func TestMessagesThatAreNoneAreRefused(t *testing.T) {
	header := section(t, DescriptorHeader, []any{})
	annotations := section(t, DescriptorMessageAnnotations, Map{})
	properties := section(t, DescriptorProperties, []any{})
	data := section(t, DescriptorData, []byte("x"))
	sequence := section(t, DescriptorSequence, []any{})
	value := section(t, DescriptorValue, 1)
	footer := section(t, DescriptorFooter, Map{})
	for _, c := range []struct {
		name string
		msg  []byte
		err  error
	}{
		{"two headers", join(header, header), ErrSection},
		{"two headers around others", join(header, properties, data, header), ErrSection},
		{"annotations on both sides of the body", join(annotations, data, annotations), ErrSection},
		{"data on both sides of a footer", join(data, footer, data), ErrSection},
		{"data and value on both sides of a footer", join(data, footer, value), ErrSection},
		{"two values", join(value, value), ErrSection},
		{"data and sequence", join(data, sequence), ErrSection},
		{"data and value", join(data, value), ErrSection},
		{"sequence and data", join(sequence, data), ErrSection},
		{"a section that is none", section(t, 0x79, Map{}), ErrSection},
		{"a performative", section(t, 0x14, []any{}), ErrSection},
		{"a section of unknown name", unhex(t, "00 a3 01 61 40"), ErrMalformed},
		{"data that is a string", section(t, DescriptorData, "x"), ErrType},
		{"annotations that are null", section(t, DescriptorMessageAnnotations, nil), ErrType},
		{"properties that are null", section(t, DescriptorProperties, nil), ErrType},
		{"a header that is a map", section(t, DescriptorHeader, Map{}), ErrType},
		{"properties that are an array", section(t, DescriptorProperties, Array{Of: CodeUint}), ErrType},
		{"annotations that are a list", section(t, DescriptorMessageAnnotations, []any{}), ErrType},
		{"a sequence that is described", section(t, DescriptorSequence, Described{uint64(1), []any{}}), ErrType},
		{"no value behind the descriptor", unhex(t, "00 53 75"), ErrTruncated},
		{"bytes that are no section", []byte("hello"), ErrMalformed},
		{"a value that is no section", unhex(t, "a1 01 61"), ErrType},
		{"a bad value deep inside", unhex(t, "00 53 77 c0 06 01 c0 03 01 56 02"), ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m, err := Sections(c.msg); !errors.Is(err, c.err) || m.Body != nil || m.Tail != nil {
				t.Errorf("%s: %+v, %v; want no message and %v", c.name, m, err, c.err)
			}
		})
	}
}

// R1, H8: what stops clients of several languages for good is not taken in; where it was stored before,
// it can be read.
func TestKeysThatStopReadersAreNotTaken(t *testing.T) {
	data := section(t, DescriptorData, []byte("x"))
	properties := func(key any) []byte {
		return join(section(t, DescriptorApplicationProperties, Map{{"good", 1}, {key, "v"}}), data)
	}
	of := func(d Descriptor, value any) []byte { return join(section(t, d, value), data) }
	value := func(v any) []byte { return section(t, DescriptorValue, v) }
	inner := Map{{Map{{"a", "b"}}, "c"}}
	for name, msg := range map[string][]byte{
		"an uint":                         properties(uint32(5)),
		"bytes":                           properties([]byte("k")),
		"null":                            properties(nil),
		"a list":                          properties([]any{}),
		"a float":                         properties(float32(1)),
		"a symbol":                        properties(Symbol("k")),
		"a described string":              properties(Described{uint64(1), "k"}),
		"a map in a body":                 value(inner),
		"a list in a body":                value(Map{{[]any{"a"}, "c"}}),
		"a described value in a body":     value(Map{{Described{uint64(1), "a"}, "c"}}),
		"an array deep in a body":         value([]any{[]any{Map{{"a", Map{{Array{Of: CodeUint, Values: []any{uint32(1)}}, 1}}}}}}),
		"a map in an array of a body":     value(Array{Of: CodeMap32, Values: []any{inner}}),
		"a map in a sequence":             section(t, DescriptorSequence, []any{inner}),
		"a map in annotations":            of(DescriptorMessageAnnotations, Map{{Map{}, 1}}),
		"a map in a value of annotations": of(DescriptorMessageAnnotations, Map{{Symbol("a"), inner}}),
		"a map in a property":             of(DescriptorApplicationProperties, Map{{"a", inner}}),
		"a list in the footer":            of(DescriptorFooter, Map{{[]any{}, 1}}),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Normalize(nil, msg)
			testkit.ErrorIs(t, err, ErrType)
			_, _, _, err = Stored(nil, msg)
			testkit.ErrorIs(t, err, ErrType)
			testkit.Must(t, testkit.Err(Sections(msg)))
		})
	}
}

// What the SDKs can write is taken, whoever cannot read it.
func TestKeysAndValuesOfEverySimpleTypeAreTaken(t *testing.T) {
	for name, value := range map[string]any{
		"null": nil, "a char": Char('x'), "a decimal": Decimal128{1}, "an uuid": UUID{1}, "bytes": []byte("b"), "a symbol": Symbol("s"),
		"a list": []any{1, "a"}, "an array": Array{Of: CodeString32, Values: []any{"a"}}, "a described value": Described{Symbol("d"), "v"},
		"a map": Map{{"s", 1}, {Symbol("y"), 2}, {[]byte("b"), 3}, {uint32(4), 4}, {nil, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, msg := range [][]byte{
				join(section(t, DescriptorApplicationProperties, Map{{"k", value}}), section(t, DescriptorData, []byte("x"))),
				section(t, DescriptorValue, value),
			} {
				stored, _, err := Normalize(nil, msg)
				testkit.Must(t, err)
				testkit.Slices(t, stored, msg)
			}
		})
	}
}

// What Sections gives can be appended to without writing over its neighbour.
func TestSectionsDoNotReachIntoEachOther(t *testing.T) {
	header, body := section(t, DescriptorHeader, []any{true}), section(t, DescriptorData, []byte("x"))
	msg := join(header, body)
	m := testkit.Value(Sections(msg))(t)
	_ = append(m.Header, 0xff)
	testkit.Slices(t, msg[len(header):], body, "appending to the header wrote over the body")
}
