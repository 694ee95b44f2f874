package console

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// probes is the line of an endpoint on probation: each probe that failed, and when the next one is.
type probes struct {
	Since string  // the failures that began it, without its probes
	Begin float64 // of probation
	Now   float64
	Next  float64 // the next probe; negative: there is none to come
	In    string  // how long until then
	Done  []probed
	Times []hour
	Label string // it in a sentence
}

// Before and Lasts are how wide the time before probation is, and that of it up to now.
func (p probes) Before() float64 { return round(p.Begin - probesLeft) }
func (p probes) Lasts() float64  { return round(max(p.Now-p.Begin, 0)) }

// probed is a probe that was made; an empty text: there is no room for it.
type probed struct {
	X    float64
	Text string
}

const (
	probesLeft, probesRight = 8, 950
	// probeRoom is what the text of a probe takes.
	probeRoom = 30
	probeStep = 5 * time.Second
)

// newProbes draws the probation that an endpoint is on; nil: on none.
func newProbes(s admin.Subscription, attempts []admin.Attempt, now time.Time) *probes {
	if s.Stats == nil || s.Stats.Endpoint.Since == nil || s.Stats.Endpoint.State != "probation" && s.Stats.Endpoint.State != "probing" {
		return nil
	}
	health := s.Stats.Endpoint
	from, to := health.Since.Add(-now.Sub(*health.Since)/12), now.Truncate(probeStep).Add(probeStep)
	if health.Until != nil && health.Until.After(to) {
		to = *health.Until
	}
	length := max(to.Sub(from), time.Second)
	at := func(t time.Time) float64 {
		return round(probesLeft + (probesRight-probesLeft)*min(max(float64(t.Sub(from))/float64(length), 0), 1))
	}
	p := &probes{Begin: at(*health.Since), Now: at(now.Truncate(probeStep)), Next: -1}
	p.Done = probedOf(attempts, *health.Since, at)
	p.Since = plural(max(health.Failures-len(p.Done), 1), "failure", "failures")
	p.Times = []hour{{X: p.Begin, At: health.Since.Unix(), Text: health.Since.UTC().Format("15:04")}, {X: p.Now, At: now.Unix() / 60 * 60, Text: now.UTC().Format("15:04")}}
	p.Label = fmt.Sprintf("On probation since %s. %s failed.", health.Since.UTC().Format("15:04:05 MST"), plural(len(p.Done), "probe", "probes"))
	if health.Until != nil && health.Until.After(now) {
		p.Next, p.In = at(*health.Until), "probe in "+span(health.Until.Sub(now).Truncate(time.Second))
		p.Label += " The next is at " + health.Until.UTC().Format("15:04:05 MST") + "."
	}
	return p
}

// probedOf are the probes of a probation, the oldest first.
func probedOf(attempts []admin.Attempt, since time.Time, at func(time.Time) float64) (done []probed) {
	free := 0.
	for _, a := range slices.Backward(attempts) {
		if !a.Probe || a.Time.Before(since) || a.Status/100 == 2 {
			continue
		}
		d := probed{X: at(a.Time)}
		if d.X >= free {
			d.Text, free = strconv.Itoa(a.Status), d.X+probeRoom
			if a.Status == 0 {
				d.Text = "none"
			}
		}
		done = append(done, d)
	}
	return done
}
