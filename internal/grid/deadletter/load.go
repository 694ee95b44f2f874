package deadletter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Bounds of one write: large, but not so that a target would refuse it.
const (
	maxWriteLetters = 5000
	maxWriteBytes   = 4 << 20
)

// load is what is written at once: letters from first up to next.
type load struct {
	first, next  int64
	subscription string   // its name
	letters      []Letter // without their events
	// unreadable are those that cannot be shown.
	unreadable []int64
	// shown has all letters as their target has them, in an array that lacks its end; ends is where
	// each ends.
	shown []byte
	ends  []int
}

// array is the content of a file.
func (l *load) array() []byte { return append(l.shown, ']') }

// body is one letter.
func (l *load) body(i int) []byte {
	begin := 1
	if i > 0 {
		begin = l.ends[i-1] + 1
	}
	return l.shown[begin:l.ends[i]]
}

// add shows a letter.
func (l *load) add(letter Letter, sub *topics.Subscription, topic string) {
	separator := byte(',')
	if len(l.letters) == 0 {
		separator = '['
	}
	shown, err := showDead(append(l.shown, separator), &letter, sub, topic)
	if err != nil {
		l.unreadable = append(l.unreadable, letter.Number)
		return
	}
	letter.Trace, letter.Event = letter.TraceContext(), nil
	l.letters, l.shown, l.ends = append(l.letters, letter), shown, append(l.ends, len(shown))
}

// without gives the load without its last letters.
func (l load) without(last int) load {
	if last == 0 {
		return l
	}
	kept := len(l.letters) - last
	l.next = l.letters[kept].Number
	l.letters, l.ends = l.letters[:kept], l.ends[:kept]
	l.unreadable = slices.DeleteFunc(l.unreadable, func(number int64) bool { return number >= l.next })
	return l
}

// showDead writes a letter in the subscription's schema, spelled as that does (G8). An event that
// cannot be written in it may have died of just that: it is written in its own.
func showDead(dst []byte, l *Letter, sub *topics.Subscription, topic string) ([]byte, error) {
	var e schema.Envelope
	if err := e.Scan(l.Form, l.Event); err != nil {
		return nil, err
	}
	e.Topic, e.Trace = topic, l.Trace
	d := schema.DeadLetter{
		Reason: l.Reason, Attempts: l.Attempts, LastOutcome: string(l.LastOutcome), LastStatus: l.LastStatus,
		Published: l.Published, LastAttempt: l.LastAttempt,
	}
	if shown, err := schema.AppendDeadLetter(dst, &e, sub.Output, d); err == nil {
		return shown, nil
	}
	own := schema.EventGrid
	if l.Form == schema.CloudEventForm {
		own = schema.CloudEvents
	}
	return schema.AppendDeadLetter(dst, &e, own, d)
}

// oldest gives when the letter died that has waited longest to be written; false if there is none.
// That may mean that all that waited are purged: then it is noted how far that goes.
func (b *box) oldest(ctx context.Context) (died time.Time, found bool, err error) {
	marks := b.book.Marks()
	end, err := b.walk(ctx, b.reached(), func(number int64, at time.Time, _ []byte) bool {
		if marks.Purged(number) {
			return true
		}
		died, found = at, true
		return false
	})
	if err == nil && !found && end > b.reached() {
		err = b.changeState(ctx, func(st *state) { st.Written = max(st.Written, end) })
	}
	return died, found, err
}

// gather reads the letters to be written next. Those that were purged are passed over. Where the
// log cannot be read on, what was read is taken.
func (b *box) gather(ctx context.Context, sub *topics.Subscription, topic string) (load, error) {
	marks, most := b.book.Marks(), maxWriteBytes
	if sub.DeadLetter.Kind == topics.TargetHub {
		most = eventlog.MaxBatchBytes // it takes no more
	}
	l := load{first: b.reached(), subscription: sub.Name}
	var err error
	l.next, err = b.walk(ctx, l.first, func(number int64, died time.Time, message []byte) bool {
		if marks.Purged(number) {
			return true
		}
		letter, err := readLetter(number, died, message)
		if err != nil {
			l.unreadable = append(l.unreadable, number)
		} else {
			l.add(letter, sub, topic)
		}
		return len(l.letters) < maxWriteLetters && len(l.shown) < most
	})
	if len(l.letters) > 0 {
		err = nil
	}
	return l, err
}

// name is the path that letters have in a folder or container: the same for the same first letter,
// so that a repeat after a crash replaces what it repeats.
func name(sub *topics.Subscription, l load) string {
	at := l.letters[0].Died.UTC()
	source := sub.Source.Topic
	if source == "" {
		// Hubs' names have slashes, and dots between them.
		source = strings.ReplaceAll(sub.Source.Hub, "/", "-")
	} else if sub.Source.DomainTopic != "" {
		source += "/" + sub.Source.DomainTopic
	}
	return fmt.Sprintf("%s/%s/%d/%d/%d/%d/%s.json", strings.ToUpper(source), strings.ToUpper(sub.Name),
		at.Year(), at.Month(), at.Day(), at.Hour(), l.letters[0].guid(sub.ID))
}

// guid follows from the subscription and the letter. Its number alone would not do: where a log
// loses its end the numbers are given anew.
func (l *Letter) guid(id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", id, l.Number, l.Died.UnixMilli()))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
