package invoke

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxErrorBytes is how long the text of an error may be, maxHeadBytes how much of an answer
	// that is shown to people.
	maxErrorBytes = 1000
	maxHeadBytes  = 300
)

// shorten makes text of strangers fit to be stored and shown: valid, without control characters,
// and no longer than most bytes.
func shorten(t string, most int) string {
	t = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || isControl(r):
			return -1
		case r == '\r':
			return '\n'
		}
		return r
	}, strings.ReplaceAll(t, "\r\n", "\n")))
	if len(t) <= most {
		return t
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(t[cut]) {
		cut--
	}
	return t[:cut] + "…"
}

// headOf is the beginning of an answer in one line.
func headOf(answer []byte) string {
	head := string(answer[:min(len(answer), 4*maxHeadBytes)])
	return shorten(strings.Join(strings.Fields(head), " "), maxHeadBytes)
}
