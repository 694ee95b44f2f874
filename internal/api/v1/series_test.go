package v1

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fakeFigures are those of one node, which counts what a test says.
type fakeFigures struct {
	store   *series.Store
	missing []string
	nodes   []overview.Node
	err     error
	asked   int // how often for what is now
}

func (f *fakeFigures) Series(_ context.Context, keys []series.Key, span time.Duration) (all []series.Points, missing []string, err error) {
	for _, key := range keys {
		all = append(all, f.store.Read(key, span, time.Now()))
	}
	return all, f.missing, f.err
}

func (f *fakeFigures) Now(_ context.Context, keys []series.Key) (values []float32, missing []string, err error) {
	f.asked++
	return f.store.Now(keys, time.Now()), f.missing, f.err
}

func (f *fakeFigures) Health(context.Context) (nodes []overview.Node, missing []string, err error) {
	return f.nodes, f.missing, f.err
}

func (f *fakeFigures) Members() []overview.Member { return []overview.Member{{Name: "node-1"}} }

// count gives the store the same samples for some seconds up to now, each counter rising by its value.
func (f *fakeFigures) count(rates map[series.Key]float64) {
	for ago := 20; ago > 0; ago-- {
		var samples []series.Sample
		for key, rate := range rates {
			value := rate
			if form, _ := series.FormOf(key.Of); !form.Gauge {
				value = rate * float64(20-ago)
			}
			samples = append(samples, series.Sample{Key: key, Value: value})
		}
		f.store.Add(time.Now().Add(-time.Duration(ago)*time.Second), samples)
	}
}

// R6: figures are had over a while, by the names of what they are about in any spelling, and with the
// nodes that did not answer.
func TestSeries(t *testing.T) {
	y := newYard(t)
	y.hub("Orders", 1)
	y.figures.count(map[series.Key]float64{{Of: series.Published, Hub: "Orders"}: 7, {Of: series.Read, Hub: "Orders", Group: "billing"}: 0.123456})
	y.figures.missing = []string{"node-2"}
	got := read[admin.SeriesList](t, y.want(http.StatusOK, "GET", "/api/v1/series?of=published,bytes&hub=orders&span=10s", nil))
	testkit.Equal(t, len(got.Series), 2, "series")
	one := got.Series[0]
	testkit.That(t, one.Of == "published" && one.Unit == "events/s" && one.Hub == "Orders" && one.Step == 1 && len(one.Values) == 10, "it is %+v", one)
	testkit.Equal(t, *one.Values[5], 7.0, "a value")
	testkit.That(t, got.Series[1].Values[5] == nil, "what was not measured is %v", got.Series[1].Values[5])
	testkit.Slices(t, got.Missing, []string{"node-2"}, "missing nodes")
	got = read[admin.SeriesList](t, y.want(http.StatusOK, "GET", "/api/v1/series?of=read&hub=orders&group=billing&span=10s", nil))
	testkit.Equal(t, *got.Series[0].Values[5], 0.1235, "a value that is no whole number")
	got = read[admin.SeriesList](t, y.want(http.StatusOK, "GET", "/api/v1/series?of=published", nil))
	testkit.Equal(t, len(got.Series[0].Values), 900, "values where no span is given")
}

func TestSeriesThatAreNone(t *testing.T) {
	y := newYard(t)
	for _, query := range []string{
		"", "of=", "of=nonsense", "of=published&group=billing", "of=calls&hub=orders", "of=read&group=billing", "of=delivered&subscription=s",
		"of=published&domainTopic=x", "of=published&span=25h", "of=published&span=0s", "of=published&span=soon",
		"of=published,published,published,published,published,published,published,published,published",
	} {
		y.refused(http.StatusBadRequest, "bad-request", "GET", "/api/v1/series?"+query, nil)
	}
}

// R1: who may look at a hub sees its figures, and nobody sees those of the whole yard, or of what belongs
// to it, without Manage to the namespace.
func TestRightsToSeries(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.hub("other", 1)
	as := func(hub string, rights auth.Rights) *yard {
		p := testkit.Value(y.registry.Create(t.Context(), access.Policy{Hub: hub, Name: "p-" + hub + rights.Names()[0], Rights: rights}))(t)
		return y.as(basic(p.Name, p.Primary))
	}
	const published, lag, all = "of=published&hub=orders", "of=lag,read&hub=orders", "of=published"
	for name, tt := range map[string]struct {
		by                  *yard
		published, lag, all int
	}{
		"manage":                {as("", auth.Manage), 200, 200, 200},
		"listen":                {as("", auth.Listen), 200, 200, 403},
		"send":                  {as("", auth.Send), 200, 403, 403},
		"manage of the hub":     {as("orders", auth.Manage), 200, 200, 403},
		"send to the hub":       {as("orders", auth.Send), 200, 403, 403},
		"manage of another hub": {as("other", auth.Manage), 403, 403, 403},
		"nobody":                {y.as(""), 401, 401, 401},
	} {
		for query, status := range map[string]int{
			published: tt.published, lag: tt.lag, all: tt.all,
			"of=waiting&hub=orders": tt.all, "of=delivered&hub=orders&subscription=s": tt.all, "of=calls&function=f": tt.all, "of=published&topic=x": tt.all,
		} {
			r := tt.by.do("GET", "/api/v1/series?"+query, nil)
			testkit.Equal(t, r.status, status, name+" asks for "+query)
		}
	}
}
