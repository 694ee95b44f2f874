package segment_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

const salt = 0x5a17c0ffee

// build makes a segment of batches with the given bodies, each durable before the next is
// written, and gives the offset of each batch and of the end.
func build(t testing.TB, bodies ...string) (f vfs.File, head segment.Head, offsets []int64) {
	t.Helper()
	f = testkit.Value(vfs.NewMem().Create("a.seg"))(t)
	head = segment.Head{Salt: salt, Base: 100, BaseTime: 999}
	write(t, f, segment.AppendHead(nil, head), 0)
	at := int64(segment.HeaderBytes)
	for i, body := range bodies {
		offsets = append(offsets, at)
		b := encode(segment.Info{First: 100 + int64(i), Count: 1, Time: 1000 + int64(i)}, body)
		segment.Seal(b, salt, at, at)
		write(t, f, b, at)
		at += int64(len(b))
	}
	return f, head, append(offsets, at)
}

func encode(info segment.Info, body string) []byte {
	b := segment.Reserve(nil, info.Form)
	return segment.Finish(append(b, body...), 0, info)
}

func write(t testing.TB, f vfs.File, b []byte, at int64) {
	t.Helper()
	testkit.Must(t, testkit.Err(f.WriteAt(b, at)))
}

func size(t testing.TB, f vfs.File) int64 {
	t.Helper()
	n := testkit.Value(f.Bytes())(t)
	return n
}

func TestHeadRoundTrip(t *testing.T) {
	want := segment.Head{Salt: 1, Base: 1 << 40, BaseTime: -5}
	b := segment.AppendHead(nil, want)
	if got, err := segment.ParseHead(b); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for i := range b {
		b[i] ^= 0x40
		testkit.ErrorIs(t, testkit.Err(segment.ParseHead(b)), segment.ErrHeader,
			"a flipped bit in byte %d goes unnoticed", i)
		b[i] ^= 0x40
	}
}

func TestBatchRoundTrip(t *testing.T) {
	for _, want := range []segment.Info{
		{First: 7, Count: 3, Time: 1700000000000},
		{First: 0, Count: 1, HasProducer: true, ProducerID: -9, ProducerEpoch: -2, ProducerFirst: 1 << 30},
		{First: 7, Count: 3, Time: 1700000000000, Form: 1, MaxTime: -1},
		{First: 1 << 40, Count: 1 << 30, Form: 255, MaxTime: 1 << 50, HasProducer: true, ProducerID: 9, ProducerEpoch: 1, ProducerFirst: 0},
	} {
		for _, body := range []string{"", "x", "12345678", string(bytes.Repeat([]byte("long"), 5000))} {
			b := encode(want, body)
			segment.Seal(b, salt, 4096, 4000)
			got, need, err := segment.Parse(b, salt)
			if err != nil || got.Info != want || string(got.Body) != body || need != len(b) || got.Bytes != len(b) {
				t.Errorf("%d bytes of body: got %+v, %v", len(body), got.Info, err)
			}
			testkit.Equal(t, got.DurableTo(4096), 4000, "durable")
		}
	}
}

func TestEveryFlippedBitIsNoticed(t *testing.T) {
	body := "a body that is not too long"
	b := encode(segment.Info{First: 7, Count: 3, Time: 17}, body)
	segment.Seal(b, salt, 64, 64)
	for i := range segment.BatchHeaderBytes + len(body) {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, err := segment.Parse(b, salt); err == nil {
				t.Errorf("bit %d of byte %d flipped: taken for valid", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
	testkit.ErrorIs(t, testkit.Err3(segment.Parse(b, salt+1)), segment.ErrInvalid,
		"a batch of another segment")
}

func TestATornBatchIsNotFound(t *testing.T) {
	f, head, offsets := build(t, "first", "second", "third and last")
	end := offsets[3]
	for cut := end - 1; cut >= segment.HeaderBytes; cut-- {
		testkit.Must(t, f.Truncate(cut))
		found := testkit.Value(segment.Recover(f, head, cut, -1))(t)
		whole := 0
		for whole < 2 && offsets[whole+1] <= cut {
			whole++
		}
		if found.Offset != offsets[whole] || found.Next != 100+int64(whole) || len(found.Holes) != 0 {
			t.Errorf("cut at %d: found up to %d, next %d, want %d whole batches", cut, found.Offset, found.Next, whole)
		}
	}
}

func TestZerosAndEarlierLivesEndASegment(t *testing.T) {
	f, head, offsets := build(t, "first", "second")
	end := offsets[2]
	old := encode(segment.Info{First: 102, Count: 1, Time: 1}, "of an earlier life")
	segment.Seal(old, salt+1, end, end)
	for name, behind := range map[string][]byte{"zeros": make([]byte, 5000), "an earlier life": old} {
		t.Run(name, func(t *testing.T) {
			write(t, f, behind, end)
			found, err := segment.Recover(f, head, size(t, f), -1)
			if err != nil || found.Offset != end || found.Next != 102 || found.LastTime != 1001 {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		})
	}
}

func TestDamageBeforeADurableBatchIsAHole(t *testing.T) {
	f, head, offsets := build(t, "first", "second", "third", "fourth")
	write(t, f, []byte{0xff}, offsets[1]+66)
	found, err := segment.Recover(f, head, size(t, f), -1)
	if err != nil || len(found.Holes) != 1 || found.Next != 104 || found.Offset != offsets[4] {
		t.Fatalf("%+v, %v", found, err)
	}
	want := segment.Hole{From: offsets[1], To: offsets[2], First: 101, Next: 102}
	testkit.Equal(t, found.Holes[0], want, "hole")
}

func TestDamageThatNoLaterBatchVouchesForIsTheEnd(t *testing.T) {
	f, head, offsets := build(t, "first")
	at := offsets[1]
	b := append(encode(segment.Info{First: 101, Count: 1}, "torn"), encode(segment.Info{First: 102, Count: 1}, "whole, of the same write")...)
	segment.Seal(b, salt, at, at) // one group: nothing behind at was durable
	write(t, f, b, at)
	write(t, f, []byte{0xff}, at+66)
	found, err := segment.Recover(f, head, size(t, f), -1)
	if err != nil || found.Offset != at || found.Next != 101 || len(found.Holes) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// H3: of what was sealed and not durable, damage costs what it hit, and power loss the end.
func TestASealedSegmentEndsWithItsLastBatch(t *testing.T) {
	f, head, offsets := build(t, "first", "second", "third", "fourth")
	trailer := segment.Trailer{Tail: segment.Tail{Offset: offsets[4], Next: 104}}
	write(t, f, []byte{0xff}, offsets[0]+66)
	write(t, f, []byte{0xff}, offsets[3]+66)
	found := testkit.Value(segment.RecoverSealed(f, head, trailer))(t)
	testkit.Slices(t, found.Holes, []segment.Hole{{From: offsets[0], To: offsets[1], First: 100, Next: 101}})
	testkit.Equal(t, found.Next, 103)
	testkit.Equal(t, found.Offset, offsets[3])
}

func TestWhatAFollowingSegmentVoidsIsNotCounted(t *testing.T) {
	f, head, offsets := build(t, "first", "second", "third")
	found, err := segment.Recover(f, head, size(t, f), 102)
	if err != nil || found.Next != 102 || found.Offset != offsets[2] {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestTrailerRoundTrip(t *testing.T) {
	f, _, offsets := build(t, "first", "second")
	tail := segment.Tail{Offset: offsets[2], Next: 102, LastTime: 1001}
	index := segment.Index{{First: 100, Time: 1000, Offset: 64}, {First: 101, Time: 1001, Offset: offsets[1]}}
	write(t, f, segment.AppendTrailer(nil, salt, segment.Trailer{Tail: tail, Index: index, Durable: true}), tail.Offset)
	got := testkit.Value(segment.ReadTrailer(f, salt, size(t, f)))(t)
	testkit.Equal(t, got.Tail, tail)
	testkit.Slices(t, got.Index, index)
	testkit.That(t, got.Durable, "that all is durable is lost")
	testkit.ErrorIs(t, testkit.Err(segment.ReadTrailer(f, salt+1, size(t, f))), segment.ErrNoTrailer,
		"another segment's trailer")
	for at := tail.Offset; at < size(t, f); at++ {
		flip(t, f, at)
		if _, err := segment.ReadTrailer(f, salt, size(t, f)); err == nil {
			t.Errorf("a flipped bit at %d of the trailer goes unnoticed", at-tail.Offset)
		}
		flip(t, f, at)
	}
}

func flip(t *testing.T, f vfs.File, at int64) {
	var b [1]byte
	testkit.Must(t, testkit.Err(f.ReadAt(b[:], at)))
	write(t, f, []byte{b[0] ^ 1}, at)
}

// H4
func TestIndexFindsWhereToBegin(t *testing.T) {
	var x segment.Index
	for i := range int64(100) {
		x = x.Add(segment.Entry{First: i * 10, Time: 1000 + i/2*2, Offset: 64 + i*segment.IndexEvery/2})
	}
	testkit.MustEqual(t, len(x), 50, "entries")
	for _, tt := range []struct{ sequence, want int64 }{
		{0, 64}, {19, 64}, {20, 64 + segment.IndexEvery}, {21, 64 + segment.IndexEvery}, {5000, x[49].Offset}, {-1, 64},
	} {
		t.Run(fmt.Sprintf("event %d", tt.sequence), func(t *testing.T) {
			if got := x.Sequence(tt.sequence); got != tt.want {
				t.Errorf("begin at %d, want %d", got, tt.want)
			}
		})
	}
	for _, tt := range []struct{ ms, want int64 }{
		{0, 64}, {1000, 64}, {1001, 64}, {1002, 64}, {1003, 64 + segment.IndexEvery}, {9999, x[49].Offset},
	} {
		t.Run(fmt.Sprintf("time %d", tt.ms), func(t *testing.T) {
			if got := x.Time(tt.ms); got != tt.want {
				t.Errorf("begin at %d, want %d", got, tt.want)
			}
		})
	}
	if got := (segment.Index)(nil).Sequence(5); got != segment.HeaderBytes {
		t.Errorf("without an index one begins at the front, not at %d", got)
	}
}

func TestScannerReadsBatchesLargerThanItsChunks(t *testing.T) {
	var bodies []string
	for i := range 20 {
		bodies = append(bodies, string(bytes.Repeat([]byte{byte(i)}, i*i*3000)))
	}
	f, _, offsets := build(t, bodies...)
	s := segment.NewScanner(f, salt, segment.HeaderBytes, offsets[20], nil)
	for i, want := range bodies {
		b, err := s.Next()
		if err != nil || string(b.Body) != want {
			t.Fatalf("batch %d: %v", i, err)
		}
		if i == 10 { // memory can be given back between any two batches
			s.Adopt(s.Release())
		}
	}
	testkit.ErrorIs(t, testkit.Err(s.Next()), io.EOF, "at the limit")
}

func TestSalvageHead(t *testing.T) {
	f, head, _ := build(t, "first")
	write(t, f, make([]byte, segment.HeaderBytes), 0)
	got, ok := segment.SalvageHead(f, 100, size(t, f))
	if !ok || got.Salt != head.Salt || got.Base != 100 {
		t.Errorf("got %+v, %v", got, ok)
	}
	if _, ok := segment.SalvageHead(f, 101, size(t, f)); ok {
		t.Error("the name says that the segment begins elsewhere")
	}
}

// FuzzRecover feeds a segment with strangers' bytes: nothing may panic, and what is found
// has to lie within the file.
func FuzzRecover(f *testing.F) {
	file, _, offsets := build(f, "first", "second", "third")
	seed := make([]byte, size(f, file))
	testkit.Must(f, testkit.Err(file.ReadAt(seed, 0)))
	f.Add(seed)
	f.Add(append(bytes.Clone(seed), segment.AppendTrailer(nil, salt, segment.Trailer{Tail: segment.Tail{Offset: offsets[3], Next: 103}})...))
	f.Add(seed[:len(seed)-5])
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := vfs.NewMem().Create("a.seg")
		testkit.Must(t, err)
		write(t, file, data, 0)
		head, err := segment.ParseHead(data)
		if err != nil {
			head, _ = segment.SalvageHead(file, 100, int64(len(data)))
		}
		found, err := segment.Recover(file, head, int64(len(data)), -1)
		if err != nil || found.Offset > max(int64(len(data)), segment.HeaderBytes) || found.Next < head.Base {
			t.Fatalf("%+v, %v of %d bytes", found, err, len(data))
		}
		if got, err := segment.ReadTrailer(file, head.Salt, int64(len(data))); err == nil {
			_ = fmt.Sprint(got.Tail, got.Index.Sequence(101), got.Index.Time(1))
		}
	})
}
