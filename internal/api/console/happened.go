package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// What is asked for to be marked in charts, and how long it is good.
const (
	activityAsked = 40
	activityGood  = 5 * time.Second
	marksShown    = 6
)

// marked are the kinds of activity that a chart shows, with their colours and words.
var marked = map[string]struct{ tone, word string }{
	"instance.came": {"good", "joined"}, "instance.went": {"odd", "gone"}, "circuit.opened": {"bad", "circuit opened"},
	"circuit.held": {"odd", "held"}, "circuit.closed": {"good", "circuit closed"}, "circuit.resumed": {"good", "resumed"},
	"probation.began": {"odd", "on probation"}, "probation.ended": {"good", "well again"}, "subscription.disabled": {"bad", "disabled"},
	"checkpoint.moved": {"odd", "checkpoints moved"}, "disk.full": {"bad", "disk full"}, "disk.free": {"good", "disk has room"},
	"node.came": {"good", "came"}, "node.left": {"odd", "left"}, "node.lost": {"bad", "lost"},
}

// happened asks what changed lately, of one hub or of all; the newest first. Not everybody may know.
func (v *visit) happened(hub string) []admin.Activity {
	page, err := remembered(v, "activity "+hub, activityGood, func() (admin.ActivityPage, error) {
		return v.api.Activity(v.ctx, admin.ActivityQuery{Hub: hub, Limit: activityAsked})
	})
	if err != nil {
		return nil
	}
	return page.Activity
}

// marksOf are the last changes of what is in an object, the oldest first, as a chart shows them. Without
// an object they are those of all.
func marksOf(changes []admin.Activity, object ...string) (marks []mark) {
	for i := range object {
		object[i] = url.PathEscape(object[i])
	}
	within := strings.ToLower(strings.Join(object, "/"))
	for _, a := range changes {
		how, shown := marked[a.Kind]
		if !shown || within != "" && !strings.HasPrefix(strings.ToLower(a.Object)+"/", within+"/") {
			continue
		}
		marks = append(marks, mark{ID: "m" + strconv.FormatInt(a.Number, 10), Tone: how.tone, Text: cutTo(nameOf(a), 16) + " " + how.word, At: a.At.Time})
		if len(marks) == marksShown {
			break
		}
	}
	slices.Reverse(marks)
	return marks
}

// nameOf is what a change is about, without what it lies in.
func nameOf(a admin.Activity) string {
	return unescaped(a.Object[strings.LastIndexByte(a.Object, '/')+1:])
}

// unescaped is a name of an object's path as it is.
func unescaped(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// cutTo leaves so much of a name.
func cutTo(name string, length int) string {
	if runes := []rune(pictures(name)); len(runes) > length {
		return string(runes[:length-1]) + "…"
	}
	return pictures(name)
}
