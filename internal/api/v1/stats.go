package v1

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/series"
)

// statsAtOnce bounds how many subscriptions of a list are asked for how they go at a time.
const statsAtOnce = 16

// maxRates is of how many subscriptions a list says what is delivered a second: there are 1,000 series in all.
const maxRates = 500

// wantsStats reads whether a list is to have what its members do, too.
func (d *Handler) wantsStats(r *http.Request) (bool, error) {
	switch text := r.URL.Query().Get("stats"); text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return d.cfg.Figures != nil, nil
	default:
		return false, badRequest("use stats=true, or leave it out", "stats=%.64s says neither yes nor no", text)
	}
}

// addHubStats adds what the hubs of a list hold and do, as far as the caller may see it.
func (d *Handler) addHubStats(r *http.Request, hubs []admin.Hub) error {
	grant, now := grantOf(r), time.Now()
	keys := make([][]series.Key, len(hubs))
	for i, h := range hubs {
		partitions, err := d.cfg.Broker.Partitions(r.Context(), h.Name)
		if err != nil {
			continue // deleted since the list was made, or out of reach
		}
		hubs[i].Stats = &admin.HubStats{}
		for _, p := range partitions {
			hubs[i].Stats.Bytes += p.Bytes
			if !p.Empty {
				hubs[i].Stats.Events += int64(p.Last - p.First + 1)
			}
		}
		keys[i] = []series.Key{{Of: series.Published, Hub: h.Name}, {Of: series.Bytes, Hub: h.Name}}
		if grant.Allows(auth.At(h.Name), auth.Listen, now) {
			keys[i] = append(keys[i], series.Key{Of: series.Read, Hub: h.Name}, series.Key{Of: series.Lag, Hub: h.Name}, series.Key{Of: series.LagSeconds, Hub: h.Name})
		}
	}
	values, err := d.nowOf(r.Context(), keys, grant.Allows(auth.Entity{}, auth.Manage, now))
	if err != nil {
		return err
	}
	for i, s := range values {
		if stats := hubs[i].Stats; stats != nil {
			put(s, &stats.Published, &stats.BytesIn, &stats.Read, &stats.LagEvents, &stats.LagSeconds)
		}
	}
	return nil
}

// put gives values to fields, as many as there are.
func put(values []*float64, fields ...**float64) {
	for i, v := range values {
		*fields[i] = v
	}
}

// nowOf asks for the present values of several things at once, where one need covers all of them, and
// else thing by thing.
func (d *Handler) nowOf(ctx context.Context, keys [][]series.Key, together bool) ([][]*float64, error) {
	all := make([][]*float64, len(keys))
	if !together {
		for i, own := range keys {
			values, _, err := d.cfg.Figures.Now(ctx, own)
			if err != nil {
				return nil, err
			}
			all[i] = showValues(values)
		}
		return all, nil
	}
	var joined []series.Key
	for _, own := range keys {
		joined = append(joined, own...)
	}
	values, _, err := d.cfg.Figures.Now(ctx, joined)
	if err != nil {
		return nil, err
	}
	shown := showValues(values)
	for i, own := range keys {
		all[i], shown = shown[:len(own)], shown[len(own):]
	}
	return all, nil
}

func (d *Handler) addTopicStats(ctx context.Context, list []admin.Topic) error {
	keys := make([][]series.Key, len(list))
	for i, t := range list {
		for _, of := range []series.Of{series.Published, series.Delivered, series.Failed, series.Waiting} {
			keys[i] = append(keys[i], series.Key{Of: of, Topic: t.Name})
		}
	}
	values, err := d.nowOf(ctx, keys, true)
	for i, s := range values {
		list[i].Stats = &admin.TopicStats{}
		put(s, &list[i].Stats.Published, &list[i].Stats.Delivered, &list[i].Stats.Failed, &list[i].Stats.Waiting)
	}
	return err
}

func (d *Handler) addFunctionStats(ctx context.Context, list []admin.Function) error {
	keys := make([][]series.Key, len(list))
	for i, f := range list {
		keys[i] = []series.Key{{Of: series.Calls, Function: f.Name}, {Of: series.FailedCalls, Function: f.Name}}
	}
	values, err := d.nowOf(ctx, keys, true)
	for i, s := range values {
		list[i].Stats = &admin.FunctionStats{}
		put(s, &list[i].Stats.Calls, &list[i].Stats.FailedCalls)
	}
	return err
}

// addSubscriptionStats adds how deliveries go. What cannot be told just now, since its shard moves, is
// left out: the list is needed all the more then.
func (d *Handler) addSubscriptionStats(ctx context.Context, all []topics.Subscription, shown []admin.Subscription) error {
	errs := make([]error, len(all))
	parallel.Each(len(all), statsAtOnce, func(i int) { errs[i] = d.addDeliveries(ctx, all[i].ID, &shown[i]) })
	for _, err := range errs {
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return d.addDeliveryRates(ctx, all, shown)
}

// addDeliveryRates adds how many events a second were delivered. Of very many subscriptions it does not: there are no
// more series than a list of these many could have.
func (d *Handler) addDeliveryRates(ctx context.Context, all []topics.Subscription, shown []admin.Subscription) error {
	if len(all) > maxRates {
		return nil
	}
	keys := make([][]series.Key, len(all))
	for i, s := range all {
		topic := s.Source.Topic
		if s.Source.DomainTopic != "" {
			topic += ":" + s.Source.DomainTopic
		}
		keys[i] = []series.Key{{Of: series.Delivered, Topic: topic, Hub: s.Source.Hub, Subscription: s.Name}}
	}
	values, err := d.nowOf(ctx, keys, true)
	for i, v := range values {
		if shown[i].Stats != nil {
			put(v, &shown[i].Stats.Rate)
		}
	}
	return err
}

// addDeliveries adds how those of one subscription go.
func (d *Handler) addDeliveries(ctx context.Context, id string, shown *admin.Subscription) error {
	stats, err := d.cfg.Grid.Delivery.Stats(ctx, id)
	switch {
	case err == nil:
		shown.Stats = showStats(stats)
	case !errors.Is(err, delivery.ErrNotFound): // it is pending, or was made just now
		return err
	}
	counts, err := d.cfg.Grid.Dead.Counts(ctx, id)
	if err == nil {
		shown.DeadLetters = &admin.DeadLetterCounts{
			Kept: counts.Kept, Unwritten: counts.Unwritten, Dropped: counts.Dropped, Problem: counts.Problem, Since: spec.TimeIfAny(counts.Since),
		}
	}
	return err
}
