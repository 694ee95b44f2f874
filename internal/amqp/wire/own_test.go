package wire

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: what an idempotent producer says about an event is found, and is not stored.
func TestProducerMarks(t *testing.T) {
	const id, epoch, number = Symbol("com.microsoft:producer-id"), Symbol("com.microsoft:producer-epoch"), Symbol("com.microsoft:producer-sequence-number")
	data := section(t, DescriptorData, []byte("body"))
	full := ProducerMark{ID: Some[int64](1 << 40), Epoch: Some[int16](-1), Sequence: Some[int32](1 << 30)}
	for _, c := range []struct {
		name        string
		annotations Map
		want        ProducerMark
	}{
		{"none", Map{}, ProducerMark{}},
		{"all three", Map{{id, int64(1 << 40)}, {epoch, int16(-1)}, {number, int32(1 << 30)}}, full},
		{"in another order", Map{{number, int32(1 << 30)}, {epoch, int16(-1)}, {id, int64(1 << 40)}}, full},
		{"under strings", Map{{string(id), int64(1 << 40)}, {string(epoch), int16(-1)}, {string(number), int32(1 << 30)}}, full},
		{"zeros", Map{{id, int64(0)}, {epoch, int16(0)}, {number, int32(0)}},
			ProducerMark{ID: Some[int64](0), Epoch: Some[int16](0), Sequence: Some[int32](0)}},
		{"the number alone", Map{{number, int32(-1)}}, ProducerMark{Sequence: Some[int32](-1)}},
		{"of other types", Map{{id, int32(1)}, {epoch, int32(1)}, {number, int64(1)}}, ProducerMark{}},
		{"text", Map{{id, "1"}, {epoch, "1"}, {number, "1"}}, ProducerMark{}},
		{"null", Map{{id, nil}, {epoch, nil}, {number, nil}}, ProducerMark{}},
		{"twice", Map{{number, int32(1)}, {number, int32(2)}}, ProducerMark{Sequence: Some[int32](2)}},
		{"of names that nobody knows", Map{{Symbol("com.microsoft:producer-name"), int64(1)}, {Symbol("producer-id"), int64(1)}}, ProducerMark{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			msg := join(section(t, DescriptorMessageAnnotations, c.annotations), data)
			stored, own, err := Normalize(nil, msg)
			testkit.Must(t, err)
			testkit.Equal(t, own.Producer, c.want, "Normalize finds")
			m := testkit.Value(Sections(msg))(t)
			testkit.Equal(t, testkit.Value(m.Own())(t).Producer, c.want, "Own finds")
			if _, again, err := Normalize(nil, stored); err != nil || again.Producer != (ProducerMark{}) {
				t.Errorf("what is stored still has %+v, %v", again.Producer, err)
			}
		})
	}
}

// H2: the envelope of a batch has the key.
func TestOwnAnnotationsOfAnEnvelope(t *testing.T) {
	m, err := Sections(join(section(t, DescriptorMessageAnnotations, append(Map{{uint64(3), nil}}, ours()...)), section(t, DescriptorData, []byte("x"))))
	testkit.Must(t, err)
	testkit.Equal(t, string(testkit.Value(m.Own())(t).Key), "key", "found")
	if own, err := (&Message{}).Own(); err != nil || own.Key != nil {
		t.Errorf("without annotations found %+v, %v", own, err)
	}
}

// Sections that nobody has checked are refused, whatever is wrong with them.
func TestBrokenSectionsAreRefused(t *testing.T) {
	for name, broken := range map[string]string{
		"no bytes": "", "no descriptor": "40", "no value": "00 53 72", "a value of no type": "00 53 72 3f",
		"a map without its key":   "00 53 72 c1 03 02 3f 40",
		"a map without its value": "00 53 72 c1 04 02 a3 00 3f",
		"a map that ends early":   "00 53 72 c1 03 02 a3 00",
		"a key of no bytes":       "00 53 72 c1 03 02 a3 09",
		"a list without a field":  "00 53 70 c0 06 05 3f 40 40 40 40",
	} {
		b := unhex(t, broken)
		m := Message{MessageAnnotations: b}
		if own, err := m.Own(); err == nil {
			t.Errorf("%s: it says %+v", name, own)
		}
		for _, m := range []Message{{MessageAnnotations: b}, {Header: b}, {Body: append(b, 0), longDescriptor: true}} {
			if out, _, err := normalize([]byte("before"), &m); err == nil || string(out) != "before" {
				t.Errorf("%s: %q, %v", name, out, err)
			}
		}
	}
}
