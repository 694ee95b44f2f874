package console

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/internal/testkit"
)

var openFor = flag.Duration("browser.memory", 0, "how long tabs are open whose memory is looked at; zero: not at all")

// mostScript is how many MiB the heap of a tab's scripts may have: what is bounded is what the page itself asks
// for, as that of the process that draws it depends on the browser, and on how many tabs share it.
const mostScript = 60

// held is what a tab keeps in memory.
type held struct {
	script           float64 // MiB of the heap of scripts
	nodes, listeners int64
}

// held counts what is left when garbage is gone: the least of some counts, as a part may be replaced between
// the two.
func (p *page) held() (least held) {
	p.t.Helper()
	for i := range 5 {
		if h := p.heldNow(); i == 0 || h.nodes < least.nodes {
			least = h
		}
	}
	return least
}

func (p *page) heldNow() (h held) {
	p.t.Helper()
	p.run("count what is held", heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) error {
		used, _, _, _, err := runtime.GetHeapUsage().Do(ctx)
		_, nodes, listeners, countErr := memory.GetDOMCounters().Do(ctx)
		h = held{used / (1 << 20), nodes, listeners}
		return errors.Join(err, countErr)
	}))
	return h
}

// V4: pages that are open for an hour while everything changes hold no more nodes and listeners than they
// did in its first sixth, in which lists and charts have filled, and their scripts no more than the budget.
func TestMemoryOfTabs(t *testing.T) {
	if *openFor == 0 {
		t.Skip("it takes as long as -browser.memory says: make browser runs it")
	}
	y := newYard(t)
	y.furnish(t)
	y.work(t)
	pages, first := map[string]*page{}, map[string]held{}
	for _, path := range []string{"", "hubs/wide", "hubs/orders/events", "hubs/orders/groups/billing", "topics/shop/subscriptions/alarm-company", "activity"} {
		pages[path] = newPage(t, y.base, 1280, "light")
		pages[path].open("/console/" + path)
	}
	const parts = 6
	began := time.Now()
	for i := range parts {
		idle(t, *openFor/parts)
		for path, p := range pages {
			h := p.held()
			t.Logf("/console/%s after %v: %.1f MiB, %d nodes, %d listeners", path, time.Since(began).Round(time.Second), h.script, h.nodes, h.listeners)
			if i == 0 {
				first[path] = h
			}
			was := first[path]
			testkit.That(t, h.nodes <= was.nodes*5/4+200, "/console/%s holds %d nodes, and held %d", path, h.nodes, was.nodes)
			testkit.That(t, h.script <= mostScript, "the scripts of /console/%s hold %.1f MiB", path, h.script)
			testkit.That(t, h.listeners <= was.listeners+20, "/console/%s holds %d listeners, and held %d", path, h.listeners, was.listeners)
		}
	}
}
