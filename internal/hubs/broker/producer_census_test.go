package broker

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// remembered is how many producers of an account are remembered, in all partitions; of all where it is empty.
func remembered(b *Broker, account string) (n int) {
	for _, l := range b.ledgers.live() {
		l.accounts.mu.Lock()
		for _, a := range l.accounts.byID {
			if account == "" || a.owner == account {
				n++
			}
		}
		l.accounts.mu.Unlock()
	}
	return n
}

// K6, R1: a node remembers so many producers, in however many partitions they are, and of one account half of that; who has
// too many loses those of his own that were unused for longest, and others none.
func TestProducersOfAllPartitionsAreBounded(t *testing.T) {
	const partitions, limit = 5, 60
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", partitions)
		b.ledgers.census.limit = limit
		put := func(b *Broker, account string, partition int, f eventlog.Batch) Published {
			t.Helper()
			to := FrameTarget{Partition: partition, Account: account}
			p := testkit.Value(b.SubmitFrames(t.Context(), "orders", to, []eventlog.Batch{f}))(t)
			return testkit.Value(p.Wait(t.Context()))(t)
		}
		for p := range partitions {
			put(b, "modest", p, frameOf(1, 0, 0, "kept"))
		}
		for id := range int64(40) {
			for p := range partitions {
				put(b, "greedy", p, frameOf(1000+id, 0, 0, "x"))
			}
			time.Sleep(time.Second)
			testkit.That(t, remembered(b, "greedy") <= limit/2, "%d of one account are remembered", remembered(b, "greedy"))
		}
		testkit.Equal(t, remembered(b, "modest"), partitions)
		for p := range partitions {
			testkit.Equal(t, put(b, "modest", p, frameOf(1, 0, 0, "kept")).First, 0, "a repeat of the other's")
			testkit.Equal(t, put(b, "greedy", p, frameOf(1039, 0, 0, "x")).First, 40, "a repeat of the newest")
			testkit.Equal(t, put(b, "greedy", p, frameOf(1000, 0, 1, "y")).First, 41, "who was forgotten goes on where he was")
		}
		for id := range int64(2 * limit) {
			put(b, "", int(id)%partitions, frameOf(5000+id, 0, 0, "z"))
			testkit.That(t, remembered(b, "") <= limit, "%d are remembered", remembered(b, ""))
		}
		testkit.Equal(t, b.ledgers.census.all, remembered(b, ""), "what is counted")

		b = y.open(t) // it reads what was written down, and the log
		b.ledgers.census.limit = limit / 2
		for p := range partitions {
			put(b, "modest", p, frameOf(1, 0, 1, "more"))
		}
		b.ledgers.tend(t.Context(), 0)
		testkit.That(t, remembered(b, "") <= limit/2, "%d are remembered", remembered(b, ""))
		testkit.Equal(t, b.ledgers.census.all, remembered(b, ""), "what is counted")
		testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
		testkit.Equal(t, b.ledgers.census.all, 0, "what is counted of a hub that is gone")
		testkit.Equal(t, len(b.ledgers.census.by), 0)
	})
}

// K6, R1: where nobody is at rest, who names too many producers loses his own and no others, who may send again what
// they have sent; one who has none yet takes the place of a single one.
func TestProducersInUseAreSparedByOthers(t *testing.T) {
	const limit = 64
	synctest.Test(t, func(t *testing.T) {
		b := newYard(t).open(t)
		mustCreate(t, b, "orders", 1)
		b.ledgers.census.limit = limit
		id := int64(0)
		put := func(account string, n int) {
			t.Helper()
			for range n {
				id++
				to := FrameTarget{Account: account}
				p := testkit.Value(b.SubmitFrames(t.Context(), "orders", to, []eventlog.Batch{frameOf(id, 0, 0, "x")}))(t)
				testkit.Must(t, testkit.Err(p.Wait(t.Context())))
				time.Sleep(time.Second)
			}
		}
		put("b", 20)
		put("c", 20)
		put("greedy", 24)
		put("greedy", 50)
		testkit.Equal(t, [3]int{remembered(b, "b"), remembered(b, "c"), remembered(b, "greedy")}, [3]int{20, 20, 24})
		put("new", 5)
		testkit.Equal(t, [3]int{remembered(b, "b"), remembered(b, "c"), remembered(b, "new")}, [3]int{19, 20, 1})
		time.Sleep(producerRest)
		put("greedy", 1)
		testkit.Equal(t, [2]int{remembered(b, "b"), remembered(b, "greedy")}, [2]int{16, 25}, "some that are at rest")
	})
}

// K6: the limits that the guide names are those that hold.
func TestLimitsOfProducersAreDocumented(t *testing.T) {
	guide := string(testkit.Value(os.ReadFile("../../../docs/guides/operating.md"))(t))
	row := fmt.Sprintf("of a partition, of a node, of one policy at a node | %d,000, %d,000, %d,000;", maxProducers/1000, maxAllProducers/1000, maxAllProducers/2000)
	testkit.That(t, strings.Contains(guide, row), "the guide does not have: %s", row)
}
