package frames_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sentinels are all that a decoder may answer.
var sentinels = []error{nil, frames.ErrNotFrame, frames.ErrVersion, frames.ErrShort, frames.ErrChecksum, frames.ErrMalformed}

// FuzzDecode reads any bytes, as they are and with right checksums: it never panics, has no error
// but those that are named, and writes what it has read as the same bytes.
func FuzzDecode(f *testing.F) {
	mark := eventlog.Producer{ID: 1 << 40, Epoch: 3, First: 1 << 30, Set: true}
	f.Add([]byte(nil))
	f.Add([]byte("EYF"))
	f.Add(frames.AppendFence(nil, frames.Header{Writer: pump, Epoch: 3}))
	f.Add(frames.AppendData(nil, based(data(ann, 1, 2, 3, 4), 5, 6), []frames.Batch{{Events: 3, Form: 1, Body: []byte("body"), Producer: mark}}))
	f.Add(frames.AppendData(nil, data(bob, 0, 0, 0, 0), []frames.Batch{{Events: 1}, {Events: 2, Body: make([]byte, 300)}}))
	f.Fuzz(func(t *testing.T, message []byte) {
		decodeAny(t, message)
		if len(message) >= frames.HeaderBytes {
			b := slices.Clone(message)
			copy(b, "EYF\x01")
			b[8], b[9] = frames.HeaderBytes, 0
			decodeAny(t, resum(b))
		}
	})
}

func decodeAny(t *testing.T, message []byte) {
	t.Helper()
	got, err := frames.Decode(message)
	testkit.MustThat(t, slices.Contains(sentinels, err), "an error of its own: %v", err)
	if err != nil {
		return
	}
	p := frames.NewPartition()
	p.Apply(1, got.Header)
	switch got.Kind {
	case frames.KindFence:
		testkit.That(t, bytes.Equal(frames.AppendFence(nil, got.Header), message), "the fence is written differently")
	case frames.KindData:
		var batches []frames.Batch
		for _, b := range got.All() {
			batches = append(batches, b)
		}
		again, err := frames.Decode(frames.AppendData(nil, got.Header, batches))
		testkit.Must(t, err)
		testkit.Equal(t, frames.Plain(again.Header), frames.Plain(got.Header))
	}
}

// FuzzDecodeMark reads any bytes as the payload of a mark, with right checksums. What it can read
// it can restore, and write and read again.
func FuzzDecodeMark(f *testing.F) {
	payload := func(states ...frames.PartitionState) []byte {
		return frames.AppendMark(nil, frames.Header{}, frames.NewMarks(1<<40, states, 1<<20)[0])[frames.HeaderBytes:]
	}
	f.Add(uint8(0), []byte(nil))
	f.Add(uint8(0), payload())
	f.Add(uint8(2), payload(
		frames.PartitionState{Name: "orders.0", State: frames.State{Next: 1 << 33, Time: 1 << 40, Bytes: 1 << 40, Head: frames.Head{First: 7, Seq: 8, Bytes: 9}}},
		frames.PartitionState{Name: "orders.1", Writers: []frames.WriterState{{Writer: ann, Epoch: 1, Q: 1 << 20, Used: 5}, {Writer: pump, Used: 1 << 39}}},
	))
	f.Fuzz(func(t *testing.T, partitions uint8, payload []byte) {
		message := frames.AppendMark(nil, frames.Header{}, frames.Mark{AsOf: 1 << 40})[:frames.HeaderBytes]
		message = append(message, payload...)
		message[12], message[68], message[69], message[70] = partitions, byte(len(payload)), byte(len(payload)>>8), byte(len(payload)>>16)
		got, err := frames.Decode(resum(message))
		if err != nil {
			return // longer than the three bytes of a length
		}
		m, err := frames.DecodeMark(got)
		testkit.MustThat(t, slices.Contains(sentinels, err), "an error of its own: %v", err)
		if err != nil {
			return
		}
		testkit.Equal(t, len(m.Partitions), int(partitions))
		again, err := frames.Decode(frames.AppendMark(nil, got.Header, m))
		testkit.Must(t, err)
		same, err := frames.DecodeMark(again)
		testkit.Must(t, err)
		testkit.Diff(t, m, same)
		for _, state := range m.Partitions {
			frames.Restore(m.AsOf, state).Apply(m.AsOf+1, data(ann, 0, 0, 1, 1))
		}
	})
}
