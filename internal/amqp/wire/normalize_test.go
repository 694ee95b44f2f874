package wire

import (
	"bytes"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// ours is every annotation that belongs to the hub, as a client sends them on.
func ours() Map {
	return Map{
		{Symbol(AnnotationSequenceNumber), int64(7)},
		{Symbol(AnnotationOffset), "7"},
		{Symbol(AnnotationEnqueuedTime), int64(0)},
		{Symbol(AnnotationPartitionKey), "key"},
		{Symbol(AnnotationPublisher), "p"},
		{Symbol("com.microsoft:producer-id"), int64(1)},
		{Symbol("com.microsoft:producer-epoch"), int16(1)},
		{Symbol("com.microsoft:producer-sequence-number"), int32(1)},
	}
}

// H3: what is stored is what was sent, less what is the hub's or the hop's.
func TestNormalize(t *testing.T) {
	data := section(t, DescriptorData, []byte("body"))
	properties := section(t, DescriptorProperties, []any{"id"})
	footer := section(t, DescriptorFooter, Map{{Symbol("f"), 1}})
	foreign := Map{{Symbol("x-opt-mine"), 1}, {uint64(7), "numbered"}, {"string key", []any{nil}}}
	annotations := func(m Map) []byte { return section(t, DescriptorMessageAnnotations, m) }
	header := func(fields ...any) []byte { return section(t, DescriptorHeader, fields) }

	for _, c := range []struct {
		name      string
		msg, want []byte
		key       string // "-" for none
	}{
		{"nothing", nil, nil, "-"},
		{"a bare message stays", join(properties, data, footer), join(properties, data, footer), "-"},
		{"a long encoding stays", unhex(t, "00 53 75 b0 00 00 00 01 61"), unhex(t, "00 53 75 b0 00 00 00 01 61"), "-"},
		{"delivery annotations go", join(section(t, DescriptorDeliveryAnnotations, foreign), data), data, "-"},

		{"a header without delivery-count stays", join(header(true, uint8(9), uint32(1000), false), data),
			join(header(true, uint8(9), uint32(1000), false), data), "-"},
		{"an empty header stays", join(unhex(t, "00 53 70 45"), data), join(unhex(t, "00 53 70 45"), data), "-"},
		{"a null delivery-count stays", join(header(true, nil, nil, nil, nil), data), join(header(true, nil, nil, nil, nil), data), "-"},
		{"delivery-count goes", join(header(true, uint8(9), uint32(1000), true, uint32(3)), data),
			join(header(true, uint8(9), uint32(1000), true), data), "-"},
		{"a header of delivery-count alone goes", join(header(nil, nil, nil, nil, uint32(3)), data), data, "-"},

		{"foreign annotations stay", join(annotations(foreign), data), join(annotations(foreign), data), "-"},
		{"an empty map of annotations stays", join(annotations(Map{}), data), join(annotations(Map{}), data), "-"},
		{"our annotations go, the section with them", join(annotations(ours()), data), data, "key"},
		{"our annotations go from among others", join(annotations(append(ours(), foreign...)), data),
			join(annotations(foreign), data), "key"},
		{"our annotations are known by string too", join(annotations(Map{{AnnotationPartitionKey, "key"}}), data), data, "key"},
		{"an empty key is a key", join(annotations(Map{{Symbol(AnnotationPartitionKey), ""}}), data), data, ""},
		{"a key that is no string goes", join(annotations(Map{{Symbol(AnnotationPartitionKey), 7}}), data), data, "-"},
		{"a key that is a symbol goes", join(annotations(Map{{Symbol(AnnotationPartitionKey), Symbol("k")}}), data), data, "-"},
		{"a key that is null goes", join(annotations(Map{{Symbol(AnnotationPartitionKey), nil}}), data), data, "-"},

		{"a long descriptor becomes short", join(unhex(t, "00 80 00 00 00 00 00 00 00 75 a0 01 61")), unhex(t, "00 53 75 a0 01 61"), "-"},
		{"a symbolic descriptor becomes a number",
			join(symbolic(properties, "amqp:properties:list"), symbolic(data, "amqp:data:binary"), data, symbolic(footer, "amqp:footer:map")),
			join(properties, data, data, footer), "-"},
		{"so it does in front of the body", join(symbolic(header(true), "amqp:header:list"), symbolic(annotations(foreign), "amqp:message-annotations:map"), data),
			join(header(true), annotations(foreign), data), "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent := bytes.Clone(c.msg)
			got, own, err := Normalize([]byte("before"), c.msg)
			testkit.Must(t, err)
			if want := "before" + string(c.want); string(got) != want {
				t.Errorf("stored % x, want % x", got[len("before"):], c.want)
			}
			if hasKey := c.key != "-"; (own.Key != nil) != hasKey || hasKey && string(own.Key) != c.key {
				t.Errorf("key %q (nil: %t), want %q", own.Key, own.Key == nil, c.key)
			}
			testkit.Slices(t, c.msg, sent, "the sender's bytes were changed")
			checkStored(t, c.msg, c.want, own)
		})
	}
}

// checkStored holds Stored against what Normalize gives.
func checkStored(t *testing.T, msg, want []byte, wantOwn Own) {
	t.Helper()
	before := []byte("before")
	out, stored, own, err := Stored(before, msg)
	if err != nil || !bytes.Equal(stored, want) || string(own.Key) != string(wantOwn.Key) || own.Producer != wantOwn.Producer {
		t.Errorf("without a copy % x, key %q, %v; with one % x, key %q", stored, own.Key, err, want, wantOwn.Key)
	}
	shared := len(msg) > 0 && len(stored) > 0 && &stored[0] == &msg[0]
	if shared != bytes.Equal(out, before) && len(want) > 0 {
		t.Errorf("the message itself: %t, while % x came of dst", shared, out)
	}
	if cap(stored) > len(stored) {
		t.Error("who appends to what is stored would overwrite what is behind it")
	}
}

// symbolic gives a section the symbolic form of its descriptor.
func symbolic(section []byte, name Symbol) []byte {
	return append(AppendSymbol([]byte{0}, name), section[smallDescriptorBytes:]...)
}

func TestNormalizeRefusesWhatSectionsRefuses(t *testing.T) {
	got, own, err := Normalize([]byte("before"), []byte("hello"))
	if err == nil || string(got) != "before" || own.Key != nil {
		t.Errorf("stored %q with key %q and error %v, want nothing but an error", got, own.Key, err)
	}
}
