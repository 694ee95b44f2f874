package sim

import "time"

// dice is a source of chance that can be divided: what one part draws does not change what
// another does, in whatever order goroutines come to draw.
type dice struct{ state uint64 }

// of gives the dice of a thing that has a name and a number.
func (d dice) of(name string, n int) *dice {
	h := d.state ^ 0xcbf29ce484222325
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return &dice{mix(h + uint64(n)*0x9e3779b97f4a7c15)}
}

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	return mix(d.state)
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below is 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// chance is true once in so many.
func (d *dice) chance(of float64) bool { return float64(d.next()>>11)/(1<<53) < of }

// between is a duration to the nanosecond, so that two seldom fall on the same instant.
func (d *dice) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.next()%uint64(most-least))
}

func pick[T any](d *dice, from []T) T { return from[d.below(len(from))] }
