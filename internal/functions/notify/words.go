package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// detail is one line of a table.
type detail struct{ Label, Value string }

// details are what is known of a circuit, for mails and pages alike.
func details(g processor.Group, function string, r breaker.Record, lag int64) []detail {
	var all []detail
	add := func(known bool, label, value string) {
		if known && value != "" {
			all = append(all, detail{label, value})
		}
	}
	add(true, "Function", oneLine(function, maxNameBytes))
	add(true, "Hub", oneLine(g.Hub, maxNameBytes))
	add(true, "Group", oneLine(g.Group, maxNameBytes))
	add(true, "State", string(r.State))
	add(true, "Since", moment(r.Since))
	add(true, "By", r.By)
	add(true, "Reason", r.Reason)
	add(r.Failures > 0, "Failures", failures(r))
	add(lag >= 0, "Waiting", events(lag))
	add(r.State != breaker.Closed, "Policy", policyText(r.Policy))
	return all
}

// errorLine is one error as people see it.
type errorLine struct{ Where, Text string }

func errorLines(r breaker.Record) []errorLine {
	lines := make([]errorLine, 0, len(r.Samples))
	for _, s := range r.Samples {
		where := fmt.Sprintf("event %d", s.Sequence)
		if s.Partition != "" {
			where = "partition " + s.Partition + ", " + where
		}
		if at := moment(s.At); at != "" {
			where = at + ", " + where
		}
		lines = append(lines, errorLine{where, s.Error})
	}
	return lines
}

// failures is "101 failures within 30 s".
func failures(r breaker.Record) string {
	p, what := r.Policy.WithDefaults(), "failure"
	if p.Attempts {
		what = "failed attempt"
	}
	return fmt.Sprintf("%s within %s", count(int64(r.Failures), what), span(p.Within))
}

func policyText(p breaker.Policy) string {
	p = p.WithDefaults()
	text := fmt.Sprintf("opens by more than %s within %s", count(int64(p.Failures), "failure"), span(p.Within))
	if p.Failures < 0 {
		text = "never opens by itself"
	}
	if p.Probe > 0 {
		return text + fmt.Sprintf("; tries one event after %s", span(p.Probe))
	}
	return text + "; stays open until it is resumed"
}

func events(n int64) string { return count(n, "event") }

// count is "1 event" or "1,234 events".
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes a number with commas.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// moment is a time as it is shown; empty for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// span is a duration as people say it, in its two largest units.
func span(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	var parts []string
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
		} else if len(parts) > 0 {
			break
		}
		d %= unit.size
	}
	return strings.Join(parts[:min(2, len(parts))], " ")
}
