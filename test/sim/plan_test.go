package sim

import (
	"time"

	"github.com/eventyard/eventyard/processor"
)

// plan is what a seed decides for a whole run.
type plan struct {
	seed  uint64
	name  string
	lasts time.Duration

	partitions, instances, most int
	greedy, watch, host         bool
	checkpoints                 processor.Checkpoints
	maxBatch                    int

	// Shares of handler calls.
	failures, long, stubborn float64
	// What may befall the group; the more often it is listed, the more often it does.
	acts []act
	// every is about how often something does.
	every time.Duration
	// between events published.
	publish time.Duration
}

type act int

const (
	join act = iota
	leave
	crash
	comeBack // with the id of one that has crashed or left
	pause
	cutOff // one instance cannot reach the store
	storm  // the store is slow, down, or lossy for all
	static // connections to the hub break
	clock  // wall clocks jump
)

// calm is what a group does to itself: nothing of it may repeat an event.
var calm = []act{join, join, leave, leave, comeBack, clock}

var kinds = []struct {
	name string
	acts []act
}{
	{"calm", calm},
	{"crashes", append([]act{crash, crash, comeBack, join}, calm...)},
	{"pauses", append([]act{pause, pause, pause}, calm...)},
	{"storms", append([]act{storm, storm, cutOff, cutOff, static}, calm...)},
	{"everything", append([]act{crash, crash, join, comeBack, pause, pause, storm, cutOff, static}, calm...)},
}

func planOf(seed uint64) plan {
	d := dice{seed}.of("plan", 0)
	kind := kinds[seed%uint64(len(kinds))]
	p := plan{
		seed: seed, name: kind.name, acts: kind.acts,
		lasts:      *hours,
		partitions: 64, instances: 1 + d.below(8), most: 20,
		greedy: d.chance(0.5), watch: d.chance(0.2), host: d.chance(0.3),
		maxBatch: pick(d, []int{1, 10, 100}),
		every:    d.between(20*time.Second, 3*time.Minute),
		publish:  d.between(500*time.Millisecond, 3*time.Second),
		failures: pick(d, []float64{0, 0.02}),
		long:     pick(d, []float64{0, 0.01}),
	}
	p.checkpoints = pick(d, []processor.Checkpoints{
		{}, {Auto: true}, {Every: 5 * time.Second}, {Auto: true, Every: 20 * time.Second, Events: 50},
	})
	if p.watch { // everyone looks at every change, which makes many rounds
		p.most = 10
	}
	if kind.name != "calm" && d.chance(0.3) {
		p.stubborn = 0.002
	}
	return p
}

// config is that of every instance.
func (p plan) config() processor.Config {
	cfg := processor.Config{
		Group: "billing", MaxBatch: p.maxBatch, MaxWait: 30 * time.Second,
		Lease: leaseTime, Renew: leaseTime / 3,
		Handoff: 20 * time.Second, Stop: stopTime,
		Checkpoints: p.checkpoints, HandlerTimeout: 45 * time.Second, StallAfter: time.Minute,
	}
	if p.greedy {
		cfg.Strategy = processor.Greedy
	}
	return cfg
}

const (
	leaseTime = 30 * time.Second
	stopTime  = 20 * time.Second
)
