package v1

import (
	"context"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/series"
)

// maxLagPartitions bounds how many partitions the lags of an overview are made of.
const maxLagPartitions = 5_000

// getOverview shows how the yard is, as far as the grant reaches.
func (d *Handler) getOverview(w http.ResponseWriter, r *http.Request) error {
	grant, now := grantOf(r), time.Now()
	o := admin.Overview{Namespace: d.cfg.Broker.Namespace(), At: admin.Time{Time: now.UTC()}, Whole: grant.Allows(auth.Entity{}, auth.Manage, now)}
	findings := overview.Findings{Now: now}
	var hubs []broker.Hub
	for _, h := range d.cfg.Broker.Hubs() {
		if grant.Allows(auth.At(h.Name), 0, now) {
			hubs = append(hubs, h)
			o.Totals.Hubs, o.Totals.Partitions = o.Totals.Hubs+1, o.Totals.Partitions+h.Partitions
		}
	}
	d.addLags(r.Context(), &o, &findings, grant, now)
	if !o.Whole {
		d.addRatesOf(r.Context(), &o, hubs, grant, now)
	} else if err := d.addWhole(r.Context(), &o, &findings); err != nil {
		return err
	}
	o.Needs = overview.Needs(findings)
	return writeJSON(w, http.StatusOK, o)
}

// addLags tells of the groups of hubs that the grant may listen to.
func (d *Handler) addLags(ctx context.Context, o *admin.Overview, findings *overview.Findings, grant auth.Grant, now time.Time) {
	if d.cfg.Groups == nil {
		return
	}
	lags, _ := d.cfg.Groups.Lags(ctx, func(hub string) bool { return grant.Allows(auth.At(hub), auth.Listen, now) }, maxLagPartitions)
	var worst *groups.GroupLag
	for i, g := range lags {
		findings.Groups = append(findings.Groups, overview.Group{
			Hub: g.Hub, Group: g.Group, Events: g.Events, Oldest: g.Oldest, Alive: g.Alive, Seen: g.Seen, Unowned: g.Unowned,
		})
		if g.Events > 0 && (worst == nil || g.Oldest > worst.Oldest) {
			worst = &lags[i]
		}
	}
	if worst != nil {
		o.WorstLag = new(showLag(*worst))
	}
}

func showLag(g groups.GroupLag) admin.GroupLag {
	return admin.GroupLag{Hub: g.Hub, Group: g.Group, Events: g.Events, Seconds: g.Oldest.Seconds(), Instances: g.Alive}
}

// addWhole adds what who manages the namespace sees.
func (d *Handler) addWhole(ctx context.Context, o *admin.Overview, findings *overview.Findings) (err error) {
	rates := []**float64{&o.Rates.Published, &o.Rates.Bytes, &o.Rates.Read, &o.Rates.Delivered, &o.Rates.Failed, &o.Rates.Calls, &o.Rates.Waiting}
	keys := []series.Key{
		{Of: series.Published}, {Of: series.Bytes}, {Of: series.Read}, {Of: series.Delivered}, {Of: series.Failed}, {Of: series.Calls}, {Of: series.Waiting},
	}
	values, _, err := d.cfg.Figures.Now(ctx, keys)
	if err != nil {
		return err
	}
	for i, v := range showValues(values) {
		*rates[i] = v
	}
	if findings.Nodes, o.Missing, err = d.cfg.Figures.Health(ctx); err != nil {
		return err
	}
	findings.Silent, findings.Members = o.Missing, d.cfg.Figures.Members()
	o.Totals.Nodes = len(findings.Members)
	if d.cfg.Grid != nil {
		if err := d.addGrid(o, findings); err != nil {
			return err
		}
	}
	if d.cfg.Functions != nil {
		return d.addFunctions(ctx, o, findings)
	}
	return nil
}

func (d *Handler) addGrid(o *admin.Overview, findings *overview.Findings) error {
	o.Totals.Topics = len(d.cfg.Grid.Topics.Topics())
	all, err := d.cfg.Grid.Topics.Subscriptions(topics.Source{})
	for _, s := range all {
		findings.Subscriptions = append(findings.Subscriptions, overview.Subscription{
			Name: s.Name, Topic: s.Source.Topic, DomainTopic: s.Source.DomainTopic, Hub: s.Source.Hub,
			State: string(s.State), Why: s.Why, Since: s.Updated, Until: s.Validation.Until,
		})
	}
	o.Totals.Subscriptions = len(all)
	return err
}

func (d *Handler) addFunctions(ctx context.Context, o *admin.Overview, findings *overview.Findings) error {
	circuits, err := d.cfg.Functions.ListCircuits(ctx)
	for _, c := range circuits {
		if c.Here {
			o.Totals.Functions++
		}
		findings.Circuits = append(findings.Circuits, overview.Circuit{
			Function: c.Function, Hub: c.Hub, Group: c.Group, State: string(c.Record.State), Since: c.Record.Since,
			By: c.Record.By, Reason: c.Record.Reason, Failures: c.Failures, Waiting: c.Lag,
		})
	}
	return err
}

// addRatesOf adds up what the grant may see of single hubs. The nodes are asked once for all of them, where
// it reaches all; they judge it themselves.
func (d *Handler) addRatesOf(ctx context.Context, o *admin.Overview, hubs []broker.Hub, grant auth.Grant, now time.Time) {
	var keys []series.Key
	for _, h := range hubs {
		keys = append(keys, series.Key{Of: series.Published, Hub: h.Name}, series.Key{Of: series.Bytes, Hub: h.Name})
		if grant.Allows(auth.At(h.Name), auth.Listen, now) {
			keys = append(keys, series.Key{Of: series.Read, Hub: h.Name})
		}
	}
	sums := map[series.Of]**float64{series.Published: &o.Rates.Published, series.Bytes: &o.Rates.Bytes, series.Read: &o.Rates.Read}
	for len(keys) > 0 {
		n := min(len(keys), series.MaxSeries)
		if need, at := frame.SeriesNeed(keys[:n]...); need.Check(grant, at, now) != nil {
			for n = 1; n < len(keys) && keys[n].Hub == keys[0].Hub; {
				n++
			}
		}
		values, missing, err := d.cfg.Figures.Now(ctx, keys[:n])
		if err != nil {
			return // without them it is an overview all the same
		}
		o.Missing = missing
		for i, v := range showValues(values) {
			if sum := sums[keys[i].Of]; v != nil && *sum == nil {
				*sum = v
			} else if v != nil {
				**sum += *v
			}
		}
		keys = keys[n:]
	}
}
