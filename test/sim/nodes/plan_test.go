package nodes

import (
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
)

// plan is what a seed decides for a whole run.
type plan struct {
	seed  uint64
	name  string
	lasts time.Duration // how long there is trouble
	every time.Duration // about how often something happens
	acts  []act         // what does; the more often it is listed, the more often

	partitions, senders, producers, instances int
}

type act int

const (
	kill     act = iota // a node, and start it again
	restart             // the same with a farewell
	freeze              // a node
	cutOff              // a node from the servers and the other nodes
	noLeader            // streams have no leader for a while
	minority            // the servers have no majority for a minute
	weather             // answers are lost or late, and replicas behind
	crash               // an instance of the processor, and start another
)

var kinds = []struct {
	name string
	acts []act
}{
	{"killed", []act{kill, kill, restart, crash}},
	{"frozen", []act{freeze, freeze, cutOff, crash}},
	{"servers", []act{noLeader, minority, weather}},
	{"weather", []act{weather, weather, weather, kill, cutOff}},
	{"everything", []act{kill, restart, freeze, freeze, cutOff, cutOff, noLeader, minority, weather, weather, weather, crash}},
}

func planOf(seed uint64, lasts time.Duration) plan {
	kind := kinds[seed%uint64(len(kinds))]
	r := luck(seed, "plan")
	return plan{
		seed: seed, name: kind.name, acts: kind.acts, lasts: lasts,
		every:      between(r, 10*time.Second, 50*time.Second),
		partitions: 3, senders: 4, producers: 3, instances: 1 + r.IntN(3),
	}
}

// calm is how servers are when all is well.
func calm() model.Faults {
	return model.Faults{Delay: 3 * time.Millisecond, Lag: 20 * time.Millisecond}
}

// rough is how they are in bad weather.
func rough(r *rand.Rand) model.Faults {
	chance := func() float64 { return []float64{0, 0, 0.02, 0.1}[r.IntN(4)] }
	return model.Faults{
		Delay: between(r, time.Millisecond, 50*time.Millisecond), Lag: between(r, time.Millisecond, time.Second),
		Lost: chance(), AckLost: chance(), Twice: chance(), Late: chance(), Unavailable: chance(), AnnouncementLost: 4 * chance(),
	}
}

// luck gives chance to a thing that has a name: what one draws does not change what another does.
func luck(seed uint64, name string) *rand.Rand {
	h := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return rand.New(rand.NewPCG(seed, h))
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}
