package bodies

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestIndexComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := index{bytes: rapid.Int64Range(0, 1<<20).Draw(t, "bytes"), chunkBytes: rapid.Int64Range(1<<10, maxChunkBytes).Draw(t, "chunk")}
		seq := uint64(0)
		for range (x.bytes + x.chunkBytes - 1) / x.chunkBytes {
			seq += rapid.Uint64Range(1, 1<<40).Draw(t, "step")
			x.seqs = append(x.seqs, seq)
		}
		got, err := decodeIndex(x.encode())
		testkit.Must(t, err)
		testkit.Deep(t, got, x)
		whole := int64(0)
		for i := range x.seqs {
			whole += x.chunkLen(i)
		}
		testkit.Equal(t, whole, x.bytes, "bytes of all chunks")
	})
}

// C1: a message that is not what was stored is an error, whatever bit of it has changed.
func TestDamageIsFound(t *testing.T) {
	message := seal(kindChunk, append(make([]byte, headerBytes), "a body"...))
	testkit.Equal(t, string(testkit.Value(open(kindChunk, message))(t)), "a body", "content")
	for bit := range 8 * len(message) {
		damaged := bytes.Clone(message)
		damaged[bit/8] ^= 1 << (bit % 8)
		testkit.That(t, testkit.Err(open(kindChunk, damaged)) != nil, "bit %d has changed, and nobody noticed", bit)
	}
	testkit.ErrorIs(t, testkit.Err(open(kindIndex, message)), errDamaged, "a chunk for an index")
	for n := range message {
		testkit.That(t, testkit.Err(open(kindChunk, message[:n])) != nil, "cut after %d bytes", n)
	}
}

func FuzzDecodeIndex(f *testing.F) {
	f.Add(index{bytes: 10, chunkBytes: 4, seqs: []uint64{1, 2, 9}}.encode()[headerBytes:])
	f.Add(index{chunkBytes: 1}.encode()[headerBytes:])
	f.Add(index{bytes: math.MaxInt64 / 4, chunkBytes: 1}.encode()[headerBytes:])
	f.Fuzz(func(t *testing.T, content []byte) {
		x, err := decodeIndex(seal(kindIndex, append(make([]byte, headerBytes), content...)))
		if err != nil {
			return
		}
		for i := range x.seqs {
			if n := x.chunkLen(i); n < 1 || n > x.chunkBytes {
				t.Errorf("chunk %d of %+v has %d bytes", i, x, n)
			}
		}
	})
}
