package frames_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

func drawPartitionState(t *rapid.T) frames.PartitionState {
	p := frames.PartitionState{Name: rapid.StringMatching(`[a-c]{1,6}`).Draw(t, "name")}
	p.Next = eventlog.Sequence(rapid.Int64Range(0, 1<<62).Draw(t, "next"))
	p.Time = rapid.Int64Range(0, 253402300799999).Draw(t, "time")
	p.Bytes = rapid.Int64Range(0, 1<<62).Draw(t, "bytes")
	p.Head.First = eventlog.Sequence(rapid.Int64Range(0, int64(p.Next)).Draw(t, "head"))
	p.Head.Seq = frames.StreamSeq(rapid.Uint64Range(0, 1000).Draw(t, "head's sequence"))
	p.Head.Bytes = rapid.Int64Range(0, p.Bytes).Draw(t, "head's bytes")
	p.Writers = rapid.SliceOfNDistinct(rapid.Custom(drawWriterState), 0, 4, func(w frames.WriterState) frames.WriterID { return w.Writer }).Draw(t, "writers")
	slices.SortFunc(p.Writers, func(a, b frames.WriterState) int {
		switch {
		case a.Writer.Producer != b.Writer.Producer && b.Writer.Producer, a.Writer.Producer == b.Writer.Producer && a.Writer.ID < b.Writer.ID:
			return -1
		default:
			return 1
		}
	})
	return p
}

func drawWriterState(t *rapid.T) frames.WriterState {
	return frames.WriterState{
		Writer: drawWriterID(t),
		Epoch:  frames.Epoch(rapid.Uint64().Draw(t, "epoch")),
		Q:      rapid.Uint64().Draw(t, "q"),
		Used:   rapid.Int64Range(0, 253402300799999).Draw(t, "used"),
	}
}

// C2: marks are read as they were written, in however many parts.
func TestMarksAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asOf := frames.StreamSeq(rapid.Uint64Range(1000, 1<<63).Draw(t, "as of"))
		states := rapid.SliceOfNDistinct(rapid.Custom(drawPartitionState), 0, 8, func(p frames.PartitionState) string { return p.Name }).Draw(t, "partitions")
		limit := rapid.IntRange(0, 2000).Draw(t, "bytes of a part")

		parts := frames.NewMarks(asOf, states, limit)
		var read []frames.Mark
		for i, part := range parts {
			h := frames.Header{Writer: frames.WriterID{ID: 3}, Time: 99}
			f, err := frames.Decode(frames.AppendMark(nil, h, part))
			testkit.Must(t, err)
			testkit.Equal(t, f.Base.Seq, asOf, "the header alone says what the mark is as of")
			testkit.That(t, f.PayloadBytes <= limit+20 || len(part.Partitions) <= 1, "a part of %d bytes, of %d allowed", f.PayloadBytes, limit)
			m, err := frames.DecodeMark(f)
			testkit.Must(t, err, "part %d", i)
			testkit.Diff(t, part, m)
			_, whole := frames.JoinMarks(read)
			testkit.That(t, !whole, "whole with %d of %d parts", i, len(parts))
			read = append(read, m)
		}
		slices.Reverse(read)
		whole, ok := frames.JoinMarks(read)
		testkit.MustThat(t, ok, "all parts are there")
		testkit.Equal(t, len(whole.Partitions), len(states))
		for _, want := range states {
			got, ok := whole.Find(want.Name)
			testkit.That(t, ok, "%q is missing", want.Name)
			testkit.Diff(t, want, got)
		}
	})
}

// C1: half a mark, or two that are mixed, is none.
func TestPartsOfDifferentMarksAreNotJoined(t *testing.T) {
	states := func() []frames.PartitionState { return []frames.PartitionState{{Name: "a"}, {Name: "b"}} }
	one, other := frames.NewMarks(5, states(), 0), frames.NewMarks(6, states(), 0)
	for name, parts := range map[string][]frames.Mark{
		"none":                  nil,
		"one of two":            {one[0]},
		"the same one twice":    {one[0], one[0]},
		"of different marks":    {one[0], other[1]},
		"of differently parted": {one[0], frames.NewMarks(5, states(), 1<<20)[0]},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := frames.JoinMarks(parts)
			testkit.That(t, !ok, "joined")
		})
	}
}

func TestASmallMark(t *testing.T) {
	for _, n := range []int{0, 1, 16, 5000} {
		states := make([]frames.PartitionState, n)
		for i := range states {
			states[i] = frames.PartitionState{
				Name:    fmt.Sprintf("subscription-00000000-0000-0000-0000-%012d.0", i),
				State:   frames.State{Next: 1 << 30, Time: 1_800_000_000_000, Bytes: 1 << 40},
				Writers: []frames.WriterState{{Writer: frames.WriterID{ID: 1}, Q: 1 << 20, Used: 1_800_000_000_000}, {Writer: frames.WriterID{ID: 2}, Used: 1_799_999_999_000}},
			}
		}
		parts := frames.NewMarks(9, states, 1<<30)
		size := len(frames.AppendMark(nil, frames.Header{}, parts[0]))
		testkit.That(t, size < 200+n*70, "a mark of %d partitions takes %d bytes", n, size)
	}
}

// C7: what a mark says of transactions is refused by a program without them.
func TestWhatIsWrongWithAMarkHasItsOwnError(t *testing.T) {
	mark := func(change func(b []byte) []byte) error {
		whole := frames.AppendMark(nil, frames.Header{}, frames.NewMarks(100, []frames.PartitionState{
			{Name: "ab", State: frames.State{Next: 5, Time: 6, Bytes: 7, Head: frames.Head{First: 4, Seq: 50, Bytes: 6}}, Writers: []frames.WriterState{{Used: 6}}},
			{Name: "ac"},
		}, 1<<20)[0])
		f, err := frames.Decode(resum(change(whole)))
		if err != nil {
			return err
		}
		_, err = frames.DecodeMark(f)
		return err
	}
	const (
		payload = frames.HeaderBytes
		first   = payload + 2 // behind part and parts
		values  = first + 4   // behind lengths and name
		writers = values + 7
		second  = writers + 13
	)
	set := func(at int, to byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = to; return b }
	}
	for name, tt := range map[string]struct {
		change func(b []byte) []byte
		want   error
	}{
		"as it was":                        {func(b []byte) []byte { return b }, nil},
		"no parts":                         {set(payload+1, 0), frames.ErrMalformed},
		"a part behind the last":           {set(payload, 1), frames.ErrMalformed},
		"a name with a foreign beginning":  {set(first, 1), frames.ErrMalformed},
		"open transactions":                {set(values+1, 1), frames.ErrVersion},
		"a head behind the end":            {set(values+4, 6), frames.ErrMalformed},
		"a head behind the mark":           {set(values+5, 101), frames.ErrMalformed},
		"more bytes before it than in all": {set(values+6, 8), frames.ErrMalformed},
		"more writers than bytes":          {set(writers, 100), frames.ErrMalformed},
		"a flag of a writer nobody knows":  {set(writers+1, 2), frames.ErrMalformed},
		"a use before 1970":                {set(writers+12, 14), frames.ErrMalformed},
		"names that do not rise":           {set(second+2, 'b'), frames.ErrMalformed},
		"fewer partitions than there are":  {set(12, 1), frames.ErrMalformed},
		"more partitions than there are":   {set(12, 3), frames.ErrMalformed},
		"a number without an end":          {func(b []byte) []byte { b[len(b)-1] = 0x80; return b }, frames.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) { testkit.ErrorIs(t, mark(tt.change), tt.want) })
	}
	f, err := frames.Decode(frames.AppendFence(nil, frames.Header{}))
	testkit.Must(t, err)
	testkit.ErrorIs(t, testkit.Err(frames.DecodeMark(f)), frames.ErrVersion, "a fence is no mark")
}

func TestWhenAMarkIsDue(t *testing.T) {
	const start = 1000
	minute := time.Minute.Milliseconds()
	for name, tt := range map[string]struct {
		frames, bytes int
		now           int64
		want          bool
	}{
		"never for a stream at rest":       {0, 0, start + 1000*minute, false},
		"not after one frame":              {1, 100, start, false},
		"after a minute with a frame":      {1, 100, start + minute, true},
		"not a moment earlier":             {1, 100, start + minute - 1, false},
		"after 4,096 frames":               {4096, 100, start, true},
		"not after 4,095":                  {4095, 100, start, false},
		"after 16 MiB":                     {16, 1 << 20, start, true},
		"not after a byte less than these": {15, 1<<20 + 69905, start, false},
	} {
		t.Run(name, func(t *testing.T) {
			var u frames.Unmarked
			for i := range tt.frames {
				u.Add(tt.bytes, start+int64(i)/1000)
			}
			testkit.Equal(t, u.Due(tt.now), tt.want)
		})
	}
}
