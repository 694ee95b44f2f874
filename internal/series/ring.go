package series

import (
	"math"
	"time"
)

// unknown stands where nothing was measured.
var unknown = float32(math.NaN())

func isUnknown(v float32) bool { return v != v }

// ring has the newest values, one for each step of the clock. A step is known by its number since 1970,
// so that rings of several nodes fit together.
type ring struct {
	step   int64 // in seconds
	newest int64 // the number of the newest step; zero: there is none
	count  int   // how many values the newest is made of
	values []float32
}

func newRing(step time.Duration, values []float32) ring {
	for i := range values {
		values[i] = unknown
	}
	return ring{step: int64(step / time.Second), values: values}
}

func (r *ring) at(number int64) *float32 { return &r.values[number%int64(len(r.values))] }

// add takes a value of a second. Of those in one step a rate becomes their mean, and of a gauge the
// largest stays, for a peak is not to be lost between two points.
func (r *ring) add(second int64, value float32, gauge bool) {
	number := second / r.step
	switch {
	case number < r.newest:
		return // the clock was put back: what is known stays
	case number > r.newest:
		for n := max(r.newest, number-int64(len(r.values))) + 1; n < number; n++ {
			*r.at(n) = unknown
		}
		r.newest, r.count = number, 1
		*r.at(number) = value
		return
	}
	r.count++
	if kept := r.at(number); gauge {
		*kept = max(*kept, value)
	} else {
		*kept += (value - *kept) / float32(r.count)
	}
}

// last gives up to count values, the last of which is that of the step of a second.
func (r *ring) last(second int64, count int) Points {
	end := second / r.step
	p := Points{Step: time.Duration(r.step) * time.Second, Values: make([]float32, min(count, len(r.values)))}
	p.first = end - int64(len(p.Values)) + 1
	for i := range p.Values {
		number := p.first + int64(i)
		if number > r.newest || number <= r.newest-int64(len(r.values)) {
			p.Values[i] = unknown
		} else {
			p.Values[i] = *r.at(number)
		}
	}
	return p
}
