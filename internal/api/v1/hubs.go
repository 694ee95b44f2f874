package v1

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// maxManagementBytes bounds the body of a request whose route says nothing else.
const maxManagementBytes = 64 << 10

// timeFormat writes times the way the log keeps them: in whole milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// readRetention gives what a request sets, nil for what it does not.
func readRetention(q *admin.RetentionRequest) (age *time.Duration, bytes *int64, err error) {
	if q == nil {
		return nil, nil, nil
	}
	if q.Age != nil {
		parsed, err := quantity.ParseSigned(*q.Age)
		if err != nil {
			return nil, nil, badRequest(`write it like "168h", "90m" or "7d"; "0s" keeps for ever`, "retention age %q is no duration", *q.Age)
		}
		age = &parsed
	}
	return age, q.Bytes, nil
}

// listHubs shows the hubs that the request's grant reaches.
func (d *Handler) listHubs(w http.ResponseWriter, r *http.Request) error {
	grant, now, hubs := grantOf(r), time.Now(), []admin.Hub{}
	for _, hub := range d.cfg.Broker.Hubs() {
		if !grant.Allows(auth.At(hub.Name), 0, now) {
			continue
		}
		shown, err := d.showHub(r.Context(), hub)
		if as[*broker.NotFoundError](err) {
			continue // deleted since the list was made
		}
		if err != nil {
			return err
		}
		hubs = append(hubs, shown)
	}
	if stats, err := d.wantsStats(r); err != nil || stats {
		if err == nil {
			err = d.addHubStats(r, hubs)
		}
		if err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, map[string][]admin.Hub{"hubs": hubs})
}

func (d *Handler) createHub(w http.ResponseWriter, r *http.Request) error {
	var q admin.HubRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	cfg := broker.HubConfig{Name: q.Name}
	if q.Partitions != nil {
		// The broker takes zero for "as usual"; whoever writes a 0 means it.
		if *q.Partitions == 0 {
			return fmt.Errorf("create hub %q with 0 partitions: %w", q.Name, broker.ErrInvalidPartitionCount)
		}
		cfg.Partitions = *q.Partitions
	}
	var err error
	if cfg.Age, cfg.Bytes, err = readRetention(q.Retention); err != nil {
		return err
	}
	if err := spec.CheckQuota(q.Quota); err != nil {
		return fmt.Errorf("create hub %q: %w: %w", q.Name, broker.ErrInvalidQuota, err)
	}
	cfg.QuotaEvents, cfg.QuotaBytes = spec.QuotaParts(q.Quota)
	hub, err := d.cfg.Broker.CreateHub(r.Context(), cfg)
	if err != nil {
		return err
	}
	shown, err := d.showHub(r.Context(), hub)
	if err != nil {
		return err
	}
	return created(w, "hubs/"+url.PathEscape(hub.Name), shown)
}

func (d *Handler) getHub(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	shown, err := d.showHub(r.Context(), hub)
	return answer(w, shown, err)
}

func (d *Handler) updateHub(w http.ResponseWriter, r *http.Request) error {
	var q admin.HubRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return err
	}
	if q.Name != "" && !strings.EqualFold(q.Name, hub.Name) {
		return badRequest("create another hub instead", "hub %q cannot be renamed to %q", hub.Name, q.Name)
	}
	change := broker.HubChange{Partitions: q.Partitions}
	if change.Age, change.Bytes, err = readRetention(q.Retention); err != nil {
		return err
	}
	if err := spec.CheckQuota(q.Quota); err != nil {
		return fmt.Errorf("update hub %q: %w: %w", hub.Name, broker.ErrInvalidQuota, err)
	}
	change.QuotaEvents, change.QuotaBytes = spec.QuotaParts(q.Quota)
	if hub, err = d.cfg.Broker.UpdateHub(r.Context(), hub.Name, change); err != nil {
		return err
	}
	shown, err := d.showHub(r.Context(), hub)
	return answer(w, shown, err)
}

func (d *Handler) deleteHub(w http.ResponseWriter, r *http.Request) error {
	return done(w, d.cfg.Broker.DeleteHub(r.Context(), r.PathValue("hub")))
}

func (d *Handler) showHub(ctx context.Context, hub broker.Hub) (admin.Hub, error) {
	groups, err := d.cfg.Broker.Groups(ctx, hub.Name)
	shown := admin.Hub{
		Name:         hub.Name,
		Partitions:   hub.Partitions,
		PartitionIDs: hub.PartitionIDs(),
		Created:      admin.Time{Time: hub.Created},
		Retention:    admin.Retention{Age: quantity.FormatHours(hub.Retention.Age), Bytes: hub.Retention.Bytes},
		Quota:        spec.ShowQuota(hub.Quota),
		Groups:       make([]string, len(groups)),
	}
	for i, g := range groups {
		shown.Groups[i] = g.Name
	}
	return shown, err
}

// showTimeIfAny is nil for the zero time.
func showTimeIfAny(t time.Time) *admin.Time {
	if t.IsZero() {
		return nil
	}
	return &admin.Time{Time: t}
}

func showTime(t time.Time) string { return t.UTC().Format(timeFormat) }
