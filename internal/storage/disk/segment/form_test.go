package segment_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// mixed makes a segment of batches, each durable before the next is written.
func mixed(t testing.TB, infos []segment.Info, body string) (f vfs.File, head segment.Head, offsets []int64) {
	t.Helper()
	f = testkit.Value(vfs.NewMem().Create("a.seg"))(t)
	head = segment.Head{Salt: salt, Base: infos[0].First, BaseTime: 999}
	write(t, f, segment.AppendHead(nil, head), 0)
	at := int64(segment.HeaderBytes)
	for _, info := range infos {
		offsets = append(offsets, at)
		b := encode(info, body)
		segment.Seal(b, salt, at, at)
		write(t, f, b, at)
		at += int64(len(b))
	}
	return f, head, append(offsets, at)
}

var bothForms = []segment.Info{
	{First: 100, Count: 1, Time: 1000},
	{First: 101, Count: 5, Time: 1001, Form: 1, MaxTime: 5000},
	{First: 106, Count: 1, Time: 1002},
	{First: 107, Count: 2, Time: 1003, Form: 9, MaxTime: -1},
}

func TestEveryFlippedBitOfAFormIsNoticed(t *testing.T) {
	body := "a body that is not too long"
	b := encode(segment.Info{First: 7, Count: 3, Time: 17, Form: 1, MaxTime: 1 << 40}, body)
	segment.Seal(b, salt, 64, 64)
	for i := range segment.FormHeaderBytes + len(body) {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, err := segment.Parse(b, salt); err == nil {
				t.Errorf("bit %d of byte %d flipped: taken for valid", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}

// H3: batches of both kinds stand in one segment, and one that is cut short is not found.
func TestBothKindsAreRecovered(t *testing.T) {
	f, head, offsets := mixed(t, bothForms, "body")
	for cut := offsets[4]; cut >= segment.HeaderBytes; cut-- {
		testkit.Must(t, f.Truncate(cut))
		found := testkit.Value(segment.Recover(f, head, cut, -1))(t)
		want := head.Begin()
		for i, info := range bothForms {
			if offsets[i+1] <= cut {
				want.Take(nil, info, offsets[i+1]-offsets[i])
			}
		}
		testkit.MustEqual(t, found.Tail, want, "cut at %d", cut)
	}
}

// The trailer says what the newest batch is kept as: what a program that does not know it has sealed does not.
func TestTheTrailerHasTheFormOfTheNewestBatch(t *testing.T) {
	for n := range len(bothForms) + 1 {
		f, _, offsets := mixed(t, bothForms, "body")
		tail := segment.Head{Base: 100}.Begin()
		for i, info := range bothForms[:n] {
			tail.Take(nil, info, offsets[i+1]-offsets[i])
		}
		for _, durable := range []bool{true, false} {
			testkit.Must(t, f.Truncate(tail.Offset))
			write(t, f, segment.AppendTrailer(nil, salt, segment.Trailer{Tail: tail, Durable: durable}), tail.Offset)
			got := testkit.Value(segment.ReadTrailer(f, salt, size(t, f)))(t)
			testkit.Equal(t, got.Tail, tail, "behind %d batches", n)
			testkit.Equal(t, got.FormKnown, n > 0)
			testkit.Equal(t, got.Durable, durable)
		}
		tail.Form, tail.FormKnown = 0, false
		testkit.Must(t, f.Truncate(tail.Offset))
		write(t, f, segment.AppendTrailer(nil, salt, segment.Trailer{Tail: tail, Durable: true}), tail.Offset)
		testkit.Equal(t, testkit.Value(segment.ReadTrailer(f, salt, size(t, f)))(t).Tail, tail, "from a program that does not know it")
	}
}

func TestSalvageHeadFromAForm(t *testing.T) {
	f, head, _ := mixed(t, bothForms[1:2], "")
	write(t, f, make([]byte, segment.HeaderBytes), 0)
	got, ok := segment.SalvageHead(f, 101, size(t, f))
	if !ok || got.Salt != head.Salt || got.Base != 101 {
		t.Errorf("got %+v, %v", got, ok)
	}
}

// From where the index leads, the search for a create time finds what reading all finds.
func TestIndexFindsCreateTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x segment.Index
		tail := segment.Head{}.Begin()
		var infos []segment.Info
		var offsets []int64
		for range rapid.IntRange(0, 40).Draw(t, "batches") {
			info := segment.Info{First: tail.Next, Count: 1, Time: tail.LastTime + rapid.Int64Range(0, 2).Draw(t, "later")}
			if rapid.Bool().Draw(t, "a form") {
				info.Form, info.MaxTime = 1, rapid.Int64Range(-5, 60).Draw(t, "created")
			}
			infos, offsets = append(infos, info), append(offsets, tail.Offset)
			x = tail.Take(x, info, rapid.Int64Range(64, segment.IndexEvery).Draw(t, "bytes"))
		}
		ms := rapid.Int64Range(-10, 70).Draw(t, "time")
		first := func(from int64) int {
			for i, info := range infos {
				if offsets[i] >= from && info.Created() >= ms {
					return i
				}
			}
			return -1
		}
		if got, want := first(x.Created(ms)), first(0); got != want || (want >= 0) != (tail.MaxTime >= ms) {
			t.Fatalf("batch %d, want %d; the greatest time is %d", got, want, tail.MaxTime)
		}
	})
}

// oldTrailer is what versions before batches in a form of their own wrote.
func oldTrailer(index segment.Index, tail segment.Tail) (b []byte) {
	put := func(n int64) { b = binary.LittleEndian.AppendUint64(b, uint64(n)) }
	for _, e := range index {
		put(e.First)
		put(e.Time)
		put(e.Offset)
	}
	b = append(b, "EVYARDX1"...)
	put(salt)
	put(tail.Offset)
	put(tail.Next)
	put(tail.LastTime)
	put(int64(len(index)))
	put(1)
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// R6: the index of an older version reads as before, with enqueued times as create times, and is
// written byte for byte where the folder is still of the older format.
func TestOldTrailer(t *testing.T) {
	f, _, offsets := build(t, "first", "second")
	tail := segment.Tail{Offset: offsets[2], Next: 102, LastTime: 1001, MaxTime: 1001}
	for name, index := range map[string]segment.Index{
		"entries": {{First: 100, Time: 1000, Offset: 64, MaxTime: 1000}, {First: 101, Time: 1001, Offset: offsets[1], MaxTime: 1001}},
		"none":    {},
	} {
		t.Run(name, func(t *testing.T) {
			old := oldTrailer(index, tail)
			testkit.Must(t, f.Truncate(tail.Offset))
			write(t, f, old, tail.Offset)
			got := testkit.Value(segment.ReadTrailer(f, salt, size(t, f)))(t)
			testkit.Equal(t, got.Tail, tail)
			testkit.Slices(t, got.Index, index)
			testkit.That(t, got.Durable && got.Old, "read as %+v", got)
			testkit.Equal(t, string(segment.AppendTrailer(nil, salt, got)), string(old), "written again")
		})
	}
}

// FuzzMixed damages a segment of batches of both kinds that ends with a trailer: nothing may panic,
// what is found lies within the file, and what is read is a batch that was written.
func FuzzMixed(f *testing.F) {
	f.Add(uint16(0), []byte{}, uint16(0), true)
	f.Add(uint16(130), []byte("EYB1"), uint16(3), false)
	f.Add(uint16(64), []byte("EYB2"), uint16(100), true)
	f.Fuzz(func(t *testing.T, at uint16, damage []byte, cut uint16, old bool) {
		file, head, offsets := mixed(t, bothForms, "some body")
		tail := segment.Tail{Offset: offsets[4], Next: 109, LastTime: 1003, MaxTime: 5000}
		index := segment.Index{{First: 100, Time: 1000, Offset: 64, MaxTime: 1000}}
		write(t, file, segment.AppendTrailer(nil, salt, segment.Trailer{Tail: tail, Index: index, Old: old}), tail.Offset)
		bytes := size(t, file)
		write(t, file, damage[:min(int64(len(damage)), max(bytes-int64(at), 0))], min(int64(at), bytes))
		bytes -= min(int64(cut), bytes)
		testkit.Must(t, file.Truncate(bytes))
		found, err := segment.Recover(file, head, bytes, -1)
		if err != nil || found.Offset > max(bytes, segment.HeaderBytes) || found.Next < head.Base {
			t.Fatalf("%+v, %v of %d bytes", found, err, bytes)
		}
		scan := segment.NewScanner(file, salt, segment.HeaderBytes, found.Offset, nil)
		for b, err := scan.Next(); err == nil; b, err = scan.Next() {
			if string(b.Body) != "some body" || b.Count == 0 {
				t.Fatalf("read %+v", b)
			}
		}
		if got, err := segment.ReadTrailer(file, salt, bytes); err == nil && (got.Offset != tail.Offset || got.Next != tail.Next) {
			t.Fatalf("the trailer reads %+v", got)
		}
		segment.SalvageHead(file, 100, bytes)
	})
}
