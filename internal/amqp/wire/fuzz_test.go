package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func addVectors(f *testing.F) {
	for _, v := range vectors() {
		f.Add(unhex(f, v.hex))
	}
}

func addMessages(f *testing.F) {
	for _, msg := range messages(f) {
		f.Add(msg)
	}
}

// messages are some with every section, in every form.
func messages(t testing.TB) [][]byte {
	data := section(t, DescriptorData, []byte("body"))
	sequence := section(t, DescriptorSequence, []any{1, "two"})
	annotations := section(t, DescriptorMessageAnnotations, append(ours(), Pair{Symbol("x"), []any{nil}}))
	properties := section(t, DescriptorProperties, []any{"id", []byte("user"), nil, "subject"})
	application := section(t, DescriptorApplicationProperties, Map{{"a", 1}, {"b", nil}})
	return [][]byte{
		{},
		join(section(t, DescriptorHeader, []any{true, nil, nil, nil, uint32(1)}), annotations, properties, application, data, data),
		join(section(t, DescriptorDeliveryAnnotations, Map{}), symbolic(data, "amqp:data:binary")),
		join(sequence, sequence, section(t, DescriptorFooter, Map{})),
		section(t, DescriptorValue, Array{Of: CodeUlong, Values: []any{uint64(1)}}),
		section(t, DescriptorValue, Described{int32(3), "by an int"}),
		join(annotations, section(t, DescriptorFooter, Map{}), section(t, DescriptorData, nil)),
		join(data, data, properties, annotations, section(t, DescriptorDeliveryAnnotations, Map{})),
	}
}

// Skip and ReadAny agree about every input, and what was read can be written and read.
func FuzzReadAny(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		skip, read := NewReader(b), NewReader(b)
		v, err := read.ReadAny()
		if skipErr := skip.Skip(); (skipErr == nil) != (err == nil) {
			t.Fatalf("Skip says %v, ReadAny %v", skipErr, err)
		}
		if err != nil {
			if read.Offset() > len(b) {
				t.Fatalf("read up to %d of %d", read.Offset(), len(b))
			}
			return
		}
		testkit.MustEqual(t, skip.Offset(), read.Offset(), "Skip ends at")
		encoded, err := AppendAny(nil, v)
		if errors.Is(err, ErrText) {
			return // strangers may send such text; we do not write it
		}
		testkit.Must(t, err, "cannot write %#v", v)
		r := NewReader(encoded)
		again := testkit.Value(r.ReadAny())(t)
		testkit.MustEqual(t, r.Len(), 0, "cannot read % x", encoded)
		// Compared as bytes, because NaN differs from itself.
		testkit.MustEqual(t, string(testkit.Value(AppendAny(nil, again))(t)), string(encoded))
	})
}

// Typed reads never panic, and read only what Skip lets through, of their own type.
func FuzzTypedReads(f *testing.F) {
	addVectors(f)
	reads := typedReads()
	f.Fuzz(func(t *testing.T, b []byte) {
		skip := NewReader(b)
		skipErr := skip.Skip()
		for of, read := range reads {
			r := NewReader(b)
			_, err := read(&r)
			own := len(b) > 0 && Code(b[0]).widest() == of
			testkit.MustEqual(t, (err == nil), (own && skipErr == nil),
				"read of %s: %v; Skip: %v", of, err, skipErr)
			if err == nil && r.Offset() != skip.Offset() {
				t.Fatalf("read of %s ends at %d, Skip at %d", of, r.Offset(), skip.Offset())
			}
		}
		r := NewReader(b)
		_, _ = r.ReadDescriptor()
		r = NewReader(b)
		_, _ = r.ReadData()
	})
}

// disorder gives msg if it has the same bytes as all, in another order.
func disorder(all, msg []byte) []byte {
	if bytes.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(msg))) {
		return msg
	}
	return all
}

// Sections never panics, and the parts it gives are all of the message.
func FuzzSections(f *testing.F) {
	addMessages(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		m, err := Sections(msg)
		if err != nil {
			return
		}
		tail := join(m.Properties, m.ApplicationProperties, m.Body, m.Footer)
		all := join(m.Header, m.DeliveryAnnotations, m.MessageAnnotations, tail)
		if m.disordered {
			tail, all = nil, disorder(all, msg)
		}
		testkit.MustEqual(t, bytes.Equal(m.Tail, tail), true, "tail is % x, its parts are % x", m.Tail, tail)
		testkit.MustEqual(t, bytes.Equal(all, msg), true, "the parts are % x, the message is % x", all, msg)
		if r := NewReader(m.Body); m.BodyKind == BodyData {
			for range m.BodyCount {
				testkit.Must(t, testkit.Err(r.ReadData()))
			}
			testkit.MustEqual(t, r.Len(), 0, "bytes behind the last data section")
		}
	})
}

// Normalize changes a message once at most, and leaves the bare message alone.
func FuzzNormalize(f *testing.F) {
	addMessages(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		sent, err := Sections(msg)
		stored, own, normalizeErr := Normalize(nil, msg)
		testkit.MustEqual(t, (err == nil), (normalizeErr == nil),
			"Sections says %v, Normalize %v", err, normalizeErr)
		if err != nil {
			if _, _, _, err := Stored(nil, msg); err == nil {
				t.Fatal("Stored takes what Normalize refuses")
			}
			return
		}
		checkStored(t, msg, stored, own)
		if own.Key != nil && sent.MessageAnnotations == nil {
			t.Fatalf("key %q out of nowhere", own.Key)
		}
		again, second, err := Normalize(nil, stored)
		if err != nil || !bytes.Equal(again, stored) || second.Key != nil {
			t.Fatalf("once: % x; twice: % x, key %q, %v", stored, again, second.Key, err)
		}
		m := testkit.Value(Sections(stored))(t)
		if m.DeliveryAnnotations != nil || m.longDescriptor || m.disordered {
			t.Fatalf("not in stored form: % x", stored)
		}
		testkit.MustEqual(t, m.BodyKind, sent.BodyKind, "body of kind")
		testkit.MustEqual(t, m.BodyCount, sent.BodyCount, "body of kind")
		if !sent.longDescriptor && !sent.disordered && !bytes.Equal(m.Tail, sent.Tail) {
			t.Fatalf("tail % x became % x", sent.Tail, m.Tail)
		}
	})
}
