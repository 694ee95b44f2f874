package wire

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// typical is an event as a client with a partition key sends it.
func typical(t testing.TB) []byte {
	return join(
		section(t, DescriptorHeader, []any{true, nil, nil, nil, uint32(0)}),
		section(t, DescriptorMessageAnnotations, Map{{Symbol(AnnotationPartitionKey), "home-42"}, {Symbol("x-opt-mine"), int64(1)}}),
		section(t, DescriptorProperties, []any{"6f1c1f6e", nil, nil, "motion", nil, "c-7", Symbol("application/json")}),
		section(t, DescriptorApplicationProperties, Map{{"sensor", "front"}, {"battery", 0.87}, {"seq", int32(77)}}),
		section(t, DescriptorData, make([]byte, 1024)),
	)
}

func appendEverything(dst []byte) []byte {
	dst = AppendNull(dst)
	dst = AppendBool(dst, true)
	dst = AppendUlong(AppendUint(AppendUshort(AppendUbyte(dst, 1), 2), 300), 400)
	dst = AppendLong(AppendInt(AppendShort(AppendSbyte(dst, -1), -2), -300), -400)
	dst = AppendDouble(AppendFloat(dst, 1), 2)
	dst = AppendTimestamp(AppendChar(dst, 'x'), 1)
	dst = AppendUUID(dst, UUID{})
	dst = AppendSymbol(AppendString(AppendBinary(dst, dst[:4]), "text"), "name")
	dst, list := BeginList(AppendDescriptor(dst, DescriptorProperties))
	dst, inner := BeginMap(AppendString(dst, "id"))
	dst = AppendUlong(AppendSymbol(dst, "k"), 7)
	dst = EndMap(dst, inner, 1)
	dst, array := BeginArray(dst, CodeUbyte)
	dst = EndArray(append(dst, 1, 2), array, 2)
	return EndList(dst, list, 3)
}

// The paths that every event takes do not allocate.
func TestHotPathsDoNotAllocate(t *testing.T) {
	msg, dst := typical(t), make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"appending": func() { dst = appendEverything(dst[:0]) },
		"skipping": func() {
			for r := NewReader(msg); r.Len() > 0; {
				_ = r.Skip()
			}
		},
		"finding sections": func() { _, _ = Sections(msg) },
		"normalizing":      func() { dst, _, _ = Normalize(dst[:0], msg) },
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, testing.AllocsPerRun(100, f), 0, "%s allocates", name)
		})
	}
}

func BenchmarkAppendPrimitives(b *testing.B) {
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = appendEverything(dst[:0])
	}
}

func BenchmarkSections(b *testing.B) {
	msg := typical(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		testkit.Must(b, testkit.Err(Sections(msg)))
	}
}

func BenchmarkNormalize(b *testing.B) {
	msg, dst := typical(b), make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		var err error
		if dst, _, err = Normalize(dst[:0], msg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNormalizeUnchanged(b *testing.B) {
	msg, _, err := Normalize(nil, typical(b))
	testkit.Must(b, err)
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if dst, _, err = Normalize(dst[:0], msg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAny(b *testing.B) {
	encoded := section(b, DescriptorApplicationProperties, Map{{"sensor", "front"}, {"battery", 0.87}, {"seq", int32(77)}})
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(encoded)
		testkit.Must(b, testkit.Err(r.ReadAny()))
	}
}
