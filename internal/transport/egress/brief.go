package egress

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/transport/reason"
)

// maxErrorBytes is how long the text of an error may be: net/http's hold what the other side sent.
const maxErrorBytes = 400

// brief is an error whose text fits into a line, whatever the other side had to do with it.
type brief struct {
	text string
	err  error
}

// inBrief shortens what an error says, in plain words. What it is stays as it was.
func inBrief(err error) error { return brief{oneLine(reason.Of(err), maxErrorBytes), err} }

func (b brief) Error() string { return b.text }

func (b brief) Unwrap() error { return b.err }

// oneLine cuts a text, and writes what does not belong into a line as Go does in a string.
func oneLine(text string, most int) string {
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
