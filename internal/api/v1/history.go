package v1

import (
	"net/http"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/activity/journal"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

const (
	defaultHistorySpan = 15 * time.Minute
	// maxHistoryPages bounds how much of the journal is read for a history.
	maxHistoryPages = 20
)

// showHistory gives who owned which partition of a group when, from the journal and from who owns it now.
func (d *Handler) showHistory(w http.ResponseWriter, r *http.Request) error {
	span, err := parseSpan(r.URL.Query().Get("span"))
	if err != nil {
		return err
	}
	table, err := d.cfg.Groups.Table(r.Context(), r.PathValue("hub"), r.PathValue("group"))
	if err != nil {
		return err
	}
	group, err := d.cfg.Broker.Group(r.Context(), table.Hub, table.Group)
	if err != nil {
		return err
	}
	h := admin.GroupHistory{Hub: table.Hub, Group: table.Group, Spans: []admin.OwnershipSpan{}, Changes: []admin.Activity{}}
	from := table.At.Add(-span)
	if created := d.sinceOf(table.Hub, group); from.Before(created) {
		from = created // what had the name before was another
	}
	h.From, h.To = admin.Time{Time: from}, admin.Time{Time: table.At}
	owners := map[string]string{}
	for _, row := range table.Partitions {
		owners[row.Partition] = row.Lease.Owner
	}
	var moves []activity.Entry
	q := journal.Query{
		Kinds: []string{"ownership", "instance", "checkpoint", "partition"}, Object: activity.Path("hubs", table.Hub, "groups", table.Group),
		Since: from, Limit: maxActivityPage,
	}
	for pages := 0; ; pages++ {
		found, next, err := d.cfg.Activity.Page(r.Context(), q)
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Kind == activity.OwnershipMoved {
				moves = append(moves, f.Entry)
			} else {
				h.Changes = append(h.Changes, showActivity(f))
			}
		}
		if q.Before = next; next == 0 {
			break
		}
		if pages == maxHistoryPages {
			h.Incomplete = true
			break
		}
	}
	for _, s := range journal.History(owners, moves, from, table.At) {
		h.Spans = append(h.Spans, admin.OwnershipSpan{Partition: s.Partition, Owner: s.Owner, From: admin.Time{Time: s.From}, To: admin.Time{Time: s.To}})
	}
	return writeJSON(w, http.StatusOK, h)
}

// sinceOf is when a group was made; $Default is as old as its hub.
func (d *Handler) sinceOf(hub string, g broker.Group) time.Time {
	h, err := d.cfg.Broker.Hub(hub)
	if err == nil && h.Created.After(g.Created) {
		return h.Created
	}
	return g.Created
}

func parseSpan(text string) (time.Duration, error) {
	if text == "" {
		return defaultHistorySpan, nil
	}
	span, err := quantity.ParseSigned(text)
	if err != nil || span <= 0 || span > journal.KeepFor {
		return 0, badRequest("give a span such as 15m, up to 7d", "span=%.32s is no such span", text)
	}
	return span, nil
}

// forgetInstance removes the presence of an instance that is dead.
func (d *Handler) forgetInstance(w http.ResponseWriter, r *http.Request) error {
	return done(w, d.cfg.Groups.Forget(r.Context(), r.PathValue("hub"), r.PathValue("group"), r.PathValue("instance")))
}
