package notify

import (
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// row is one of the few figures that a page shows large.
type row struct{ Label, Value, Note string }

// rows are what decides whether to press the button: how much failed, how much waits, for how
// long.
func rows(r breaker.Record, lag int64, now time.Time) []row {
	var all []row
	if r.State != breaker.Closed && r.Failures > 0 {
		label := "Failures"
		if r.Policy.Attempts {
			label = "Failed attempts"
		}
		all = append(all, row{label, grouped(int64(r.Failures)), "within " + span(r.Policy.WithDefaults().Within)})
	}
	if lag >= 0 {
		all = append(all, row{"Waiting", events(lag), "after the checkpoint"})
	}
	label, at := "Stopped", r.Opened
	if r.State == breaker.Closed {
		label, at = "Resumed", r.Since
	} else if at.IsZero() {
		at = r.Since
	}
	if !at.IsZero() {
		all = append(all, row{label, ago(now.Sub(at)), moment(at)})
	}
	return all
}

// ago is "12 min ago". Clocks differ, so a moment may seem to be still to come.
func ago(d time.Duration) string {
	if d < 5*time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// shownAbove are the details that a page shows elsewhere already.
var shownAbove = []string{"Function", "State", "Failures", "Waiting"}

// pageDetails are the details that are left for a page's table.
func pageDetails(all []detail, above []row) []detail {
	return slices.DeleteFunc(all, func(d detail) bool {
		return slices.Contains(shownAbove, d.Label) || d.Label == "Since" && slices.ContainsFunc(above, func(f row) bool { return f.Note == d.Value })
	})
}

// errorGroup is an error, and all the places where it was seen: in an outage most are the same.
type errorGroup struct {
	Text  string
	Where []string
}

func errorGroups(lines []errorLine) []errorGroup {
	var groups []errorGroup
	for _, l := range lines {
		i := slices.IndexFunc(groups, func(g errorGroup) bool { return g.Text == l.Text })
		if i < 0 {
			i, groups = len(groups), append(groups, errorGroup{Text: l.Text})
		}
		groups[i].Where = append(groups[i].Where, l.Where)
	}
	return groups
}
