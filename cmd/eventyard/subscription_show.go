package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/spf13/cobra"
)

const subscriptionShowHelp = `Show a subscription and how its deliveries go: what matched, what was delivered, what failed and how,
what waits for its next attempt, how well its endpoint is. Counts are those since the yard started.

With --watch it is shown again every second. eventyard subscription attempts shows single requests.`

func (c subscriptionCommands) show() *cobra.Command {
	var source sourceFlags
	var form output
	var watch, secrets bool
	cmd := &cobra.Command{Use: "show SUBSCRIPTION", Short: "Show a subscription and how its deliveries go", Long: subscriptionShowHelp}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "refresh it every second, until interrupted")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "with the endpoint's whole URL, secret headers and signing keys")
	source.addTo(cmd)
	form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		look := func() (admin.Subscription, error) {
			return client.Subscription(cmd.Context(), source.which(args[0]), secrets)
		}
		if watch {
			return c.watchSubscription(cmd.Context(), form, look)
		}
		s, err := look()
		if err != nil {
			return err
		}
		return c.showSubscription(c.stdout, form, s)
	})
}

// watchEvery is how often a watched subscription is looked at.
const watchEvery = time.Second

func (c subscriptionCommands) watchSubscription(ctx context.Context, form output, look func() (admin.Subscription, error)) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	screen := isTerminal(c.stdout) && form != asJSON
	lost := false
	for first := true; ; first = false {
		s, err := look()
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C is how it ends
		case err != nil && (first || !errors.As(err, new(*admin.UnreachableError))):
			return err
		case err != nil && !lost:
			fmt.Fprintf(c.stderr, "the yard is gone (%v); waiting for it\n", err)
		case err == nil:
			if err := c.showAgain(screen, form, s); err != nil {
				return err
			}
		}
		lost = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showAgain writes over what was shown before, line by line, so that nothing flickers.
func (c subscriptionCommands) showAgain(screen bool, form output, s admin.Subscription) error {
	var page bytes.Buffer
	if err := c.showSubscription(&page, form, s); err != nil {
		return err
	}
	text := page.String()
	if screen {
		text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
	}
	_, err := io.WriteString(c.stdout, text)
	return err
}

func (c subscriptionCommands) showSubscription(w io.Writer, form output, s admin.Subscription) error {
	if form == asJSON {
		return writeJSON(w, s)
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-13s %s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	line("subscription", "%s of %s", s.Name, showSource(s))
	state := s.State
	if s.Why != "" {
		state += ": " + s.Why
	}
	line("state", "%s", state)
	if s.ValidationURL != "" {
		line("open to agree", "%s", s.ValidationURL)
	}
	line("to", "%s", showTarget(s))
	for _, condition := range showFilter(s.Filter) {
		line("filter", "%s", condition)
	}
	if s.Pull != nil {
		line("schema", "%s", s.Schema)
		// what counts for who receives instead of attempts
		deliveries := 10
		if s.Pull.MaxDeliveries != nil {
			deliveries = *s.Pull.MaxDeliveries
		}
		line("lock", "%s, given %s at most, within %s", showSetting(cmp.Or(s.Pull.Lock, "1m")), counted(deliveries, "time"), showSetting(s.Retry.TTL))
	} else {
		line("schema", "%s%s", s.Schema, showBatch(s))
		line("retry", "%s", showPolicy(s.Retry))
	}
	line("dead letters", "%s", showDead(s))
	for _, h := range s.Headers {
		line("header", "%s", showHeader(h))
	}
	for _, k := range s.Signing {
		line("signed by", "%s", showSigning(k))
	}
	showExtras(line, s)
	if s.Stats == nil {
		return nil
	}
	fmt.Fprintln(w)
	showDeliveries(line, *s.Stats, s.Pull != nil)
	return nil
}

func showSigning(k admin.SigningKey) string {
	text := k.Algorithm + " " + cmp.Or(k.Text, "(--secrets shows the key)")
	if k.Expires != nil {
		text += " until " + showTime(*k.Expires)
	}
	return text
}

// shownInWords are the fields that have a line of their own.
var shownInWords = []string{
	"name", "topic", "sourceHub", "endpoint", "hub", "pull", "schema", "maxEvents", "preferredKib", "deadLetter", "headers", "orderBy", "rate", "expires",
}

// showExtras tells what few subscriptions ask for: other fields that are set have a line by their
// name in the API and in the file.
func showExtras(line func(name, format string, args ...any), s admin.Subscription) {
	if s.OrderBy != "" {
		line("in order of", "%s", s.OrderBy)
	}
	if s.Rate > 0 {
		line("rate", "%v requests a second at most", s.Rate)
	}
	if s.Expires != nil {
		line("ends", "%s", showTime(*s.Expires))
	}
	v := reflect.ValueOf(s)
	for i, name := range spec.Names(v.Type()) {
		if _, isField := spec.Subscription.Field(name); !isField || slices.Contains(shownInWords, name) || v.Field(i).IsZero() {
			continue
		}
		value := v.Field(i).Interface()
		if list, is := value.([]string); is {
			value = strings.Join(list, ", ")
		}
		line(name, "%v", value)
	}
}

func showBatch(s admin.Subscription) string {
	if s.MaxEvents <= 1 && s.PreferredKiB == 0 {
		return ", one event a request"
	}
	return fmt.Sprintf(", up to %s and %d KiB a request", counted(max(s.MaxEvents, 1), "event"), cmp.Or(s.PreferredKiB, 64))
}

func showPolicy(r admin.RetryPolicy) string {
	text := fmt.Sprintf("%s within %s", counted(r.Attempts, "attempt"), showSetting(r.TTL))
	if len(r.Schedule) > 0 {
		var steps []string
		for _, step := range r.Schedule {
			steps = append(steps, showSetting(step))
		}
		text += ", after " + strings.Join(steps, ", ")
	}
	for _, status := range slices.Sorted(maps.Keys(r.Floors)) {
		text += fmt.Sprintf(", %s not before %s", status, showSetting(r.Floors[status]))
	}
	if r.NoRetry != nil {
		statuses := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.NoRetry), " ", ", "), "[]")
		text += "; given up at once: " + cmp.Or(statuses, "none")
	}
	return text
}

func showDead(s admin.Subscription) string {
	text := cmp.Or(s.DeadLetter, noDeadLetters)
	if d := s.DeadLetters; d != nil && d.Kept > 0 {
		text += fmt.Sprintf(", %s kept", thousands(d.Kept))
		if d.Unwritten > 0 && s.DeadLetter != "yard" {
			text += fmt.Sprintf(", %s yet to be written", thousands(d.Unwritten))
		}
	}
	if d := s.DeadLetters; d != nil && d.Problem != "" {
		text += "; they cannot be written: " + d.Problem
	}
	return text
}

func showHeader(h admin.Header) string {
	switch {
	case h.Field != "":
		return h.Name + " from " + h.Field
	case h.Secret && h.Value == "":
		return h.Name + ": (secret)"
	}
	return h.Name + ": " + h.Value
}

func showDeliveries(line func(name, format string, args ...any), s admin.DeliveryStats, pull bool) {
	line("matched", "%s", thousands(s.Matched))
	if pull {
		line("acknowledged", "%s", thousands(s.Delivered))
	} else {
		line("delivered", "%s in %s", thousands(s.Delivered), counted(s.Requests, "request"))
	}
	line("failed", "%s", showCounts(s.Failed))
	line("dropped", "%s", showCounts(s.Dropped))
	line("dead-lettered", "%s", showCounts(s.DeadLettered))
	under := "in progress"
	if pull {
		under = "locked"
	}
	line(under, "%d, %d queued, %s parked, %s not yet looked at", s.InFlight, s.Queued, thousands(s.Parked), thousands(s.Behind))
	var waiting []string
	for _, t := range s.Waiting {
		waiting = append(waiting, fmt.Sprintf("%s for %s", thousands(t.Events), t.Wait))
	}
	if len(waiting) > 0 {
		line("waiting", "%s", strings.Join(waiting, ", "))
	}
	if s.Oldest != nil {
		line("oldest", "published %s", showAgo(time.Now(), *s.Oldest))
	}
	if !pull {
		line("endpoint", "%s", showHealth(s.Endpoint))
	}
}

func showCounts(counts map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, thousands(counts[name])+" "+name)
	}
	return cmp.Or(strings.Join(parts, ", "), "0")
}

func showHealth(e admin.EndpointHealth) string {
	text := e.State
	if e.Failures > 0 {
		text += fmt.Sprintf(", %s in a row, the last %s", counted(e.Failures, "failure"), e.Last)
	}
	if e.Until != nil {
		text += fmt.Sprintf("; nothing is sent for %s (eventyard subscription probe ends that)", showSpan(max(0, time.Until(*e.Until)).Round(time.Second)))
	}
	return text
}

func (c subscriptionCommands) attempts() *cobra.Command {
	var source sourceFlags
	var of admin.Subscription
	cmd := &cobra.Command{Use: "attempts SUBSCRIPTION", Short: "Show the last requests to its endpoint, with what it answered"}
	source.addTo(cmd)
	return printing(c.cli, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (made []admin.Attempt, err error) {
		if of, err = client.Subscription(cmd.Context(), source.which(args[0]), false); err != nil {
			return nil, err
		}
		c.notePending(of)
		made, err = client.Attempts(cmd.Context(), source.which(args[0]))
		return append([]admin.Attempt{}, made...), err // no list at all would be null in JSON
	}, func(made []admin.Attempt) error {
		return printTable(c.cli, made, noAttempts(of), []string{"TIME", "EVENT", "ATTEMPT", "STATUS", "OUTCOME", "TOOK", "NEXT TRY", "ANSWER"}, attemptRow)
	})
}

// noAttempts says why there are none.
func noAttempts(of admin.Subscription) string {
	switch {
	case of.State == statePending:
		return "the validation request was sent, and the endpoint has not confirmed it; events are sent only after that"
	case of.Pull != nil:
		return "clients receive these events by themselves: nothing is sent to them"
	}
	return "no request with events has been made since the yard started"
}

func attemptRow(a admin.Attempt) []string {
	event, status := a.EventID, "-"
	if a.Events > 1 {
		event += fmt.Sprintf(" and %d more", a.Events-1)
	}
	if a.Probe {
		event += " (probe)"
	}
	if a.Status != 0 {
		status = strconv.Itoa(a.Status)
	}
	return []string{showTime(a.Time), oneLine(event), strconv.Itoa(a.Attempt), status, a.Outcome, showTook(a.Took), showTimeIfAny(a.NextTry),
		shortened(oneLine(cmp.Or(a.Answer, a.Error)), 80)}
}

func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
