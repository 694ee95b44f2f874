package console

import (
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// firstRun are the first steps with a yard. Each is ticked off when the yard sees that it was done, by whichever
// client: nobody says so here.
type firstRun struct {
	Steps []firstStep
	// Development: nobody beyond this machine can reach the yard.
	Development bool
	// Hub is the one to send to: that of the yard, or the name that is suggested.
	Hub string
	// String is a connection string; Copy is where the script gets the whole of one whose key is not shown.
	String, Copy string
	Languages    []tab
	// Send and Read are programs in the language that is chosen, the others the same on the command line.
	Send, Read                       string
	Create, SendCommand, ReadCommand string
	// Emulator is the guide of who comes from the official one.
	Emulator string
}

// firstStep is one of them. State is done or now; empty: it comes later.
type firstStep struct{ Title, State string }

// firstShown is for how long steps are shown that are all done, from when the hub was created: who does the last
// one sees that it is.
const firstShown = 10 * time.Minute

// firstVisit is a visit to the first steps.
type firstVisit struct{ *visit }

// steps are the first steps in a yard: while it is empty, and while it has one hub of which not all was seen
// yet. nil: they are over, or not this reader's to do.
func (v firstVisit) steps(lists yardLists, empty bool) *firstRun {
	if !empty && (len(lists.hubs) != 1 || lists.more() || !v.may("Manage")) {
		return nil
	}
	f := &firstRun{Development: v.console.cfg.Access.Development(), Hub: "orders", Emulator: docsPath + "/guides/from-emulator"}
	seen := []bool{true, !empty, false, false}
	if !empty {
		h := lists.hubs[0]
		f.Hub = h.Name
		seen[3] = v.wasRead(h)
		seen[2] = seen[3] || h.Stats != nil && h.Stats.Events > 0
		if seen[3] && v.now.Sub(h.Created.Time) > firstShown {
			return nil
		}
	}
	now := slices.Index(seen, false)
	for i, title := range []string{"Start the yard", "Create a hub", "Send an event", "Read it, in as many workers as you like"} {
		step := firstStep{Title: title}
		switch {
		case seen[i]:
			step.State = "done"
		case i == now:
			step.State = "now"
		}
		f.Steps = append(f.Steps, step)
	}
	v.say(f)
	return f
}

// more tells whether there is anything but hubs that somebody has made.
func (l *yardLists) more() bool {
	return len(l.subscriptions) > 0 || len(l.functions) > 0 || len(l.circuits) > 0 ||
		slices.ContainsFunc(l.topics, func(t admin.Topic) bool { return t.Name != yardEvents })
}

// wasRead tells whether somebody has got events of a hub: a group has a checkpoint, or events were given to a
// reader, as far back as the yard knows.
func (v firstVisit) wasRead(h admin.Hub) bool {
	if h.Stats != nil && h.Stats.LagEvents != nil {
		return true
	}
	for _, w := range []window{windows[0], windows[len(windows)-1]} { // to the second, and for a day
		list, err := v.api.Series(v.ctx, admin.SeriesQuery{Of: []string{"read"}, Hub: h.Name, Span: w.length})
		if err != nil {
			continue // the step is not ticked, and the page is shown
		}
		for _, s := range list.Series {
			if slices.ContainsFunc(s.Values, func(n *float64) bool { return n != nil && *n > 0 }) {
				return true
			}
		}
	}
	return false
}

// say adds how each step is done: in the language that is chosen, and with a connection string. In development
// mode that is the one with the key that everybody knows; beyond loopback it has a key that is not on the page.
func (v firstVisit) say(f *firstRun) {
	l := languageOf(v.r.URL.Query().Get("lang"))
	for _, other := range languages {
		f.Languages = append(f.Languages, tab{Name: other.name, Link: with(base, "lang", other.word), Here: other == l})
	}
	f.Send, f.Read = snippet(l, f.Hub, true, v.address()), snippet(l, f.Hub, false, v.address())
	f.Create, f.SendCommand, f.ReadCommand = command("hub", "create", f.Hub, "--partitions", "4"), command("send", f.Hub, "hello"), command("read", f.Hub, "--from", "earliest")
	if !v.may("Manage") {
		return
	}
	info, err := v.api.Info(v.ctx)
	if err != nil {
		return
	}
	f.String = maskedString(info, admin.Policy{Name: auth.RootPolicy}, f.Development)
	if !f.Development {
		f.Copy = copyPath(admin.Policy{Name: auth.RootPolicy})
		return
	}
	c := auth.ConnectionString{Policy: auth.RootPolicy, Key: auth.DevelopmentKey}
	c.Endpoint, c.Emulator = endpointOf(info, true)
	f.String = c.String()
	known := shell(auth.RootPolicy + ":" + auth.DevelopmentKey)
	f.Send, f.Read = strings.ReplaceAll(f.Send, `"$YARD_USER"`, known), strings.ReplaceAll(f.Read, `"$YARD_USER"`, known)
}

// sentence is how far somebody is, as it is read aloud.
func (f *firstRun) sentence() string {
	for i, step := range f.Steps {
		if step.State == "now" {
			return "Done so far: " + plural(i, "step", "steps") + " of 4. Next: " + step.Title + "."
		}
	}
	return "All four steps are done."
}
