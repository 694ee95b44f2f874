package v1

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/setaside"
)

// maxPoisonPage is the most poison events that are listed at once.
const maxPoisonPage = 1000

// listPoison shows the poison events of a hub, the newest first; one that is asked for by its id
// with its event.
func (d *Handler) listPoison(w http.ResponseWriter, r *http.Request) error {
	if id := r.URL.Query().Get("id"); id != "" {
		entry, err := d.cfg.Poison.Show(r.Context(), r.PathValue("hub"), id)
		return answerList(w, "poison", []box.Entry{entry}, func(e box.Entry) admin.PoisonEvent { return showPoison(&e, true) }, err)
	}
	q, err := poisonQuery(r.URL.Query())
	if err != nil {
		return err
	}
	entries, err := d.cfg.Poison.List(r.Context(), r.PathValue("hub"), q)
	return answerList(w, "poison", entries, func(e box.Entry) admin.PoisonEvent { return showPoison(&e, false) }, err)
}

func poisonQuery(query url.Values) (q box.Query, err error) {
	q.Function, q.Source, q.Redriven = query.Get("function"), query.Get("source"), query.Get("redriven") == "true"
	if q.Limit, err = positive(query, "max", 100); err != nil {
		return q, err
	}
	q.Limit = min(q.Limit, maxPoisonPage)
	q.Since, q.Until, err = poisonTimes(query.Get("since"), query.Get("until"))
	return q, err
}

// poisonTimes reads between which times poison events were put away; empty: any.
func poisonTimes(since, until string) (from, to time.Time, err error) {
	now := time.Now()
	if since != "" {
		from, err = parseMoment(since, now)
	}
	if until != "" && err == nil {
		to, err = parseMoment(until, now)
	}
	return from, to, err
}

func showPoison(e *box.Entry, whole bool) admin.PoisonEvent {
	s := admin.PoisonEvent{
		ID: e.ID, Function: e.Function, Hub: e.Hub, Group: e.Group, Partition: e.Partition, Sequence: e.Sequence, Key: e.Event.Key,
		Reason: e.Reason, Attempts: e.Attempts, Deaths: e.Deaths, Enqueued: spec.TimeIfAny(e.Enqueued), Poisoned: spec.TimeIfAny(e.At), Instance: e.Instance,
		Redrives: e.Record.Redriven, Redriven: e.WasRedriven, Reference: e.Reference,
		At: admin.PoisonPosition{Partition: e.PoisonPartition, Sequence: e.PoisonSequence},
	}
	if whole {
		s.Stack = e.Stack
		content := eventFormat{}.appendContent([]byte{'{'}, &e.Event)
		if len(content) > 1 && content[1] == ',' { // each field begins with one
			content = append(content[:1], content[2:]...)
		}
		s.Event = append(content, '}')
	}
	return s
}

func (d *Handler) redrivePoison(w http.ResponseWriter, r *http.Request) error {
	var q admin.PoisonRedriveRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	cfg, err := redriveConfig(q)
	if err != nil {
		return err
	}
	var answer admin.PoisonRedriven
	cfg.Each = func(one box.Redriven) {
		if one.Err == nil {
			answer.Hub = one.Hub
		} else if len(answer.Errors) < 10 {
			answer.Errors = append(answer.Errors, fmt.Sprintf("%s: %v", one.ID, one.Err))
		}
	}
	answer.Redriven, answer.Failed, err = d.cfg.Poison.Redrive(r.Context(), r.PathValue("hub"), cfg)
	answer.DryRun = q.DryRun
	if answer.Redriven > 0 && !q.DryRun {
		d.note(r, activity.Entry{Kind: activity.PoisonRedriven, Object: activity.Path("hubs", r.PathValue("hub")), Count: answer.Redriven})
	}
	if err != nil && answer.Redriven > 0 {
		err = fmt.Errorf("%d events were redriven to hub %q, then: %w", answer.Redriven, answer.Hub, err)
	}
	if err != nil {
		return err
	}
	answer.More = len(q.IDs) == 0 && !q.DryRun && answer.Redriven == cfg.Limit
	return writeJSON(w, http.StatusOK, answer)
}

// redriveConfig is one round's: a client asks again, and can show how far it is.
func redriveConfig(q admin.PoisonRedriveRequest) (cfg box.RedriveConfig, err error) {
	if q.Rate < 0 || q.Max < 0 {
		return cfg, badRequest("give 0 or more, or leave it out", "rate and max cannot be below 0")
	}
	if len(q.IDs) > setaside.MaxRound {
		return cfg, badRequest("ask for fewer at once", "%d ids are more than %d", len(q.IDs), setaside.MaxRound)
	}
	cfg.Query = box.Query{
		Function: q.Function, Source: q.Source, IDs: q.IDs, Redriven: q.Redriven, Limit: setaside.Round(q.Max, float64(q.Rate)),
	}
	cfg.Force, cfg.PerSecond, cfg.DryRun = q.Force, q.Rate, q.DryRun
	if q.DryRun {
		cfg.Limit = 0 // nothing is marked, so that a second request would find the same
	}
	cfg.Since, cfg.Until, err = poisonTimes(q.Since, q.Until)
	return cfg, err
}
