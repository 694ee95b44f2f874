package v1

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// A subscription is found by its name and, where several sources have one of that name, by
// the query: topic=NAME, with domainTopic=NAME for one of a domain's topics, or hub=NAME.

// sourceOf reads the query; the zero source means any.
func sourceOf(r *http.Request) (topics.Source, error) {
	query := r.URL.Query()
	s := topics.Source{Topic: query.Get("topic"), DomainTopic: query.Get("domainTopic"), Hub: query.Get("hub")}
	if s.Topic != "" && s.Hub != "" {
		return s, badRequest("leave one of them out", "a subscription's events come from a topic or from a hub, not from both")
	}
	if s.DomainTopic != "" && s.Topic == "" {
		return s, badRequest("name the domain by topic", "a domain topic is that of a domain")
	}
	return s, nil
}

// findSubscription finds what a path and its query name.
func (d *Handler) findSubscription(r *http.Request) (topics.Subscription, error) {
	source, err := sourceOf(r)
	if err != nil {
		return topics.Subscription{}, err
	}
	return d.cfg.Grid.Topics.Find(source, r.PathValue("subscription"))
}

func (d *Handler) listSubscriptions(w http.ResponseWriter, r *http.Request) error {
	source, err := sourceOf(r)
	if err != nil {
		return err
	}
	all, err := d.cfg.Grid.Topics.Subscriptions(source)
	if err != nil {
		return err
	}
	shown := make([]admin.Subscription, len(all))
	for i, s := range all {
		shown[i] = d.showDefinition(s, false)
	}
	stats, err := d.wantsStats(r)
	if err == nil && stats {
		err = d.addSubscriptionStats(r.Context(), all, shown)
	}
	return answer(w, map[string][]admin.Subscription{"subscriptions": shown}, err)
}

func (d *Handler) createSubscription(w http.ResponseWriter, r *http.Request) error {
	var q admin.SubscriptionRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	var settings topics.Settings
	if err := subscribe.Apply(q, &settings); err != nil {
		return err
	}
	s, err := d.cfg.Grid.Topics.Create(r.Context(), topics.Source{Topic: q.Topic, DomainTopic: q.DomainTopic, Hub: q.SourceHub}, q.Name, settings)
	if err != nil {
		return err
	}
	query := url.Values{"topic": {s.Source.Topic}}
	if s.Source.Hub != "" {
		query = url.Values{"hub": {s.Source.Hub}}
	} else if s.Source.DomainTopic != "" {
		query.Set("domainTopic", s.Source.DomainTopic)
	}
	return created(w, "subscriptions/"+url.PathEscape(s.Name)+"?"+query.Encode(), d.showMade(s, q))
}

// showMade shows what a request made of a subscription: a key that was made for it, too, for
// nobody knows it yet.
func (d *Handler) showMade(s topics.Subscription, q admin.SubscriptionRequest) admin.Subscription {
	shown := d.showDefinition(s, false)
	if q.Sign != nil {
		shown.Signing = subscribe.ShowKeys(s.Settings, true)
	}
	return shown
}

// showDefinition adds the link that a pending subscription waits for.
func (d *Handler) showDefinition(s topics.Subscription, secrets bool) admin.Subscription {
	shown := subscribe.Show(s, secrets)
	if s.State == topics.Pending && s.Validation.Token != "" && d.cfg.Grid.ValidationURL != nil {
		shown.ValidationURL, shown.ValidationEnds = d.cfg.Grid.ValidationURL(s, s.Validation.Token), spec.TimeIfAny(s.Validation.Until)
	}
	return shown
}

// getSubscription shows the definition and how deliveries go; with secrets=true also the
// whole URL of the endpoint and what signatures are checked with.
func (d *Handler) getSubscription(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	shown := d.showDefinition(s, r.URL.Query().Get("secrets") == "true")
	err = d.addDeliveries(r.Context(), s.ID, &shown)
	return answer(w, shown, err)
}

func showStats(s delivery.Stats) *admin.DeliveryStats {
	shown := &admin.DeliveryStats{
		Matched: s.Matched, Delivered: s.Delivered, Requests: s.Attempts, Failed: orEmpty(s.Failed), Dropped: orEmpty(s.Dropped),
		DeadLettered: orEmpty(s.DeadLettered), InFlight: s.InFlight, Queued: s.Queued, Behind: s.Behind, Parked: s.Parked,
		Waiting: make([]admin.Waiting, len(s.Waiting)), Oldest: spec.TimeIfAny(s.Oldest),
		Endpoint: admin.EndpointHealth{
			State: string(s.Endpoint.State), Failures: s.Endpoint.Failures, Last: string(s.Endpoint.Last),
			Since: spec.TimeIfAny(s.Endpoint.Since), Until: spec.TimeIfAny(s.Endpoint.Until),
		},
		Recent: s.Recent, Locked: s.Locked, LockEnds: spec.TimeIfAny(s.LockEnds), HeldKeys: s.HeldKeys,
	}
	for _, h := range s.Held {
		shown.Held = append(shown.Held, admin.HeldKey(h))
	}
	for i, t := range s.Waiting {
		shown.Waiting[i] = admin.Waiting{Wait: quantity.FormatHours(t.Log), Events: t.Count}
	}
	return shown
}

func orEmpty(counts map[string]int64) map[string]int64 {
	if counts == nil {
		return map[string]int64{}
	}
	return counts
}

func (d *Handler) updateSubscription(w http.ResponseWriter, r *http.Request) error {
	var q admin.SubscriptionRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	for _, field := range []struct{ name, given, is string }{ // what tells subscriptions apart
		{"name", q.Name, s.Name}, {"topic", q.Topic, s.Source.Topic}, {"sourceHub", q.SourceHub, s.Source.Hub},
		{"domainTopic", q.DomainTopic, s.Source.DomainTopic},
	} {
		if field.given != "" && !strings.EqualFold(field.given, field.is) {
			return badRequest("leave it out, or create another subscription", "%s of a subscription cannot be changed", field.name)
		}
	}
	s, err = d.cfg.Grid.Topics.Update(r.Context(), s.Source, s.Name, func(settings *topics.Settings) error {
		return subscribe.Apply(q, settings)
	})
	return answer(w, d.showMade(s, q), err)
}

func (d *Handler) deleteSubscription(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	return done(w, d.cfg.Grid.Topics.Delete(r.Context(), s.Source, s.Name))
}

// resumeSubscription lets deliveries go on after a pause.
func (d *Handler) resumeSubscription(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	_, err = d.cfg.Grid.Topics.Update(r.Context(), s.Source, s.Name, func(settings *topics.Settings) error {
		settings.Paused = false
		return nil
	})
	return done(w, err)
}

// probeSubscription ends the probation of its endpoint at once. One that gets nothing because of its state
// has none.
func (d *Handler) probeSubscription(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	err = d.cfg.Grid.Delivery.Probe(r.Context(), s.ID)
	if errors.Is(err, delivery.ErrNotFound) && s.Why != "" {
		err = fmt.Errorf("%w: subscription %s is %s: %s", err, s.Name, s.State, s.Why)
	}
	return done(w, err)
}

// defaultOverlap is how long a signing key stays good beside its successor.
const defaultOverlap = 24 * time.Hour

// rotateSigningKey makes a key beside the others, of the algorithm of the newest where none is
// named.
func (d *Handler) rotateSigningKey(w http.ResponseWriter, r *http.Request) error {
	var q admin.KeyRotation
	if err := readJSON(r, &q); err != nil {
		return err
	}
	overlap := defaultOverlap
	if q.Overlap != "" {
		var err error
		if overlap, err = quantity.ParseSigned(q.Overlap); err != nil {
			return badRequest("write it like 24h, 90m or 7d; 0s ends the present keys at once", "overlap %.64q is no duration", q.Overlap)
		}
	}
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	algorithm := signature.HMAC
	for _, key := range subscribe.ShowKeys(s.Settings, false) {
		algorithm = key.Algorithm // the newest is the last
	}
	s, err = d.cfg.Grid.Topics.RotateKey(r.Context(), s.Source, s.Name, cmp.Or(strings.ToLower(q.Algorithm), algorithm), overlap)
	shown := d.showDefinition(s, false)
	shown.Signing = subscribe.ShowKeys(s.Settings, true)
	return answer(w, shown, err)
}

func (d *Handler) listAttempts(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	records, err := d.cfg.Grid.Delivery.Attempts(r.Context(), s.ID)
	if err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return err
	}
	return answerList(w, "attempts", records, func(a delivery.AttemptRecord) admin.Attempt {
		return admin.Attempt{
			Time: a.Time.UTC(), Events: a.Events, EventID: a.EventID, EventIDs: a.EventIDs, Probe: a.Probe, Attempt: a.Attempt, Outcome: string(a.Outcome), Status: a.Status,
			Took: a.Took.Round(10 * time.Microsecond).String(), Answer: a.Head, Error: a.Err, NextTry: spec.TimeIfAny(a.Next),
		}
	}, nil)
}
