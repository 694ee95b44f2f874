package notify

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

const (
	maxSamples     = 5   // errors in a notice, the newest
	maxErrorBytes  = 300 // of one error
	maxReasonBytes = 300
	maxNameBytes   = 120
)

// trimmed is a record as it is told: its texts come from functions and whoever may write a group's
// facts, so they are made to fit into a line, and few of them are kept.
func trimmed(r breaker.Record) breaker.Record {
	r.State = cmp.Or(r.State, breaker.Closed)
	r.By, r.Reason, r.Prober = oneLine(r.By, maxNameBytes), oneLine(r.Reason, maxReasonBytes), ""
	r.Tries = nil
	r.Samples = slices.Clone(r.Samples)
	slices.SortStableFunc(r.Samples, func(a, b breaker.Sample) int { return b.At.Compare(a.At) })
	r.Samples = r.Samples[:min(len(r.Samples), maxSamples):min(len(r.Samples), maxSamples)]
	for i := range r.Samples {
		sample := &r.Samples[i]
		sample.Error, sample.Partition = oneLine(sample.Error, maxErrorBytes), oneLine(sample.Partition, maxNameBytes)
	}
	return r
}

// oneLine cuts a text, and writes what does not belong into a line as Go does in a string: line
// ends, which would end a header or begin a paragraph, and characters that turn the direction of
// writing.
func oneLine(text string, most int) string {
	text = cut(strings.TrimSpace(text), most)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		quoted := strconv.Quote(text)
		text = cut(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), most)
	}
	return text
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
