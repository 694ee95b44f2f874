package series

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
)

// Points are the values of a series over a while, one for each step.
type Points struct {
	Step   time.Duration
	Values []float32 // NaN: nothing is known

	first int64 // the number of the first step
}

// From is when the first step begins.
func (p Points) From() time.Time {
	return time.Unix(p.first*int64(p.Step/time.Second), 0).UTC()
}

// empty are points of which none is known.
func empty(step time.Duration, first int64, count int) Points {
	return Points{Step: step, first: first, Values: slices.Repeat([]float32{unknown}, count)}
}

// Merge adds up the same series of several nodes, by the time of each point; of a kind of which the most
// counts it takes that. Where no node knows anything there is nothing, and clocks that differ by less than
// a step make no difference. Points of another step are left out: a node that has them was asked otherwise.
func Merge(f Form, all ...Points) Points {
	all = slices.DeleteFunc(slices.Clone(all), func(p Points) bool { return len(p.Values) == 0 || p.Step != all[0].Step })
	if len(all) == 0 {
		return Points{}
	}
	sum := empty(all[0].Step, all[0].first, len(all[0].Values))
	for _, p := range all {
		for i, v := range p.Values {
			at := p.first + int64(i) - sum.first
			if at < 0 || at >= int64(len(sum.Values)) || isUnknown(v) {
				continue
			}
			sum.Values[at] = f.join(sum.Values[at], v)
		}
	}
	return sum
}

// join is two values of parts as that of the whole.
func (f Form) join(x, y float32) float32 {
	switch {
	case isUnknown(x):
		return y
	case isUnknown(y):
		return x
	case f.Most:
		return max(x, y)
	}
	return x + y
}

// MarshalJSON gives null for what is unknown, and four figures of the rest: it is drawn.
func (p Points) MarshalJSON() ([]byte, error) {
	text := append([]byte(`{"from":`), strconv.FormatInt(p.first, 10)...)
	text = append(append(text, `,"step":`...), strconv.FormatInt(int64(p.Step/time.Second), 10)...)
	text = append(text, `,"values":[`...)
	for i, v := range p.Values {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendValue(text, v)
	}
	return append(text, `]}`...), nil
}

func appendValue(text []byte, v float32) []byte {
	if isUnknown(v) || math.IsInf(float64(v), 0) {
		return append(text, "null"...)
	}
	if v == float32(math.Trunc(float64(v))) && math.Abs(float64(v)) < 1<<24 {
		return strconv.AppendInt(text, int64(v), 10)
	}
	return strconv.AppendFloat(text, float64(v), 'g', 4, 32)
}

// UnmarshalJSON reads what another node says.
func (p *Points) UnmarshalJSON(text []byte) error {
	var said struct {
		From, Step int64
		Values     []*float32
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	*p = empty(time.Duration(said.Step)*time.Second, said.From, len(said.Values))
	for i, v := range said.Values {
		if v != nil {
			p.Values[i] = *v
		}
	}
	return nil
}
