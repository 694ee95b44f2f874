package v1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// explainFilter says which conditions of a subscription's filter an event would pass. Nothing is
// published. Each node knows the definition, so that none is asked.
func (d *Handler) explainFilter(w http.ResponseWriter, r *http.Request) error {
	s, err := d.findSubscription(r)
	if err != nil {
		return err
	}
	var e schema.Envelope
	if err := d.readAsPublished(r, s, &e); err != nil {
		return err
	}
	if err := stillLetIn(r); err != nil {
		return err
	}
	findings, err := filter.Explain(s.Matches(), &e)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, showExplanation(s.Name, findings))
}

// readAsPublished reads the event of a request as it would be stored for a subscription.
func (d *Handler) readAsPublished(r *http.Request, s topics.Subscription, e *schema.Envelope) error {
	stored, form, err := d.storedForm(r, s)
	if err != nil {
		return err
	}
	if err := e.Scan(form, stored); err != nil {
		return err
	}
	e.Topic = s.Resource
	return nil
}

func (d *Handler) storedForm(r *http.Request, s topics.Subscription) ([]byte, schema.Form, error) {
	if s.Source.Hub != "" {
		var given sentEvent
		if err := readJSON(r, &given); err != nil {
			return nil, 0, err
		}
		ev, err := given.event()
		if err != nil {
			return nil, 0, err
		}
		stored, err := schema.FromHub(nil, schema.HubEvent{
			Namespace: d.cfg.Broker.Namespace(), Hub: s.Source.Hub, Partition: "0", Enqueued: time.Now(), Key: ev.Key, Event: ev,
		})
		return stored, schema.CloudEventForm, err
	}
	t, err := d.cfg.Grid.Topics.Topic(s.Source.Topic)
	if err != nil {
		return nil, 0, err
	}
	body, err := frame.ReadBody(r.Body, r.ContentLength)
	if err != nil {
		return nil, 0, err
	}
	events, err := schema.Read(schema.Publication{
		Kind: t.Schema, Mapping: t.Mapping, TopicID: t.Resource, TopicName: t.Name, Domain: t.Domain != nil,
		Header: r.Header, Body: body, Now: time.Now(), NewID: frame.NewID, MaxEventBytes: d.cfg.MaxEventBytes,
	})
	if err != nil {
		return nil, 0, badRequest("send one event as it is published to topic "+t.Name, "%v", err)
	}
	if len(events) != 1 {
		return nil, 0, badRequest("send one event", "there are %d events", len(events))
	}
	return events[0], t.Schema.Form(), nil
}

func showExplanation(subscription string, findings []filter.Finding) admin.Explanation {
	return admin.Explanation{
		Subscription: subscription, Matches: filter.Failed(findings) == nil, Summary: sayMatch(findings), Conditions: showFindings(findings),
	}
}

func showFindings(findings []filter.Finding) []admin.Finding {
	shown := make([]admin.Finding, len(findings))
	for i, f := range findings {
		shown[i] = admin.Finding{
			Key: f.Condition.Key, Operator: f.Condition.Operator, Value: json.RawMessage(f.Condition.Value), Values: json.RawMessage(f.Condition.Values),
			Met: f.Met, Cut: f.Cut, Passes: f.Passes,
		}
	}
	return shown
}

// sayMatch says in a sentence whether an event passes a filter.
func sayMatch(findings []filter.Finding) string {
	failed := filter.Failed(findings)
	switch {
	case failed != nil:
		return "the event does not match: the filter wants " + failed.Words()
	case len(findings) == 0:
		return "the event matches: there is no filter"
	case len(findings) == 1:
		return "the event matches: it passes the only condition"
	}
	return fmt.Sprintf("the event matches: it passes all %d conditions", len(findings))
}
