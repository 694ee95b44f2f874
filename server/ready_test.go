package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C5: a node is not ready while the storage takes no writes, although it can show that it lives; a lost
// leader is no reason, and what hangs is not waited for.
func TestReadinessFollowsTrialWrites(t *testing.T) {
	out := errors.New("no majority")
	for _, tt := range []struct {
		name  string
		write func(ctx context.Context) error
	}{
		{"refused", func(context.Context) error { return out }},
		{"not answered", func(ctx context.Context) error {
			<-ctx.Done()
			return out
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Bool
				y := &yard{nodes: cluster.Alone("a"), records: records{trial: newTrial(func(ctx context.Context) error {
					if lost.Load() {
						return tt.write(ctx)
					}
					return nil
				})}}
				testkit.Run(t, y.trial.run)
				changes := 0
				follow := func(d time.Duration) {
					for end := time.Now().Add(d); time.Now().Before(end); {
						before := y.ready() == nil
						time.Sleep(100 * time.Millisecond)
						if y.ready() == nil != before {
							changes++
						}
					}
				}
				follow(time.Minute)
				for range 5 { // elections
					lost.Store(true)
					follow(9 * time.Second)
					lost.Store(false)
					follow(tryEvery + tryTime)
				}
				testkit.Equal(t, changes, 0, "changes while leaders were lost")
				lost.Store(true)
				follow(unwritableAfter + tryEvery + tryTime)
				testkit.ErrorIs(t, y.ready(), out)
				follow(time.Hour)
				testkit.Equal(t, changes, 1, "changes while the majority was lost")
				lost.Store(false)
				follow(tryEvery + tryTime)
				testkit.Must(t, y.ready())
				follow(time.Hour)
				testkit.Equal(t, changes, 2, "changes in all")
			})
		})
	}
}

// On one machine there is nothing to try.
func TestReadinessOnOneMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{nodes: cluster.Alone("a"), records: records{trial: newTrial(nil)}}
		testkit.Run(t, y.trial.run)
		time.Sleep(time.Hour)
		testkit.Must(t, y.ready())
	})
}

// C5, C8: a node whose server inside has stopped storing is not ready, although it can show that it lives.
// That servers inside have no leader for a moment is no reason.
func TestReadinessOfAPeerThatHasStopped(t *testing.T) {
	for _, tt := range []struct {
		says  error
		ready bool
	}{{nil, true}, {errors.New("no leader yet"), true}, {storage.ErrStopped, false}} {
		y := &yard{nodes: cluster.Alone("a"), records: records{trial: newTrial(nil)}, storage: &storage.Storage{Ready: func() error { return tt.says }}}
		y.cfg.Peer.Bundle = &Bundle{}
		testkit.Equal(t, y.ready() == nil, tt.ready, "ready where storage says %v", tt.says)
	}
}
