package v1

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/busiest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1: the busiest keys of a partition, and of a hub, are told with how many events had them, how much that
// is of the partition, and since when it is counted.
func TestBusiestKeys(t *testing.T) {
	y := newYard(t)
	y.hub("homes", 4)
	const path = "/api/v1/hubs/HOMES/keys"
	keys := func(query string) admin.BusyKeys {
		return read[admin.BusyKeys](t, y.want(200, "GET", path+query, nil))
	}
	first := keys("")
	testkit.That(t, first.Hub == "homes" && first.Events == 0 && first.Keys != nil && len(first.Keys) == 0 && !first.Since.IsZero(), "at first: %+v", first)

	strange := "h\u202e<b>\n\x1b[31m"
	send := func(partition int, key string, times int) {
		event := fmt.Sprintf(`{"body":"x","key":%q},`, key)
		y.want(201, "POST", fmt.Sprintf("/api/v1/hubs/homes/events?partition=%d", partition), "["+strings.TrimSuffix(strings.Repeat(event, times), ",")+"]")
	}
	send(1, "h-7", 30)
	send(1, "h-8", 10)
	send(1, "", 10)
	send(2, "h-7", 5)
	got := keys("?limit=3")
	testkit.That(t, got.Events == 55 && got.Keyed == 45 && got.Since.Equal(first.Since.Time), "in all: %+v", got)
	testkit.Slices(t, got.Keys, []admin.BusyKey{
		{Partition: "1", Key: "h-7", Events: 30, Share: .6}, {Partition: "1", Key: "h-8", Events: 10, Share: .2}, {Partition: "2", Key: "h-7", Events: 5, Share: 1},
	})
	y.want(201, "POST", "/api/v1/hubs/homes/events", []map[string]any{{"body": "x", "key": strange}})
	one := keys("?partition=2&limit=1")
	testkit.That(t, one.Events >= 5 && len(one.Keys) == 1 && one.Keys[0].Partition == "2", "of one partition: %+v", one)
	testkit.That(t, strings.Contains(fmt.Sprint(keys("").Keys), strange), "a key of any text")

	y.want(404, "GET", "/api/v1/hubs/nowhere/keys", nil)
	y.want(404, "GET", path+"?partition=4", nil)
	y.want(400, "GET", path+"?partition=1,1", nil)
	y.want(400, "GET", path+"?limit=0", nil)
}

// V1: what nodes did not answer is told, and counts that may be too high say by how much.
func TestBusiestKeysOfSeveralNodes(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	y := newYard(t, func(cfg *Config) {
		cfg.Keys = func(_ context.Context, hub string, partitions []string) ([]broker.KeyTally, []string, error) {
			testkit.Equal(t, hub+" "+strings.Join(partitions, " "), "homes 0 1")
			return []broker.KeyTally{
				{Partition: "0", Since: since.Add(time.Second), Tally: busiest.Tally{Events: 3, Keyed: 3, Keys: []busiest.Key{{Key: "a", Count: 3, Excess: 1}}}},
				{Partition: "1", Since: since},
			}, []string{"node-2"}, nil
		}
	})
	y.hub("homes", 2)
	got := read[admin.BusyKeys](t, y.want(200, "GET", "/api/v1/hubs/homes/keys", nil))
	testkit.Slices(t, got.Unanswered, []string{"node-2"})
	testkit.Slices(t, got.Keys, []admin.BusyKey{{Partition: "0", Key: "a", Events: 3, Error: 1, Share: 1}})
	testkit.That(t, got.Since.Equal(since), "since %s", got.Since)
}

// R3: who asks for the keys of too many partitions is told what to do.
func TestKeysOfTooManyPartitions(t *testing.T) {
	y := newYard(t, func(cfg *Config) {
		cfg.Keys = func(context.Context, string, []string) ([]broker.KeyTally, []string, error) {
			return nil, nil, broker.ErrTooManyKeysCounted
		}
	})
	y.hub("homes", 1)
	y.refused(429, "too-many-keys-counted", "GET", "/api/v1/hubs/homes/keys", nil)
}
