package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// contender is one side of a comparison. It sets itself up in an empty folder, which is
// not timed, works, and tells how much it got done.
type contender struct {
	name string
	run  func(ctx context.Context, dir string, limit limit) (tally, error)
}

// limit says when a contender's work is enough: whichever comes first.
type limit struct {
	period time.Duration
	// bytes bounds the events' bytes in all; zero means no bound.
	bytes int64
}

// tally is what a contender got done in one round.
type tally struct {
	events, bytes int64
	took          time.Duration
	// allocations and allocated count the whole process, so with what runs beside it.
	allocations, allocated uint64
	// latencies are those of each call, sorted, where they were measured.
	latencies []time.Duration
}

// result is what one contender did, round by round.
type result struct {
	name   string
	rounds []tally
}

func (r result) series(value func(t tally) float64) measure.Series {
	s := make(measure.Series, len(r.rounds))
	for i, t := range r.rounds {
		s[i] = value(t)
	}
	return s
}

// rate is in events per second.
func (r result) rate() measure.Series {
	return r.series(func(t tally) float64 { return float64(t.events) / t.took.Seconds() })
}

func (r result) bytesPerSecond() measure.Series {
	return r.series(func(t tally) float64 { return float64(t.bytes) / t.took.Seconds() })
}

func (r result) nanosecondsPerEvent() measure.Series {
	return r.series(func(t tally) float64 { return float64(t.took) / float64(max(t.events, 1)) })
}

func (r result) allocationsPerEvent() measure.Series {
	return r.series(func(t tally) float64 { return float64(t.allocations) / float64(max(t.events, 1)) })
}

func (r result) allocatedPerEvent() measure.Series {
	return r.series(func(t tally) float64 { return float64(t.allocated) / float64(max(t.events, 1)) })
}

// compare lets the contenders take turns, each in a folder of its own.
func (b *bench) compare(ctx context.Context, lim limit, all ...contender) ([]result, error) {
	return b.turns(all, func(c contender) (tally, error) { return b.once(ctx, lim, c) })
}

// turns runs all contenders in each round, in another order each time.
func (b *bench) turns(all []contender, once func(c contender) (tally, error)) ([]result, error) {
	results := make([]result, len(all))
	for round := range b.rounds {
		for turn := range all {
			i := (turn + round) % len(all)
			t, err := once(all[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			results[i].name = all[i].name
			results[i].rounds = append(results[i].rounds, t)
			b.progress("  %d/%d  %-60s %10s events/s", round+1, b.rounds, all[i].name,
				measure.Number(float64(t.events)/t.took.Seconds()))
		}
	}
	return results, nil
}

// once runs a contender in a folder of its own and clears up behind it.
func (b *bench) once(ctx context.Context, lim limit, c contender) (tally, error) {
	if err := ctx.Err(); err != nil {
		return tally{}, err
	}
	dir, err := b.newFolder()
	if err != nil {
		return tally{}, err
	}
	t, err := c.run(ctx, dir, lim)
	return t, errors.Join(err, os.RemoveAll(dir), quiesce(ctx))
}

func (b *bench) newFolder() (string, error) {
	b.used++
	dir := filepath.Join(b.folder, fmt.Sprint(b.used))
	return dir, os.Mkdir(dir, 0o700)
}

// quiesce lets the operating system write what one contender left behind before the
// next begins. Where there is no such command, the next one pays for it.
func quiesce(ctx context.Context) error {
	runtime.GC()
	path, err := exec.LookPath("sync")
	if err != nil {
		return nil
	}
	return exec.CommandContext(ctx, path).Run()
}

// job is work that several writers do at once, again and again.
type job struct {
	writers int
	// events and bytes are what one call of do accounts for.
	events, bytes int
	do            func(ctx context.Context, writer int) error
	// settle, if any, waits for what do has only begun; the clock runs until it returns.
	settle func(ctx context.Context) error
}

// drive runs a job up to the limit. Each writer's first call is not counted: it creates
// files and warms up.
func drive(ctx context.Context, lim limit, j job) (tally, error) {
	if err := each(j.writers, func(w int) error { return j.do(ctx, w) }); err != nil {
		return tally{}, err
	}
	var calls atomic.Int64
	most := int64(1) << 62
	if lim.bytes > 0 {
		most = lim.bytes / int64(j.bytes)
	}
	before := memory()
	began := time.Now()
	err := each(j.writers, func(w int) error {
		for time.Since(began) < lim.period && calls.Load() < most && ctx.Err() == nil {
			if err := j.do(ctx, w); err != nil {
				return err
			}
			calls.Add(1)
		}
		return ctx.Err()
	})
	if err == nil && j.settle != nil {
		err = j.settle(ctx)
	}
	took := time.Since(began)
	after := memory()
	return tally{
		events: calls.Load() * int64(j.events), bytes: calls.Load() * int64(j.bytes), took: took,
		allocations: after.Mallocs - before.Mallocs, allocated: after.TotalAlloc - before.TotalAlloc,
	}, err
}

func memory() runtime.MemStats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// each calls do for 0 to n-1 at once and waits for all.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
