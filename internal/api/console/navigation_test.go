package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4, R6: a page that is open says within seconds that a disk is full and that it is not any more, and how much
// needs somebody, whichever page it is; and of an overview that does not come, what was known before.
func TestWhatStandsAroundAPageIsLive(t *testing.T) {
	for _, path := range []string{"hubs", "hubs/sensors/groups/aggregator", "topics", ""} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := fixed()
				c, api, h := newFixture(answers)
				began := time.Now()
				c.now = func() time.Time { return noon.Add(time.Since(began)) }
				wait := streaming(t, h, base+path)
				change := func(to any) string {
					api.mu.Lock()
					answers["GET /api/v1/overview"] = to
					api.mu.Unlock()
					return wait(4 * time.Second)
				}
				whole := wait(time.Second)
				testkit.That(t, !strings.Contains(whole, "is full"), "the disk is full from the beginning")
				full := fixedOverview()
				full.Totals.Topics, full.Needs = 3, []admin.Need{{Kind: "disk-full", Severity: admin.SeverityBroken, Sentence: "The disk of node yard-1 is full: 1 MiB are left."}}
				said := change(full)
				for _, part := range []string{"is full: 1 MiB", `{"html":"3","id":"part-n-topics"}`} {
					testkit.That(t, strings.Contains(said, part), "the stream does not say %s: %s", part, said)
				}
				full.Needs = []admin.Need{{Kind: "disk-full", Severity: admin.SeverityBroken, Sentence: "The disk of node yard-1 is full: 2 MiB are left."}}
				said = change(full)
				testkit.That(t, strings.Contains(said, `"full-said":"The disk of node yard-1 is full: 2 MiB are left."`) && !strings.Contains(said, "part-yard"), "it is not sent by its cells: %s", said)
				if path != "" { // which is nothing without one
					api.mu.Lock()
					delete(answers, "GET /api/v1/overview")
					api.mu.Unlock()
					said = wait(4 * time.Second)
					testkit.That(t, !strings.Contains(said, "part-yard") && !strings.Contains(said, "part-n-"), "what was known is taken back: %s", said)
				}
				testkit.That(t, strings.Contains(change(fixedOverview()), `{"html":"","id":"part-yard"}`), "the disk is still full")
			})
		})
	}
}

// V4: the streams of many pages ask once how the yard is, and not each of them.
func TestStreamsShareWhatTheyKnowOfTheYard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, api, h := newFixture(fixed())
		began := time.Now()
		c.now = func() time.Time { return noon.Add(time.Since(began)) }
		wait := streaming(t, h, base+"hubs")
		for _, path := range []string{"hubs/sensors", "topics", "functions", "activity"} {
			wait(100 * time.Millisecond) // so that none asks at the same moment
			streaming(t, h, base+path)
		}
		wait(20 * time.Second)
		api.mu.Lock()
		defer api.mu.Unlock()
		asked := 0
		for _, call := range api.calls {
			if call == "GET /api/v1/overview" {
				asked++
			}
		}
		testkit.That(t, asked >= 5 && asked <= 15, "five pages have asked %d times in 20 s", asked)
	})
}
