package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C4, V4: other nodes are waited for as long as the asker has patience, a little where it has none left, and
// never for longer than the answer is worth.
func TestOtherNodesAreWaitedForWithPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for patience, want := range map[time.Duration]time.Duration{
			200 * time.Millisecond: 200 * time.Millisecond,
			-time.Hour:             25 * time.Millisecond,
			time.Hour:              2 * time.Second,
		} {
			began := time.Now()
			waiting, cancel := cluster.Wait(cluster.WithPatience(t.Context(), began.Add(patience)), 2*time.Second)
			<-waiting.Done()
			testkit.Equal(t, time.Since(began), want, "with a patience of "+patience.String())
			cancel()
		}
		waiting, cancel := cluster.Wait(t.Context(), time.Second)
		defer cancel()
		ends, _ := waiting.Deadline()
		testkit.Equal(t, time.Until(ends), time.Second, "of who says nothing of it")
	})
}
