package notify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// notice is what people are told, whichever way.
type notice struct {
	Kind     kind
	Group    processor.Group
	Function string
	Incident string
	// Record is the circuit as it is by this notice, Began as it was when the incident began.
	Record, Began breaker.Record
	Gone          bool  // it ended with its function
	Lag           int64 // -1: unknown
	// Link resumes; empty: there is none. Expires is when it does.
	Link    string
	Expires time.Time
}

// sampleNotice is one to try the settings with. Its link leads nowhere, so it has none.
func sampleNotice(now time.Time) notice {
	r := breaker.Record{
		State: breaker.Open, Term: 1, Since: now, Opened: now, Failures: 101, By: "example", Reason: "this is a test",
		Samples: []breaker.Sample{{At: now, Partition: "0", Sequence: 42, Error: "an error as the function gave it"}},
	}
	return notice{
		Kind: kindTest, Group: processor.Group{Hub: "example-hub", Group: "example-group"}, Function: "example", Incident: "test-" + now.UTC().Format("20060102T150405.000"),
		Record: r, Began: r, Lag: 1234,
	}
}

// id is the same for each repeat of a notice to a target.
func (n notice) id(target string) string { return n.idOf(n.Kind, target) }

func (n notice) idOf(k kind, target string) string {
	return guid(keyOf(n.Group, n.Function), n.Incident, string(k), target)
}

// lag asks how many events wait. A notice is worth more than that number, so it has little time.
func (s *sender) lag(ctx context.Context, g processor.Group) int64 {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s.cfg.Circuits.Lag(ctx, g)
}

// name is the function's, in a line.
func (n notice) name() string { return oneLine(n.Function, maxNameBytes) }

// headline is what happened, as a subject says it.
func (n notice) headline() string {
	switch n.Kind {
	case kindTest:
		return "Test of notices"
	case kindHeld:
		return fmt.Sprintf("%s was stopped%s", n.name(), by(n.Record.By))
	case kindEnded:
		began := n.began()
		switch {
		case n.Gone:
			return fmt.Sprintf("%s was removed while it was stopped", n.name())
		case n.Record.Since.IsZero():
			return fmt.Sprintf("%s was resumed meanwhile", n.name())
		case !began.IsZero() && n.Record.Since.After(began):
			return fmt.Sprintf("%s was resumed%s, after %s", n.name(), by(n.Record.By), span(n.Record.Since.Sub(began)))
		}
		return fmt.Sprintf("%s was resumed%s", n.name(), by(n.Record.By))
	}
	if n.Began.Failures == 0 {
		return fmt.Sprintf("%s has stopped", n.name())
	}
	return fmt.Sprintf("%s has stopped after %s", n.name(), failures(n.Began))
}

func (n notice) began() time.Time {
	if !n.Began.Opened.IsZero() {
		return n.Began.Opened
	}
	return n.Began.Since
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// story is what that means, in sentences.
func (n notice) story() []string {
	const safe = "Nothing is lost: the checkpoint stays where it is, and reading goes on from there."
	switch n.Kind {
	case kindTest:
		return []string{"Somebody tried whether notices of this yard arrive here. They do. A real one looks like this; nothing below has happened."}
	case kindHeld:
		return []string{"An operator holds its circuit: no event is handled until an operator ends that.", safe}
	case kindEnded:
		if n.Gone {
			return []string{"Its events are where they were; another function of the same group would go on from the checkpoint."}
		}
		return []string{"Its circuit is closed: events are handled again, from the checkpoint on. Nothing was lost.", putAway}
	}
	probing := "It stays so until somebody resumes it."
	if p := n.Record.Policy; p.Probe > 0 {
		probing = fmt.Sprintf("It tries one event by itself, first after %s, and goes on if that works.", span(p.Probe))
	}
	return []string{"Too many events failed, so its circuit is open: no event is handled, on any instance. " + probing, safe, putAway}
}

// putAway tells of those for which the circuit opened too late. How many there are is not known
// here.
const putAway = "Events that had used up their retries before it opened are where the function puts such away, mostly in a hub of its name and -poison: " +
	"once it is mended, eventyard poison redrive sends them again."

// command resumes.
func (n notice) command() string { return "eventyard circuit close " + shellWord(n.name()) }

// shellWord quotes what a shell would not take as it is.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.:", r)
	}
	if text != "" && text[0] != '-' && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
