package server

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: the days until the disk is full follow from how its free bytes have shrunk; where that says too little,
// or they do not shrink, there are none.
func TestDaysLeftFollowFromFreeBytes(t *testing.T) {
	const none = -1
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steps := func(step time.Duration, free ...int64) (samples []roomSample) {
		for i, f := range free {
			samples = append(samples, roomSample{began.Add(time.Duration(i) * step), f})
		}
		return samples
	}
	for name, c := range map[string]struct {
		samples []roomSample
		days    float64
	}{
		"none":                             {nil, none},
		"one":                              {steps(time.Hour, 100), none},
		"two of one moment":                {steps(0, 100, 50), none},
		"less than ten minutes":            {steps(3*time.Minute, 100, 90, 80, 70), none},
		"ten minutes":                      {steps(10*time.Minute, 244, 144), 0.01},
		"a day":                            {steps(12*time.Hour, 300, 250, 200), 2},
		"the same":                         {steps(time.Hour, 100, 100, 100), none},
		"more":                             {steps(time.Hour, 100, 110, 120), none},
		"nothing left":                     {steps(time.Hour, 100, 50, 0), 0},
		"a segment removed at the end":     {steps(6*time.Hour, 500, 400, 300, 200, 260), 260 / 272.0},
		"a dip that is over":               {steps(6*time.Hour, 500, 400, 500), none},
		"sizes of large disks, bytes less": {steps(time.Hour, 1<<50, 1<<50-1, 1<<50-2), (1<<50 - 2) / 24.0},
	} {
		days := daysLeft(c.samples)
		switch {
		case c.days == none:
			testkit.That(t, days == nil, "%s: there are days left", name)
		case days == nil:
			t.Errorf("%s: no days left, want %g", name, c.days)
		default:
			testkit.That(t, math.Abs(*days-c.days) <= 1e-3*c.days, "%s: %g days left, want %g", name, *days, c.days)
		}
	}
}

// V5: the disk is looked at once a minute, what is older than a day is forgotten, and a time at which the disk
// does not say is left out.
func TestRoomIsRememberedForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks int64
		r := &room{free: func() (int64, error) {
			if looks++; looks%2 == 0 {
				return 0, errors.New("it does not say")
			}
			return 1<<20 - looks, nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.run(ctx) }()
		time.Sleep(9*time.Minute + time.Second)
		testkit.That(t, r.daysLeft() == nil, "there are days left after nine minutes")
		time.Sleep(47 * time.Hour)
		synctest.Wait()
		testkit.Equal(t, len(r.samples), 24*60/2+1, "samples")
		left := r.daysLeft()
		testkit.That(t, left != nil && math.Abs(*left*24*60-float64(1<<20-looks)) < 2, "one byte a minute leaves %v", left)
		stop()
		testkit.Must(t, <-ended)
	})
}

// V5: a serving yard says in how many days its disk is full.
func TestStorageSaysInHowManyDaysTheDiskIsFull(t *testing.T) {
	testengine.NeedsFiles(t)
	r := start(t, quick(t))
	client, kept := r.admin(), r.inside.yard.condition.room
	testkit.Eventually(t, "the first look at the disk", func() bool {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return len(kept.samples) > 0
	})
	testkit.That(t, testkit.Value(client.Storage(t.Context()))(t).Nodes[0].DaysLeft == nil, "it says days before it can know")
	now := time.Now()
	kept.mu.Lock()
	kept.samples = []roomSample{{now.Add(-24 * time.Hour), 30 << 30}, {now, 20 << 30}}
	kept.mu.Unlock()
	left := testkit.Value(client.Storage(t.Context()))(t).Nodes[0].DaysLeft
	testkit.That(t, left != nil && math.Abs(*left-2) < 0.001, "20 GiB at 10 GiB a day are %v days", left)
}
