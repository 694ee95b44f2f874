package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Series is a figure of the yard over a while.
type Series struct {
	// Of is what it tells: published, bytes, read, delivered, failed, dead, waiting, calls, failed-calls,
	// lag or lag-seconds; Unit in what.
	Of   string `json:"of"`
	Unit string `json:"unit"`
	// Of what it tells; all absent: of the whole yard.
	Hub          string `json:"hub,omitempty"`
	Group        string `json:"group,omitempty"`
	Topic        string `json:"topic,omitempty"`
	DomainTopic  string `json:"domainTopic,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Function     string `json:"function,omitempty"`
	// From is when the first value's step begins, and Step how long each is, in seconds.
	From Time `json:"from"`
	Step int  `json:"step"`
	// Values are the oldest first; nil where nothing was measured. A rate is the mean over its step, and
	// of a gauge, such as a lag, it is the largest value.
	Values []*float64 `json:"values"`
}

// SeriesList is what was asked for.
type SeriesList struct {
	Series []Series `json:"series"`
	// Missing are the nodes that did not answer: what they have counted is not in it.
	Missing []string `json:"missing,omitempty"`
}

// SeriesQuery says which series are wanted.
type SeriesQuery struct {
	// Of are the figures; see Series.
	Of []string
	// Of what; all empty: of the whole yard. A subscription is named with its topic or hub.
	Hub, Group, Topic, DomainTopic, Subscription, Function string
	// Span is how far back it reaches, up to 24 h; zero means 15 min. Up to 15 min there is a value for
	// each second, up to 2 h for ten, beyond for each minute.
	Span time.Duration
}

// Series gives the history of figures, added up over all nodes. It reaches back as far as the nodes run.
func (c *Client) Series(ctx context.Context, q SeriesQuery) (SeriesList, error) {
	query := url.Values{"of": {strings.Join(q.Of, ",")}}
	for name, value := range map[string]string{
		"hub": q.Hub, "group": q.Group, "topic": q.Topic, "domainTopic": q.DomainTopic, "subscription": q.Subscription, "function": q.Function,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Span != 0 {
		query.Set("span", q.Span.String())
	}
	return one[SeriesList](ctx, c, request{method: http.MethodGet, path: []string{"series"}, query: query})
}
