package v1

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/series"
)

// Figures are what all nodes of the yard have counted together. All methods may be called by many
// goroutines at once, on behalf of the caller of the request whose context they get.
type Figures interface {
	// Series gives some over a span that ends now, in the order of the keys. missing are the nodes that
	// did not answer. All keys are of what one need covers (frame.SeriesNeed).
	Series(ctx context.Context, keys []series.Key, span time.Duration) (points []series.Points, missing []string, err error)
	// Now gives the present values likewise: of a rate the mean of some seconds.
	Now(ctx context.Context, keys []series.Key) (values []float32, missing []string, err error)
	// Health is what each node knows of itself. The caller manages the namespace.
	Health(ctx context.Context) (nodes []overview.Node, missing []string, err error)
	// Members are the nodes of the yard, as this one knows them. It does no I/O.
	Members() []overview.Member
}

const (
	defaultSpan = 15 * time.Minute
	maxOf       = 8 // figures of one request
)

func (d *Handler) getSeries(w http.ResponseWriter, r *http.Request) error {
	keys, shown, err := d.seriesKeys(r)
	if err != nil {
		return err
	}
	span, err := seriesSpan(r.URL.Query().Get("span"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		need, entity := frame.SeriesNeed(key)
		if err := need.Check(grantOf(r), entity, time.Now()); err != nil {
			return err
		}
	}
	points, missing, err := d.cfg.Figures.Series(r.Context(), keys, span)
	if err != nil {
		return err
	}
	for i, p := range points {
		shown[i].From, shown[i].Step, shown[i].Values = admin.Time{Time: p.From()}, int(p.Step/time.Second), showValues(p.Values)
	}
	return writeJSON(w, http.StatusOK, admin.SeriesList{Series: shown, Missing: missing})
}

// seriesSpan reads how far back to look.
func seriesSpan(text string) (time.Duration, error) {
	if text == "" {
		return defaultSpan, nil
	}
	span, err := quantity.ParseSigned(text)
	if err != nil || span <= 0 || span > series.MaxSpan {
		return 0, badRequest("write it like 15m, 2h or 24h, which is the most: for longer ask Prometheus, which reads /metrics", "span=%.64s is not to be had", text)
	}
	return span, nil
}

// seriesKeys reads which series are wanted, by the names that things have by definition.
func (d *Handler) seriesKeys(r *http.Request) (keys []series.Key, shown []admin.Series, err error) {
	query := r.URL.Query()
	q := admin.Series{
		Hub: query.Get("hub"), Group: query.Get("group"), Topic: query.Get("topic"), DomainTopic: query.Get("domainTopic"),
		Subscription: query.Get("subscription"), Function: query.Get("function"),
	}
	if hub, err := d.cfg.Broker.Hub(q.Hub); err == nil {
		q.Hub = hub.Name
	}
	if d.cfg.Grid != nil && q.Topic != "" {
		if topic, err := d.cfg.Grid.Topics.Topic(q.Topic); err == nil {
			q.Topic = topic.Name
		}
		source := topics.Source{Topic: q.Topic, DomainTopic: q.DomainTopic}
		if s, err := d.cfg.Grid.Topics.Find(source, q.Subscription); err == nil && q.Subscription != "" {
			q.Subscription = s.Name
		}
	}
	names := strings.Split(query.Get("of"), ",")
	if len(names) > maxOf {
		return nil, nil, badRequest("ask for the others by a second request", "%d figures are more than the %d of one request", len(names), maxOf)
	}
	for _, of := range names {
		form, err := seriesForm(of, q)
		if err != nil {
			return nil, nil, err
		}
		key := keyOf(q)
		key.Of = form.Of
		one := q
		one.Of, one.Unit = string(form.Of), form.Unit
		keys, shown = append(keys, key), append(shown, one)
	}
	return keys, shown, nil
}

func keyOf(q admin.Series) series.Key {
	key := series.Key{Hub: q.Hub, Group: q.Group, Topic: q.Topic, Subscription: q.Subscription, Function: q.Function}
	if q.DomainTopic != "" {
		key.Topic += ":" + q.DomainTopic
	}
	return key
}

// seriesForm finds a figure, and says why there is none of what was named.
func seriesForm(of string, q admin.Series) (series.Form, error) {
	form, known := series.FormOf(series.Of(of))
	if !known {
		var all []string
		for _, f := range series.Forms {
			all = append(all, string(f.Of))
		}
		return form, badRequest("the figures are "+strings.Join(all, ", "), "%.64q is no figure", of)
	}
	for _, part := range keyOf(q).Parts() {
		if !slices.Contains(form.By, part) {
			return form, badRequest("leave "+part+" out: "+of+" is told by "+strings.Join(form.By, ", "), "%s is not told by %s", of, part)
		}
	}
	switch {
	case q.Group != "" && q.Hub == "":
		return form, badRequest("name its hub, too", "group %.64q is that of a hub", q.Group)
	case q.Subscription != "" && q.Hub == "" && q.Topic == "":
		return form, badRequest("name its topic or hub, too", "subscription %.64q is that of a topic or hub", q.Subscription)
	case q.DomainTopic != "" && q.Topic == "":
		return form, badRequest("name the domain by topic", "a domain topic is that of a domain")
	}
	return form, nil
}

// showValues gives nil for what is unknown.
func showValues(values []float32) []*float64 {
	shown := make([]*float64, len(values))
	for i, v := range values {
		if v == v {
			shown[i] = new(fourFigures(v))
		}
	}
	return shown
}

// fourFigures is a value as precise as it is worth telling.
func fourFigures(v float32) float64 {
	x := float64(v)
	if x == math.Trunc(x) {
		return x
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}
