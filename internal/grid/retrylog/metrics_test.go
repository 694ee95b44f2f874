package retrylog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V7: the logs of all shards of a node count together, and what waits in a shard that was given up is
// counted here no more.
func TestShardsCountTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), Sync: disk.OS, Log: testkit.Quiet()})
		testkit.Must(t, err)
		defer func() { testkit.Check(t, engine.Close()) }()
		registry, ladder := prometheus.NewRegistry(), []time.Duration{time.Minute, time.Hour}
		metrics := testkit.Value(NewMetrics(registry, ladder))(t)
		store := metatest.NewMemory()
		var stops []func()
		for shard := range 3 {
			held := shards.Held{Shard: shard, Epoch: 1}
			logs, err := Open(t.Context(), Config{Engine: engine, Meta: store, Ladder: ladder, Held: &held, Metrics: metrics, Log: testkit.Quiet()})
			testkit.Must(t, err)
			testkit.Must(t, logs.Put(t.Context(), time.Hour, []pending.Delivery{thing("a"), thing("b")}))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- logs.Run(ctx, func(context.Context, []Entry) {}) }()
			stops = append(stops, func() {
				cancel()
				testkit.Must(t, <-ended)
			})
		}
		synctest.Wait()
		want := func(put, waiting string) {
			t.Helper()
			testkit.Must(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP eventyard_grid_retries_put_total Events that were put aside to be tried again, since this node started.
# TYPE eventyard_grid_retries_put_total counter
eventyard_grid_retries_put_total `+put+`
# HELP eventyard_grid_retries_waiting Events put aside to be tried again, by how long they wait.
# TYPE eventyard_grid_retries_waiting gauge
eventyard_grid_retries_waiting{wait="1h0m0s"} `+waiting+`
eventyard_grid_retries_waiting{wait="1m0s"} 0
`), "eventyard_grid_retries_put_total", "eventyard_grid_retries_waiting"))
		}
		want("6", "6")
		stops[0]()
		want("6", "4")
		stops[1]()
		stops[2]()
		want("6", "0")
	})
}
