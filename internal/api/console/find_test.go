package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

var findPaths = []string{base + "find", base + "find?q=s"}

// V4: a part of a name finds what has it, the nearest first; a name that there is once, and an id, lead
// on at once; what one may not see is not found.
func TestFinding(t *testing.T) {
	_, api, h := newFixture(fixed())
	page := get(h, base+"find?q=S").Body.String()
	var last int
	for _, link := range []string{`<a href="/console/functions/score">score`, `<a href="/console/hubs/sensors">sensors`, `<a href="/console/topics/alarms">alarms`, "events?id=S"} {
		at := strings.Index(page, link)
		testkit.That(t, at > last, "%s is not there, or not in its turn", link)
		last = at
	}
	for query, to := range map[string]string{
		"SENSOR": "/console/hubs/sensors", "hooks.example": "/console/topics/alarms/subscriptions/company", "elsewhere": "/console/circuits/elsewhere",
		"7c1d-e0": "/console/events?id=7c1d-e0", "sensors/0/41": "/console/events?id=sensors%2F0%2F41",
	} {
		w := get(h, base+"find?q="+query)
		testkit.Equal(t, w.Code, http.StatusSeeOther, query)
		testkit.Equal(t, w.Header().Get("Location"), to)
	}
	api.refuse = &admin.Problem{Status: http.StatusForbidden, Title: "too few rights"}
	testkit.Equal(t, get(h, base+"find?q=s").Code, http.StatusForbidden)
}

// V4: beside the main pages stands how many there are or, in colour, how many need somebody; who may not
// see all of the yard is told of hubs alone.
func TestCounts(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	need := func(kind, severity string) admin.Need {
		return admin.Need{Object: admin.NeedObject{Kind: kind}, Severity: severity}
	}
	answers["GET /api/v1/overview"] = admin.Overview{Whole: true, Totals: admin.OverviewTotals{Hubs: 1200, Topics: 3, Functions: 2}, Needs: []admin.Need{
		need("subscription", admin.SeverityWarning), need("subscription", admin.SeverityWarning), need("function", admin.SeverityBroken), need("node", admin.SeverityBroken)}}
	page := get(h, base+"hubs").Body.String()
	for _, says := range []string{
		`Hubs<span id="part-n-hubs">1,200</span>`, `Topics<span id="part-n-topics"><b class="odd">2<span class="only-read"> need you</span>`, `Functions<span id="part-n-functions"><b class="bad">1<span class="only-read"> needs you</span>`,
	} {
		testkit.That(t, strings.Contains(page, says), "the page does not say %s", says)
	}
	part := countsOf(admin.Overview{Totals: admin.OverviewTotals{Hubs: 1}})
	testkit.That(t, part["hubs"].Count == 1 && part["topics"] == nil, "a part of the yard has %v", part)
}

// Each key is that of one link.
func TestKeysAreThoseOfLinks(t *testing.T) {
	_, _, h := newFixture(fixed())
	page := get(h, base).Body.String()
	for _, key := range "ohtfeyasd" {
		testkit.Equal(t, strings.Count(page, `data-key="`+string(key)+`"`), 1, "links of the key "+string(key))
	}
}
