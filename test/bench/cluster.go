package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// clusterMeasurements are those of a yard of several nodes on three NATS servers, which keep
// three replicas and sync before they acknowledge. Beside it the same servers are published to
// plainly, in turns.
func clusterMeasurements() []measurement {
	return []measurement{
		{name: "frames", run: measureFrames},
		{name: "amqp", run: measureClusterAMQP},
		{name: "singles", run: measureClusterSingles},
		{name: "takeover", run: measureTakeover},
		{name: "start", run: measureClusterStart},
		{name: "sizes", run: measureSizes},
	}
}

// streamCounts are over how many streams the 16 partitions are spread; one will do to see that all
// works.
func (b *bench) streamCounts() []int {
	if b.short() {
		return []int{1}
	}
	return []int{1, 4, 16}
}

// short: the run says nothing of speed.
func (b *bench) short() bool { return b.period < time.Second/4 }

// frameWriters is how many batches are under way at once: two for each partition.
const frameWriters = 2 * partitions

// spread is a load on streams. Senders send to one partition each.
type spread struct {
	streams, partitions, senders int
	batch                        int // events of 1 KiB in one publication
	ahead                        int // publications of a sender that are under way at once
}

func (s spread) job(do func(ctx context.Context, writer int) error) job {
	return job{writers: s.senders * s.ahead, events: s.batch, bytes: s.batch * eventBytes, do: do}
}

// partition is where a writer's publications go.
func (s spread) partition(writer int) int { return writer % s.senders % s.partitions }

// bodies are those of events that nobody sends twice at once: servers compress larger messages, and
// would find what they have already.
func (s spread) bodies() (all [][][]byte) {
	bytes := randomBytes(s.senders * s.ahead * s.batch * eventBytes)
	for range s.senders * s.ahead {
		var batch [][]byte
		for range s.batch {
			batch, bytes = append(batch, bytes[:eventBytes:eventBytes]), bytes[eventBytes:]
		}
		all = append(all, batch)
	}
	return all
}

// withServers runs three servers for a measurement.
func (b *bench) withServers(ctx context.Context, do func(s *natsServers) error) (err error) {
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := startServers(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return do(s)
}

// withNode runs three servers with a plain client and the storage of a node beside it, which
// publish and append in turns.
func (b *bench) withNode(ctx context.Context, do func(servers *natsServers, plain *plainClient, node *engineNode) error) error {
	return b.withServers(ctx, func(servers *natsServers) (err error) {
		plain, err := dialPlain(ctx, servers)
		if err != nil {
			return err
		}
		defer plain.close()
		node, err := openNode(ctx, servers)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.close()) }()
		return do(servers, plain, node)
	})
}

// measureFrames appends batches of 100 KiB to the engine of a node in this process, each of which
// becomes a frame, and publishes as many bytes plainly.
func measureFrames(ctx context.Context, b *bench) error {
	return b.withNode(ctx, func(_ *natsServers, plain *plainClient, node *engineNode) error {
		for _, streams := range b.streamCounts() {
			b.progress("frames: batches of 100 x 1 KiB to 16 partitions in %s", inStreams(streams))
			s := spread{streams, partitions, frameWriters, batchEvents, 1}
			r, err := b.alternate(ctx, limit{period: b.period},
				plain.publishes("JetStream: messages of 100 KiB", s), node.appends("engine: batches of 100", s))
			if err != nil {
				return err
			}
			b.besidePlain("engine, batches of 100, "+inStreams(streams), r[1], r[0], atLeast(0.9))
			b.report.timings(fmt.Sprintf("Batches of 100 × 1 KiB, %d under way at once, 16 partitions in %s", s.senders, inStreams(streams)), r)
		}
		return nil
	})
}

func inStreams(n int) string {
	if n == 1 {
		return "1 stream"
	}
	return strconv.Itoa(n) + " streams"
}

// alternate lets contenders take turns that need no folder: what they leave behind is synced.
func (b *bench) alternate(ctx context.Context, lim limit, all ...contender) ([]result, error) {
	return b.turns(all, func(c contender) (tally, error) {
		if err := ctx.Err(); err != nil {
			return tally{}, err
		}
		return c.run(ctx, "", lim)
	})
}

// besidePlain puts rate and latencies beside those of plain publishing.
func (b *bench) besidePlain(what string, ours, plain result, rate target) {
	b.report.goal(what+": rate / plain JetStream's", ours.rate().Over(plain.rate()), "×", rate)
	b.report.goal("the same: p99 / plain JetStream's", ours.percentile(99).Over(plain.percentile(99)), "×", atMost(1.3))
}

// timings adds a table of rates and latencies.
func (r *report) timings(title string, results []result) {
	s := measure.Table{Title: title, Head: []string{"what", "events/s", "spread", "MB/s", "p50 (ms)", "spread", "p99 (ms)", "spread"}}
	for _, c := range results {
		s.Rows = append(s.Rows, []string{c.name, measure.Number(c.rate().Median()), c.rate().Spread(), measure.Number(c.bytesPerSecond().Median() / 1e6),
			measure.Number(c.percentile(50).Median()), c.percentile(50).Spread(), measure.Number(c.percentile(99).Median()), c.percentile(99).Spread()})
	}
	r.table(s)
}

// percentile is of how long calls took, in milliseconds.
func (r result) percentile(p int) measure.Series {
	return r.series(func(t tally) float64 { return at(t.latencies, p) })
}

func at(sorted []time.Duration, percent int) float64 {
	return float64(sorted[(len(sorted)-1)*percent/100]) / 1e6
}

// driveTimed is drive, and measures each call.
func driveTimed(ctx context.Context, lim limit, j job) (tally, error) {
	do, took := j.do, make([][]time.Duration, j.writers)
	begun := make([]bool, j.writers)
	j.do = func(ctx context.Context, w int) error {
		began := time.Now()
		err := do(ctx, w)
		if begun[w] { // the first call is not counted
			took[w] = append(took[w], time.Since(began))
		}
		begun[w] = true
		return err
	}
	t, err := drive(ctx, lim, j)
	t.latencies = slices.Concat(took...)
	slices.Sort(t.latencies)
	if err == nil && len(t.latencies) == 0 {
		err = errors.New("nothing was done in time")
	}
	return t, err
}
