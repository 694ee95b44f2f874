package broker

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What is checked before a hub is made is what making it checks.
func TestCheckAHub(t *testing.T) {
	before := -time.Second
	for want, cfg := range map[error]HubConfig{
		nil:                      {Name: "orders", Partitions: 3},
		ErrInvalidName:           {Name: "no such name"},
		ErrReservedName:          {Name: "api/x"},
		ErrInvalidPartitionCount: {Name: "orders", Partitions: MaxPartitions + 1},
		ErrInvalidRetention:      {Name: "orders", Age: &before},
	} {
		testkit.ErrorIs(t, cfg.Check(), want, cfg.Name)
	}
	testkit.ErrorIs(t, HubConfig{Name: "a..b"}.Check(), ErrInvalidName, "a name that is ambiguous")
}
