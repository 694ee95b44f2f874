package cluster_test

import (
	"context"
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
		patient := func(d time.Duration) context.Context {
			return cluster.WithPatience(t.Context(), time.Now().Add(d))
		}
		for want, ctx := range map[time.Duration]context.Context{
			2 * time.Second:        t.Context(),
			200 * time.Millisecond: patient(200 * time.Millisecond),
			25 * time.Millisecond:  patient(-time.Hour),
		} {
			waiting, cancel := cluster.Wait(ctx, 2*time.Second)
			began := time.Now()
			<-waiting.Done()
			testkit.Equal(t, time.Since(began), want)
			cancel()
		}
		waiting, cancel := cluster.Wait(patient(time.Hour), time.Second)
		defer cancel()
		ends, _ := waiting.Deadline()
		testkit.Equal(t, time.Until(ends), time.Second, "of a patient asker")
	})
}
