package v1

import (
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R6: one request tells how the yard is: what there is, how much it does, which group is furthest behind,
// and what somebody should look at.
func TestOverview(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 2)
	y.hub("other", 1)
	y.send("orders", "0", "a", "b", "c")
	y.want(http.StatusOK, "PUT", "/api/v1/hubs/orders/groups/$Default/checkpoints/0", `{"to":{"sequence":1}}`)
	y.figures.count(map[series.Key]float64{{Of: series.Published, Hub: "orders"}: 7, {Of: series.Published, Hub: "other"}: 3})
	y.figures.nodes = []overview.Node{{Name: "node-1", Corrupt: 1}}
	got := read[admin.Overview](t, y.want(http.StatusOK, "GET", "/api/v1/overview", nil))
	testkit.That(t, got.Whole && got.Totals == admin.OverviewTotals{Hubs: 2, Partitions: 3, Nodes: 1}, "totals are %+v", got.Totals)
	testkit.That(t, got.Rates.Published != nil && *got.Rates.Published == 10 && got.Rates.Calls == nil, "rates are %+v", got.Rates)
	testkit.That(t, got.WorstLag != nil && got.WorstLag.Hub == "orders" && got.WorstLag.Events > 0, "the worst lag is %+v", got.WorstLag)
	kinds := map[string]bool{}
	for _, n := range got.Needs {
		kinds[n.Kind] = true
	}
	testkit.That(t, len(got.Needs) == 2 && kinds["damage"] && kinds["group-idle"], "needs are %+v", got.Needs)
	y.figures.missing = []string{"node-2"}
	got = read[admin.Overview](t, y.want(http.StatusOK, "GET", "/api/v1/overview", nil))
	testkit.Slices(t, got.Missing, []string{"node-2"}, "missing nodes")
}

// R1: who may use some hubs is told of these alone, and of their groups only who may listen.
func TestOverviewOfWhatOneMaySee(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.hub("other", 1)
	y.send("orders", "0", "a", "b", "c")
	y.want(http.StatusOK, "PUT", "/api/v1/hubs/orders/groups/$Default/checkpoints/0", `{"to":{"sequence":1}}`)
	y.figures.count(map[series.Key]float64{{Of: series.Published, Hub: "orders"}: 7, {Of: series.Published, Hub: "other"}: 3, {Of: series.Read, Hub: "orders", Group: "g"}: 2})
	y.figures.nodes = []overview.Node{{Name: "node-1", Corrupt: 1}}
	as := func(hub string, rights auth.Rights) admin.Overview {
		p := testkit.Value(y.registry.Create(t.Context(), access.Policy{Hub: hub, Name: "p-" + hub + rights.Names()[0], Rights: rights}))(t)
		return read[admin.Overview](t, y.as(basic(p.Name, p.Primary)).want(http.StatusOK, "GET", "/api/v1/overview", nil))
	}
	own := as("orders", auth.Listen)
	testkit.That(t, !own.Whole && own.Totals == admin.OverviewTotals{Hubs: 1, Partitions: 1}, "who listens to a hub is told %+v", own.Totals)
	testkit.That(t, *own.Rates.Published == 7 && *own.Rates.Read == 2 && len(own.Needs) == 1 && own.WorstLag != nil, "who listens to a hub is told %+v", own)
	sends := as("orders", auth.Send)
	testkit.That(t, *sends.Rates.Published == 7 && sends.Rates.Read == nil && len(sends.Needs) == 0 && sends.WorstLag == nil, "who sends to a hub is told %+v", sends)
	y.figures.asked = 0
	all := as("", auth.Listen)
	testkit.Equal(t, y.figures.asked, 1, "how often the nodes are asked for all hubs")
	testkit.That(t, !all.Whole && all.Totals.Hubs == 2 && *all.Rates.Published == 10 && all.Totals.Nodes == 0 && len(all.Needs) == 1, "who listens to all is told %+v", all)
	testkit.Equal(t, as("other", auth.Manage).Totals.Hubs, 1, "hubs of who manages another")
}
