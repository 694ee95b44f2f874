package groups

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: the limits of groups that the guide names are those that hold.
func TestLimitsAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/kafka.md"))(t))
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	testkit.Equal(t, Config{MaxGroups: DefaultMaxGroups}.share(), DefaultMaxGroups/2)
	for _, row := range []string{
		fmt.Sprintf("id of a group, of an instance | %d bytes |", member.MaxIDBytes),
		fmt.Sprintf("members of a group | %s; what all of them say and are assigned is %d KiB as it is stored |", thousands(member.MaxMembers), member.MaxBytes>>10),
		fmt.Sprintf("members of all groups in use, of those that one policy has made | %d MiB and %d MiB of memory at a node; then nobody new is let in |",
			DefaultMaxBytes>>20, DefaultMaxBytes>>21),
		fmt.Sprintf("`session.timeout.ms` | %.0f s to %.0f min |", member.MinSession.Seconds(), member.MaxSession.Minutes()),
		fmt.Sprintf("metadata beside an offset | %s bytes |", thousands(MaxMetadataBytes)),
		fmt.Sprintf("hubs in which a group has offsets | %s, counting one with more than %d partitions for each %d |", thousands(maxShards), shardPartitions, shardPartitions),
		fmt.Sprintf("groups | %s, of which one policy may have made half, and have half of those in use;", thousands(DefaultMaxGroups)),
		fmt.Sprintf("offsets are kept | %.0f days after the last member has left and the last commit;", DefaultRetention.Hours()/24),
	} {
		testkit.That(t, strings.Contains(guide, "\n| "+row), "the guide does not have the row: %s", row)
	}
}
