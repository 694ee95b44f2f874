package series

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// Source adds the samples that it knows. It is called once a second, by one goroutine, and does not wait
// for storage.
type Source func(ctx context.Context, now time.Time, add func(Key, float64))

// Sampler fills a store.
type Sampler struct {
	Store   *Store
	Sources []Source
}

// Run samples in the middle of each second until ctx ends: so each second has one sample, whatever the
// clock of the machine does to the waits, and those of several nodes are of the same seconds.
func (s *Sampler) Run(ctx context.Context) error {
	var samples []Sample
	add := func(k Key, v float64) { samples = append(samples, Sample{k, v}) }
	for {
		now := time.Now()
		middle := now.Truncate(time.Second).Add(time.Second / 2)
		if !middle.After(now) {
			middle = middle.Add(time.Second)
		}
		if sleep.For(ctx, middle.Sub(now), nil) != nil {
			return nil
		}
		now, samples = time.Now(), samples[:0]
		for _, source := range s.Sources {
			source(ctx, now, add)
		}
		s.Store.Add(now, samples)
	}
}
