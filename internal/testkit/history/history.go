// Package history records what clients did with something that they share, and checks with porcupine
// that one order of all calls, each at a moment between its beginning and its end, explains every
// answer: that the thing is linearizable. It knows registers, logs and receivers with epochs. Only tests
// import it.
package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// Moment is a point of a history. Moments are counted and not measured: of two that a clock shows alike
// the order is known all the same.
type Moment int64

// never is the end of a call of which nothing was heard: it may have an effect at any later moment. One
// that has none is the last of all, where nobody sees the effect.
const never = Moment(math.MaxInt64)

// recorder is the calls of a history. Goroutines may record at once.
type recorder struct {
	clock atomic.Int64

	mu    sync.Mutex
	calls []porcupine.Operation // guarded by mu
}

// Now is the present moment. Who makes a call asks for it before.
func (r *recorder) Now() Moment { return Moment(r.clock.Add(1)) }

func (r *recorder) add(client int, begun, ended Moment, input, output any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, porcupine.Operation{ClientId: client, Input: input, Output: output, Call: int64(begun), Return: int64(ended)})
}

// Len is how many calls were recorded.
func (r *recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

const (
	// checkTime bounds a check: histories of a few hundred calls take milliseconds.
	checkTime = time.Minute
	// mostShown is how many calls an error names.
	mostShown = 12
)

// check gives an error where no order explains all calls. It names the last of the longest order that
// there is, and those of the others that ended first.
func check(model porcupine.Model, calls []porcupine.Operation) error {
	result, info := porcupine.CheckOperationsVerbose(model, calls, checkTime)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("whether %d calls are linearizable was not found out within %v", len(calls), checkTime)
	}
	var b strings.Builder
	parts := [][]porcupine.Operation{calls}
	if model.Partition != nil {
		parts = model.Partition(calls)
	}
	for i, orders := range info.PartialLinearizationsOperations() {
		var longest []porcupine.Operation
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
		if len(longest) < len(parts[i]) { // else all of this part are explained
			describe(&b, model, longest, parts[i])
		}
	}
	return fmt.Errorf("no order explains all %d calls%s", len(calls), b.String())
}

func describe(b *strings.Builder, model porcupine.Model, order, all []porcupine.Operation) {
	type span struct{ call, back int64 } // no two calls begin at one moment and end at one
	ordered := map[span]bool{}
	for _, c := range order {
		ordered[span{c.Call, c.Return}] = true
	}
	left := slices.DeleteFunc(slices.Clone(all), func(c porcupine.Operation) bool { return ordered[span{c.Call, c.Return}] })
	slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	show := func(what string, calls []porcupine.Operation) {
		fmt.Fprintf(b, "\n%s:", what)
		for _, c := range calls {
			fmt.Fprintf(b, "\n\tclient %d, from %d to %d: %s", c.ClientId, c.Call, c.Return, model.DescribeOperation(c.Input, c.Output))
		}
	}
	show("the longest order ends with", order[max(0, len(order)-mostShown):])
	show("it leaves out", left[:min(len(left), mostShown)])
}
