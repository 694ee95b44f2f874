package member

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K2: ids are unique, tell the client, and have nothing in them that logs or keys of the store stumble over.
func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, client := range []string{"", "billing", "a/b\n\x00", strings.Repeat("é", 500), "\xff"} {
		for range 3 {
			id := NewID(client)
			testkit.That(t, !seen[id], "%q was given twice", id)
			seen[id] = true
			testkit.That(t, len(id) <= MaxIDBytes && utf8.ValidString(id), "%q has %d bytes", id, len(id))
			testkit.That(t, !strings.ContainsAny(id, "/\n\x00"), "%q", id)
		}
	}
	testkit.That(t, strings.HasPrefix(NewID("billing"), "billing-"), "the client is not told")
}

// K2: the topics of a subscription are read as clients write them, in every version.
func TestTopics(t *testing.T) {
	for version := range int16(4) {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = version, []string{"orders", "", "größe"}, []byte("more")
		m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "orders", Partitions: []int32{1}}}
		testkit.Slices(t, testkit.Value(Topics(m.AppendTo(nil)))(t), m.Topics, "version %d", version)
	}
}

// K6: a subscription that promises more than it holds is refused, and nothing is allocated for it.
func FuzzTopics(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0})
	f.Add([]byte{0, 1, 0, 0, 0, 1, 0xff, 0xff})
	f.Add([]byte{0, 1, 0, 0, 0, 2, 0, 1, 'a', 0, 9})
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = []string{"orders"}
	f.Add(m.AppendTo(nil))
	f.Fuzz(func(t *testing.T, metadata []byte) {
		topics, err := Topics(metadata)
		if err != nil {
			testkit.That(t, errors.Is(err, ErrProtocol), "refused with %v", err)
			return
		}
		size := 6
		for _, topic := range topics {
			size += 2 + len(topic)
		}
		testkit.That(t, size <= len(metadata), "%d bytes were read of %d", size, len(metadata))
	})
}
