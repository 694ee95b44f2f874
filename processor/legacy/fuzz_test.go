package legacy_test

import (
	"encoding/json"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor/legacy"
)

// FuzzParse wants that whatever is read can be told: written in one dialect it is read as
// the same, and a checkpoint that is found says where.
func FuzzParse(f *testing.F) {
	for _, l := range leases {
		f.Add([]byte(l.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := legacy.Parse(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(map[string]any{
			"PartitionId": l.Partition, "Owner": l.Owner, "Epoch": l.Epoch, "Offset": l.Offset, "SequenceNumber": l.Sequence,
		})
		testkit.Must(t, err)
		if got, err := legacy.Parse(again); err != nil || got != l {
			t.Errorf("%s was read as %+v, and that as %+v, %v", text, l, got, err)
		}
		c, found := l.Checkpoint("0")
		if found != (c.Offset != "" || c.Sequence >= 0) || c.Sequence < -1 {
			t.Errorf("%s has checkpoint %+v, %v", text, c, found)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add("12", "480")
	f.Add("-9223372036854775808", "no offset")
	f.Add("", "3:128:9")
	f.Fuzz(func(t *testing.T, sequence, offset string) {
		lower, err := legacy.Metadata("0", map[string]string{"sequencenumber": sequence, "offset": offset})
		if err != nil {
			return
		}
		if lower.Sequence < -1 {
			t.Errorf("%q is sequence number %d", sequence, lower.Sequence)
		}
		upper, err := legacy.Metadata("0", map[string]string{"SequenceNumber": sequence, "OFFSET": offset})
		if err != nil || upper != lower {
			t.Errorf("in capitals it is %+v, %v, in lower case %+v", upper, err, lower)
		}
	})
}
