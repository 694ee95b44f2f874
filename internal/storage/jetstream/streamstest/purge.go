package streamstest

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// purgeTests publish 0 to 9 alternately to the subjects 0 and 1, as the sequences 1 to 10, and purge.
func purgeTests() []test {
	var tests []test
	for _, tt := range []struct {
		name    string
		subject string
		below   streams.Seq
		left    []string
		first   streams.Seq
	}{
		{"nothing", "", 1, []string{"0:0", "1:1", "0:2", "1:3", "0:4", "1:5", "0:6", "1:7", "0:8", "1:9"}, 1},
		{"below zero", "", 0, []string{"0:0", "1:1", "0:2", "1:3", "0:4", "1:5", "0:6", "1:7", "0:8", "1:9"}, 1},
		{"a part", "", 5, []string{"0:4", "1:5", "0:6", "1:7", "0:8", "1:9"}, 5},
		{"all but one", "", 10, []string{"1:9"}, 10},
		{"all", "", 11, nil, 11},
		{"all and more", "", 1000, nil, 11},
		{"a part of a subject", "0", 6, []string{"1:1", "1:3", "1:5", "0:6", "1:7", "0:8", "1:9"}, 2},
		{"a part of another", "1", 6, []string{"0:0", "0:2", "0:4", "1:5", "0:6", "1:7", "0:8", "1:9"}, 1},
		{"all of a subject and more", "0", 1000, []string{"1:1", "1:3", "1:5", "1:7", "1:9"}, 2},
		{"a subject that is not there", "2", 1000, []string{"0:0", "1:1", "0:2", "1:3", "0:4", "1:5", "0:6", "1:7", "0:8", "1:9"}, 1},
	} {
		tests = append(tests, test{"purge " + tt.name, func(t *testing.T, n nodes) {
			for i := range 10 {
				mustPublish(t, n.a, "s", fmt.Sprint(i%2), fmt.Sprint(i))
			}
			for range 2 { // a second time changes nothing
				testkit.Must(t, n.b.Purge(t.Context(), "s", tt.subject, tt.below))
				state, err := n.a.State(t.Context(), "s")
				testkit.Must(t, err)
				testkit.That(t, state.First == tt.first && state.Last == 10 && state.Messages == uint64(len(tt.left)), "state %+v", state)
			}
			testkit.Equal(t, mustPublish(t, n.a, "s", "0", "next"), 11)
			want := append(tt.left, "0:next")
			testkit.Eventually(t, "what is left", func() bool { // a replica may not have purged yet
				part := readPart(t, n.a, "s", streams.Query{From: 1})
				return fmt.Sprint(texts(part.Messages)) == fmt.Sprint(want)
			})
		}})
	}
	return tests
}
