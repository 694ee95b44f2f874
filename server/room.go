package server

import (
	"context"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage"
)

// How often the room on the disk is looked at, for how long that is remembered, and after how long it says
// something about days.
const (
	roomEvery = time.Minute
	roomKept  = 24 * time.Hour
	roomLeast = 10 * time.Minute
)

// roomSample is how many bytes a disk had free at a time.
type roomSample struct {
	at   time.Time
	free int64
}

// room remembers how many bytes the disk of the data folder had free. run owns the goroutine that looks.
type room struct {
	// free is what the disk has now; nil: there is no folder.
	free func() (int64, error)

	mu      sync.Mutex
	samples []roomSample // the oldest first; guarded by mu
}

func newRoom(folder string) *room {
	if folder == "" {
		return &room{}
	}
	return &room{free: func() (int64, error) {
		free, _, err := storage.Space(folder)
		return free, err
	}}
}

// run looks until ctx ends. Where the disk does not say, that time is left out.
func (r *room) run(ctx context.Context) error {
	if r.free == nil {
		<-ctx.Done()
		return nil
	}
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	for {
		if free, err := r.free(); err == nil {
			r.remember(roomSample{time.Now(), free})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// remember adds the newest sample, and forgets those that are too old beside it.
func (r *room) remember(s roomSample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.samples) > 0 && s.at.Sub(r.samples[0].at) > roomKept {
		r.samples = r.samples[1:]
	}
	r.samples = append(r.samples, s)
}

// daysLeft is that of what is remembered.
func (r *room) daysLeft() *float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return daysLeft(r.samples)
}

// daysLeft says in how many days the disk is full if it goes on as it went over the samples, the oldest of which
// is first; nil: they say too little, or the free bytes do not shrink.
//
// With t in days and f the free bytes, both less their means, the line that fits best (least squares) has the
// slope Σtf / Σt², in bytes a day, and
//
//	days left = newest f / -slope
//
// A line through all of them is not led astray by the jump where retention has just removed a segment, as one
// through the first and the last would be.
func daysLeft(samples []roomSample) *float64 {
	if len(samples) < 2 {
		return nil
	}
	oldest, newest := samples[0], samples[len(samples)-1]
	if newest.at.Sub(oldest.at) < roomLeast {
		return nil
	}
	days := func(s roomSample) float64 { return s.at.Sub(oldest.at).Hours() / 24 }
	more := func(s roomSample) float64 { return float64(s.free - oldest.free) } // exact, however large the disk
	var sumDays, sumMore float64
	for _, s := range samples {
		sumDays += days(s)
		sumMore += more(s)
	}
	count := float64(len(samples))
	var both, squares float64
	for _, s := range samples {
		t := days(s) - sumDays/count
		both += t * (more(s) - sumMore/count)
		squares += t * t
	}
	slope := both / squares
	if slope >= 0 {
		return nil
	}
	return new(float64(newest.free) / -slope)
}
