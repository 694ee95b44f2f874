package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/spf13/cobra"
)

// output is the form that -o chose.
type output string

const (
	asText output = "text"
	asJSON output = "json"
)

func (o *output) String() string { return string(*o) }

// Set takes the flag's value.
func (o *output) Set(text string) error {
	if !slices.Contains([]output{asText, asJSON}, output(text)) {
		return fmt.Errorf("it is text or json")
	}
	*o = output(text)
	return nil
}

// Type is the word that stands for the value in help.
func (o *output) Type() string { return "text|json" }

func (o *output) addTo(cmd *cobra.Command) {
	*o = asText
	cmd.Flags().VarP(o, "output", "o", "form of the output")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{string(asText), string(asJSON)}, cobra.ShellCompDirectiveNoFileComp))
}

// writeJSON prints one value for programs to read.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table lines up rows of cells. Its head is upper-case, as is usual.
type table struct {
	w     *tabwriter.Writer
	out   io.Writer
	lined bytes.Buffer // what is lined up, and not painted yet
}

func newTable(w io.Writer, head ...string) *table {
	t := &table{out: w}
	t.w = tabwriter.NewWriter(&t.lined, 0, 0, 2, ' ', 0)
	t.row(head...)
	return t
}

// row adds cells.
func (t *table) row(cells ...string) {
	for i, text := range cells {
		cells[i] = inCell(text)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// inCell makes any text fit into a cell. It may be of anybody's making: names of Kafka's groups hold line breaks if
// somebody wants it.
func inCell(text string) string { return strings.ReplaceAll(oneLine(text), "\t", `\t`) }

func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	defer t.lined.Reset()
	_, err := io.WriteString(t.out, newPaint(t.out).table(t.lined.String()))
	return err
}

// thousands writes 1234567 as 1,234,567.
func thousands[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// counted writes "1 event" and "1,000 events".
func counted[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, found := strings.CutSuffix(thing, "cy"); found {
		return thousands(n) + " " + stem + "cies"
	}
	return thousands(n) + " " + thing + "s"
}

// roughBytes writes a size for people: 1.5 GiB.
func roughBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	size, unit := float64(n), 0
	for size >= 1024 && unit < len(units)-1 {
		size /= 1024
		unit++
	}
	if unit == 0 || size >= 100 {
		return fmt.Sprintf("%.0f %s", size, units[unit])
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// exactBytes writes a size that somebody has set: 5MiB where a unit divides it, else 5,000,000 bytes
// (4.8 MiB).
func exactBytes(n int64) string {
	switch text := quantity.FormatSize(n); {
	case text != strconv.FormatInt(n, 10):
		return text
	case n < 1024:
		return counted(n, "byte")
	}
	return counted(n, "byte") + " (" + roughBytes(n) + ")"
}

// showRetention writes when events are removed.
func showRetention(age string, bytes int64) string {
	parts := []string{}
	if d, err := time.ParseDuration(age); err == nil && d > 0 {
		parts = append(parts, quantity.FormatDuration(d))
	}
	if bytes > 0 {
		parts = append(parts, exactBytes(bytes)+" a partition")
	}
	if len(parts) == 0 {
		return "forever"
	}
	return strings.Join(parts, ", ")
}

// quotaRow is a line about a quota under a label of some width; nothing where there is none.
func quotaRow(width, events int, of string, bytes int64) string {
	parts := []string{}
	if events > 0 {
		parts = append(parts, thousands(int64(events))+" "+of)
	}
	if bytes > 0 {
		parts = append(parts, exactBytes(bytes))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%-*s%s a second\n", width, "quota", strings.Join(parts, ", "))
}

func showTime(t interface{ UTC() time.Time }) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// showTimeIfAny writes a time that may not be there.
func showTimeIfAny[T interface{ UTC() time.Time }](t *T) string {
	if t == nil {
		return "-"
	}
	return showTime(*t)
}

// showSpan writes how long something took or is ago.
func showSpan(d time.Duration) string { return quantity.FormatSpan(d) }

// showTook is showSpan of what the API says that a request took.
func showTook(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return showSpan(d)
	}
	return text
}

// showSetting writes a duration of a definition, which the API says without days, as flags and files have it.
func showSetting(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return quantity.FormatDuration(d)
	}
	return text
}

// showAgo writes how long before now something was, in whole seconds.
func showAgo(now, at time.Time) string {
	return showSpan(max(0, now.Sub(at)).Truncate(time.Second)) + " ago"
}

// inSeconds is a duration as the API gives it.
func inSeconds(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// oneLine makes any text safe to print as part of a line: what would move the cursor,
// break the line or recolour the terminal is shown as an escape.
func oneLine(text string) string {
	plain := func(r rune) bool { return r == ' ' || r == '\t' || unicode.IsPrint(r) }
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if plain(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
