package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/internal/testkit"
)

func batchOf(numbers ...int64) *functions.Batch {
	b := &functions.Batch{Function: "bill", Hub: "orders", Partition: "0", Attempt: 1}
	for _, n := range numbers {
		b.Events = append(b.Events, event.Event{Sequence: n})
	}
	return b
}

func ended(second int, err error) functions.Ended {
	return functions.Ended{Began: time.Unix(int64(second), 0), Took: time.Millisecond, Err: err}
}

func asked(sequence int64) CallQuery {
	return CallQuery{Hub: "Orders", Partition: "0", Sequence: sequence}
}

// V2: a node remembers which calls an event was in, also where events of a call are not in a row; in the order in
// which they were made.
func TestCallsWithAnEventAreRemembered(t *testing.T) {
	m := newCallMemory()
	m.heard(batchOf(1, 2, 3), ended(3, nil))
	m.heard(batchOf(1, 3), ended(2, errors.New("no")))
	m.heard(batchOf(2), functions.Ended{Began: time.Unix(1, 0), Cancelled: true})
	m.heard(&functions.Batch{Function: "bill", Hub: "orders", Partition: "1", Events: []event.Event{{Sequence: 2}}}, ended(4, nil))
	say := func(n int64) string {
		var words []string
		for _, c := range m.of(asked(n)).Of("Bill").Calls {
			words = append(words, fmt.Sprintf("%d %s of %d", c.Began.Unix(), c.Outcome, c.Events))
		}
		return strings.Join(words, ", ")
	}
	testkit.Equal(t, say(2), "1 cancelled of 1, 3 done of 3")
	testkit.Equal(t, say(3), "2 done of 2, 3 done of 3") // the batch has no verdict, which only a host can give
	testkit.Equal(t, say(9), "")
	m.heard(&functions.Batch{Function: "ship", Hub: "orders", Partition: "0", Events: []event.Event{{Sequence: 2}}}, ended(5, nil))
	testkit.Equal(t, say(2), "1 cancelled of 1, 3 done of 3")
	testkit.Equal(t, len(m.of(asked(2)).Of("ship").Calls), 1, "calls of another function")
}

// R2: what is remembered is bounded, and says from when on it is whole; calls that go well drive out none that did not.
func TestMemoryOfCallsIsBounded(t *testing.T) {
	m := newCallMemory()
	m.began = time.Unix(0, 0)
	began := m.of(asked(0)).Since
	m.heard(batchOf(0), ended(0, errors.New(strings.Repeat("é", maxCallReason))))
	for i := range goodCalls + 10 {
		m.heard(batchOf(int64(i)), ended(1+i, nil))
	}
	testkit.Equal(t, len(m.good.all), goodCalls)
	testkit.Equal(t, len(m.of(asked(0)).Calls), 1, "the one that failed")
	testkit.Equal(t, len(m.of(asked(9)).Calls), 0, "one that was long ago")
	since := m.of(asked(0)).Since
	testkit.That(t, since.Equal(time.Unix(11, 0)) && !since.Equal(began), "it says that it remembers since %v", since)
	testkit.That(t, len(cutReason(strings.Repeat("é", maxCallReason))) <= maxCallReason+len("…"), "a reason is long")
	joined := JoinCalls([]Calls{m.of(asked(0)), {Since: time.Unix(5, 0), Calls: []Call{{Began: time.Unix(-1, 0)}}}})
	testkit.That(t, len(joined.Calls) == 2 && joined.Calls[0].Began.Unix() == -1 && joined.Since.Equal(since), "joined: %+v", joined)
}

// R2: what is remembered of one call is bounded, whatever events it had and however it failed, and what is not
// known is not told.
func TestMemoryOfOneCallIsBounded(t *testing.T) {
	m := newCallMemory()
	var odd []int64
	for n := range int64(1000) {
		odd = append(odd, 2*n+1)
	}
	m.heard(batchOf(odd...), ended(1, nil))
	testkit.That(t, len(m.good.all[0].rows) == maxCallRows, "it remembers %d rows", len(m.good.all[0].rows))
	outcome := func(n int64) string {
		var words []string
		for _, c := range m.of(asked(n)).Calls {
			words = append(words, c.Outcome)
		}
		return strings.Join(words, ", ")
	}
	testkit.Equal(t, outcome(7), "done")
	testkit.Equal(t, outcome(8), "", "an event in a gap")
	testkit.Equal(t, outcome(odd[maxCallRows-1]), "done", "the last that is known")
	testkit.Equal(t, outcome(odd[maxCallRows]), "unknown")
	testkit.Equal(t, outcome(odd[maxCallRows]+1), "unknown", "which may have been an event")
	testkit.Equal(t, outcome(odd[999]+2), "", "behind the last")

	rows, more := rowsOf(batchOf(1, 2, 3, 7, 9, 10))
	testkit.Deep(t, rows, []row{{1, 3}, {7, 7}, {9, 10}})
	testkit.That(t, !more, "there are more")
}
