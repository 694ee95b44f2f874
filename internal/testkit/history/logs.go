package history

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Log is a history of a log: texts, no two of them alike, that are appended one by one and have the
// numbers 0, 1, … Its zero value is empty.
type Log struct{ recorder }

// logCall is one of four: an append, of which a number or nothing was heard, a read of one text, or a
// question for the end.
type logCall struct {
	kind string
	text string
}

const (
	appended, unheard, readText, asked = "append", "append, unheard", "read", "end"
)

// Append records that a text has got a number, at some moment since begun.
func (l *Log) Append(client int, begun Moment, text string, number int64) {
	l.add(client, begun, l.Now(), logCall{appended, text}, number)
}

// AppendUnheard records an append since begun of which nothing was heard. The same text may be appended
// again, once it was looked for and not found.
func (l *Log) AppendUnheard(client int, begun Moment, text string) {
	l.add(client, begun, never, logCall{unheard, text}, int64(-1))
}

// Read records that a text was given under its number by now.
func (l *Log) Read(client int, begun Moment, text string, number int64) {
	l.add(client, begun, l.Now(), logCall{readText, text}, number)
}

// End records that the log was told to have so many texts, at some moment since begun.
func (l *Log) End(client int, begun Moment, end int64) {
	l.add(client, begun, l.Now(), logCall{kind: asked}, end)
}

// Check compares the history with what the log has when all is over: each call saw a part of it from the
// first text on, and numbers were given without a gap, in an order that fits the calls.
func (l *Log) Check(texts []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := make(map[string]int64, len(texts))
	for i, text := range texts {
		if first, twice := numbers[text]; twice {
			return fmt.Errorf("%q is there twice, as number %d and %d", text, first, i)
		}
		numbers[text] = int64(i)
	}
	calls, known := slices.Clone(l.calls), map[string]bool{} // known: which call has stored a text
	for _, c := range calls {
		if in := c.Input.(logCall); in.kind == appended {
			known[in.text] = true
		}
	}
	for i, c := range calls {
		in := c.Input.(logCall)
		number, there := numbers[in.text]
		switch {
		case in.kind == unheard && there && !known[in.text]: // of several the first, which never ends
			calls[i].Output, known[in.text] = number, true
		case in.kind != unheard && in.kind != asked && (!there || number != c.Output.(int64)):
			return fmt.Errorf("%s of %q as number %d: in the end it is there: %v, as number %d", in.kind, in.text, c.Output, there, number)
		}
	}
	calls = slices.DeleteFunc(calls, func(c porcupine.Operation) bool { return c.Output.(int64) < 0 })
	return check(logs, calls)
}

// logs has the number of texts as its state: what they are is the same for all calls by then.
var logs = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		length, number := state.(int64), output.(int64)
		switch input.(logCall).kind {
		case readText:
			return number < length, length
		case asked:
			return number == length, length
		default:
			return number == length, length + 1
		}
	},
	DescribeOperation: func(input, output any) string {
		c := input.(logCall)
		return fmt.Sprintf("%s %q: %d", c.kind, c.text, output)
	},
}
