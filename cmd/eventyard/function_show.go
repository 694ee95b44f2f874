package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/spf13/cobra"
)

func (c functionCommands) show() *cobra.Command {
	return printing(c.cli, &cobra.Command{Use: "show NAME", Short: "Show how a function is: state, lag, failures, circuit"},
		func(cmd *cobra.Command, client *admin.Client, args []string) (admin.Function, error) {
			return client.Function(cmd.Context(), args[0])
		}, func(f admin.Function) error { return printFunction(c.stdout, f) })
}

// entries prints pairs in two columns.
type entries struct{ w *tabwriter.Writer }

func newEntries(w io.Writer) entries { return entries{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

func (f entries) add(name, format string, args ...any) {
	fmt.Fprintf(f.w, "%s\t%s\n", name, inCell(fmt.Sprintf(format, args...)))
}

func printFunction(w io.Writer, f admin.Function) error {
	p := newEntries(w)
	p.add("function", "%s", f.Name)
	p.add("state", "%s", f.State)
	if f.Problem != "" {
		p.add("problem", "%s", oneLine(f.Problem))
	}
	p.add("events", "of hub %s, as group %s", f.Hub, f.Group)
	p.add("endpoint", "%s (%s)", oneLine(f.Endpoint), f.Format)
	if len(f.Headers) > 0 {
		p.add("headers", "%s", oneLine(strings.Join(f.Headers, ", ")))
	}
	p.add("lag", "%s", showFunctionLag(f))
	p.add("instances", "%d, for %s; recommended for the lag: %d", f.Instances, counted(f.Partitions, "partition"), f.Recommended)
	p.add("calls", "%s, %s failed, %s timed out", thousands(f.Counts.Calls), thousands(f.Counts.Failed), thousands(f.Counts.Timeouts))
	p.add("handled", "%s since the yard started; %s put away, %s skipped, %s dropped", counted(f.Counts.Done, "event"),
		thousands(f.Counts.Poisoned), thousands(f.Counts.Skipped), thousands(f.Counts.Dropped))
	p.add("calls of", "up to %s, within %s", counted(f.Batch, "event"), showSetting(f.Timeout))
	p.add("retries", "%s", showRetries(f))
	p.add("poison", "%s (%s there, not redriven)", showPoisonTarget(f.Poison), showPoisoned(f))
	p.add("breaker", "%s; %s", showBreakerOf(f), showFailures(f.Failures, f.Circuit.State))
	addCircuit(p, f.Circuit)
	if f.Circuit.State != "closed" {
		p.add("", "it continues with: eventyard function resume %s", f.Name)
	}
	if f.LastError != "" && f.LastErrorAt != nil {
		p.add("last error", "%s: %s", showTime(*f.LastErrorAt), oneLine(f.LastError))
	}
	if len(f.Notify) > 0 {
		p.add("notices", "%s", oneLine(strings.Join(f.Notify, ", ")))
	}
	p.add("created", "%s", showTime(f.Created))
	return p.w.Flush()
}

func showFunctionLag(f admin.Function) string {
	if f.Lag == nil {
		return "?"
	}
	text := counted(*f.Lag, "event")
	if f.OldestSeconds != nil && *f.Lag > 0 {
		text += ", the oldest for " + showSpan(inSeconds(*f.OldestSeconds).Truncate(time.Second))
	}
	return text
}

func showRetries(f admin.Function) string {
	times := strconv.Itoa(f.Retries)
	if f.Retries < 0 {
		times = "forever"
	}
	if f.Retries == 0 {
		return "none"
	}
	text := times + ", after " + f.RetryDelay
	if f.Exponential {
		text += ", doubled each time"
	}
	return text
}

func showBreakerOf(f admin.Function) string {
	if f.Breaker == "off" {
		return "off"
	}
	failures, within, _ := strings.Cut(f.Breaker, "/")
	text := "opens at more than " + failures + " failures in " + within
	if f.Probe != "" {
		text += ", tries an event after " + f.Probe
	}
	return text
}

// showFailures tells how many there are, or were when the circuit opened.
func showFailures(failures int, state string) string {
	text := counted(failures, "failure")
	if state != "closed" && state != "held" {
		return text + " when it opened"
	}
	return text + " now"
}

func addCircuit(p entries, s admin.CircuitState) {
	text := s.State
	if s.State == "held" {
		text += " (by an operator)"
	}
	by := ""
	if s.By != "" {
		by = ", by " + oneLine(s.By)
	}
	p.add("circuit", "%s", text+circuitReason(s, by))
	if s.Trying != nil {
		p.add("tries", "partition %s, event %d", oneLine(s.Trying.Partition), s.Trying.Sequence)
	}
	for i, e := range s.Errors {
		if i > 0 && e.Error == s.Errors[i-1].Error {
			p.add("", "%s  partition %s, event %d: the same", showTime(e.At), e.Partition, e.Sequence)
			continue
		}
		p.add("", "%s  partition %s, event %d: %s", showTime(e.At), e.Partition, e.Sequence, oneLine(e.Error))
	}
}
