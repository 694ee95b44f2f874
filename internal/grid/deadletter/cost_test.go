package deadletter

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fill puts n letters, each by itself.
func (y *yard) fill(n int) (id string) {
	y.t.Helper()
	sub := y.subscribe("billing", "yard", schema.EventGrid)
	for i := range n {
		y.die(sub, i)
	}
	return sub.ID
}

// Asking for letters by their numbers reads those letters and not what lies between them.
func TestNumbersFarApartAreReadOneByOne(t *testing.T) {
	y := newYard(t)
	id := y.fill(3000)
	page := y.list(id, Query{Numbers: []int64{2990, 7, 1500, 7, 1501}})
	if got := fmt.Sprint(numbersOf(page)); got != "[7 1500 1501 2990]" || page.Next != 0 {
		t.Errorf("letters %s, next %d", got, page.Next)
	}
	if runs := y.faults.Count(logtest.OpNext); runs > 50 {
		t.Errorf("%d batches were read for 4 letters", runs)
	}
	page = y.list(id, Query{Numbers: []int64{2990, 7, 1500}, Limit: 2})
	next := y.list(id, Query{Numbers: []int64{2990, 7, 1500}, Limit: 2, From: page.Next})
	testkit.Equal(t, fmt.Sprint(numbersOf(page), numbersOf(next)), "[7 1500] [2990]", "page by page")
}

// Asking for a time reads from there, and to its end.
func TestATimeIsFoundWithoutReadingTheWholeLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		id := y.fill(2000)
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		time.Sleep(time.Hour)
		since := time.Now()
		y.die(sub, 5000, 5001)
		time.Sleep(time.Hour)
		until := time.Now()
		for i := range 2000 {
			y.die(sub, 6000+i)
		}
		y.reopen()
		page := y.list(id, Query{Since: since, Until: until})
		if got := fmt.Sprint(numbersOf(page)); got != "[2000 2001]" || page.Next != 0 {
			t.Errorf("letters %s, next %d", got, page.Next)
		}
		if runs := y.faults.Count(logtest.OpNext); runs > 50 {
			t.Errorf("%d batches were read for 2 letters", runs)
		}
	})
}

// The last page says that it is the last.
func TestThePageThatEndsWithTheLogIsTheLast(t *testing.T) {
	y, sub := yardWith(t, "yard")
	y.die(sub, 1, 2, 3, 4)
	for limit, want := range map[int]int64{3: 3, 4: 0, 5: 0} {
		page := y.list(sub.ID, Query{Limit: limit})
		testkit.Equal(t, page.Next, want, "of 4 letters %d: next", limit)
	}
}

// A page, and a batch of redriven letters, is small however large the letters are.
func TestLargeLettersMakeSmallPages(t *testing.T) {
	y, sub := yardWith(t, "yard")
	large := fmt.Appendf(nil, `{"id":"e","subject":"/s","eventType":"order","eventTime":"2026-01-31T12:00:00Z","data":"%s"}`, bytes.Repeat([]byte("x"), 1<<20))
	for i := range 20 {
		p := letter(sub, i)
		p.Event = large
		testkit.Must(t, y.Put(t.Context(), sub, []pending.Delivery{p}))
	}
	seen := 0
	for q := (Query{Limit: 1000}); ; {
		page := y.list(sub.ID, q)
		size := 0
		for _, l := range page.Letters {
			size += len(l.Event)
		}
		if size > 10<<20 {
			t.Errorf("a page has %d MiB", size>>20)
		}
		seen += len(page.Letters)
		if q.From = page.Next; q.From == 0 {
			break
		}
	}
	most := 0
	y.deliver = func(ps []pending.Delivery) error {
		size := 0
		for _, p := range ps {
			size += len(p.Event)
		}
		most = max(most, size)
		return nil
	}
	y.redrive(sub.ID, Query{}, RedriveOptions{Rate: 1e6})
	if seen != 20 || most > 10<<20 {
		t.Errorf("%d letters were listed of 20; %d MiB were redriven at once", seen, most>>20)
	}
}

// Letters that wait for their five minutes wait on the disk.
func TestWaitingLettersTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		data := bytes.Repeat([]byte("x"), 1000)
		for i := range 10 {
			sub := y.subscribe(fmt.Sprintf("sub%d", i), "hub:failures", schema.EventGrid)
			var some []pending.Delivery
			for n := range 1000 {
				p := letter(sub, n)
				p.Event = fmt.Appendf(nil, `{"id":"e","subject":"/s","eventType":"order","eventTime":"2026-01-31T12:00:00Z","data":"%s"}`, data)
				some = append(some, p)
			}
			testkit.Must(t, y.Put(t.Context(), sub, some))
		}
		before := heap()
		defer y.run()()
		pass(time.Minute)
		if held := heap() - before; held > 2<<20 {
			t.Errorf("%d KiB are held for 10 subscriptions whose letters wait", held>>10)
		}
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Few writes are under way at once: each has its letters in memory. Places that are ill do not
// stand in the way of those that are well.
func TestFewWritesAreUnderWayAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.hubs.takes = time.Minute
		for i := range 100 {
			y.die(y.subscribe(fmt.Sprintf("sub%d", i), "hub:failures", schema.EventGrid), i)
		}
		defer y.run()()
		pass(30 * time.Second)
		if n := y.hubs.under.Load(); n == 0 || n > 16 {
			t.Errorf("%d writes are under way", n)
		}
		pass(time.Hour)
		testkit.Equal(t, len(y.hubs.sent), 100, "letters of 100 were written")
	})
}
