package answers

import (
	"encoding/json"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What the short way reads, the decoder reads alike.
func FuzzPlainAck(f *testing.F) {
	for _, seed := range []string{`{"stream":"s","seq":7}`, `{"stream":"s","seq":007}`, `{"stream":"\"","seq":7}`, `{"stream":"s","seq":7,"seq":8}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		seq, ok := plainAck(answer)
		if !ok || !json.Valid(answer) {
			return
		}
		var ack struct {
			Seq uint64 `json:"seq"`
		}
		testkit.Must(t, json.Unmarshal(answer, &ack), "%q", answer)
		testkit.Equal(t, seq, ack.Seq, "%q", answer)
	})
}
