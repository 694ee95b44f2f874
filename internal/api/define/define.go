// Package define reads a function's definition from the words that the HTTP listener, the command line and the
// configuration have in common, and shows it in them.
package define

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/functionwire"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/runner"
)

// Apply writes a request over a definition: what is not given stays. What is wrong with the words is an error that wraps
// runner.ErrInvalid; what is wrong with the whole is the runner's to say.
func Apply(r functionwire.FunctionRequest, d *runner.Definition) error {
	setText(&d.Name, r.Name)
	setText(&d.Hub, r.Hub)
	setText(&d.Group, r.Group)
	set(&d.Endpoint, r.Endpoint)
	set(&d.Format, r.Format)
	if r.Headers != nil {
		d.Headers = maps.Clone(r.Headers)
	}
	set(&d.Batch, r.Batch)
	set(&d.MinBatch, r.MinBatch)
	set(&d.Lanes, r.Lanes)
	set(&d.Start, r.Start)
	if r.Retries != nil {
		d.Retries = new(*r.Retries)
	}
	set(&d.Exponential, r.Exponential)
	set(&d.Poison, r.Poison)
	set(&d.Breaker.Attempts, r.CountAttempts)
	if r.Notify != nil {
		d.Notify = slices.Clone(r.Notify)
	}
	set(&d.Target, r.Target)
	if err := applyTimes(r, d); err != nil {
		return err
	}
	if r.Exponential != nil && !*r.Exponential && d.RetryDelay == 0 {
		d.RetryDelay = runner.DefaultRetryDelay // where nothing is said of retries at all their waits double
	}
	return nil
}

func applyTimes(r functionwire.FunctionRequest, d *runner.Definition) error {
	for _, f := range []struct {
		name string
		text *string
		to   *time.Duration
	}{
		{"maxWait", r.MaxWait, &d.MaxWait}, {"timeout", r.Timeout, &d.Timeout}, {"retryDelay", r.RetryDelay, &d.RetryDelay},
		{"retryMaxDelay", r.RetryMaxDelay, &d.RetryMax}, {"probe", r.Probe, &d.Breaker.Probe}, {"probeMax", r.ProbeMax, &d.Breaker.ProbeMax},
	} {
		if f.text == nil {
			continue
		}
		duration, err := config.ParseDuration(*f.text)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", runner.ErrInvalid, f.name, err)
		}
		*f.to = duration
	}
	if r.Breaker == nil {
		return nil
	}
	failures, within, err := ParseBreaker(*r.Breaker)
	if err != nil {
		return fmt.Errorf("%w: breaker: %w", runner.ErrInvalid, err)
	}
	d.Breaker.Failures, d.Breaker.Within = failures, within
	return nil
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func setText(to *string, text string) {
	if text != "" {
		*to = text
	}
}

// ParseBreaker reads "100/30s" as more than a hundred failures within thirty seconds, and "off" as -1.
func ParseBreaker(text string) (failures int, within time.Duration, err error) {
	if strings.EqualFold(text, "off") {
		return -1, 0, nil
	}
	number, window, found := strings.Cut(text, "/")
	failures, err = strconv.Atoi(strings.TrimSpace(number))
	if !found || err != nil || failures < 0 {
		return 0, 0, fmt.Errorf("%q: write it like 100/30s: more than a hundred failures within thirty seconds, or off", text)
	}
	within, err = config.ParseDuration(strings.TrimSpace(window))
	if err != nil || within <= 0 {
		return 0, 0, fmt.Errorf("%q: write it like 100/30s: the time behind the slash is above zero", text)
	}
	if failures == 0 {
		return 0, 0, fmt.Errorf("%q: at least 1 failure has to be allowed, as 0 stands for the default", text)
	}
	return failures, within, nil
}

// Show writes a function in the words of requests, without the values of its headers.
func Show(f runner.Function) functionwire.Function {
	s := functionwire.Function{
		Name: f.Name, Hub: f.Hub, Group: f.Group, Endpoint: f.Endpoint, Format: f.Format, Headers: slices.Sorted(maps.Keys(f.Headers)),
		State: f.State, Problem: f.Problem, Failures: f.Failures, Circuit: ShowState(f.Circuit), Partitions: f.Partitions,
		Instances: f.Instances, Recommended: f.Recommended, LastError: f.LastError, LastErrorAt: ifAny(f.LastErrorAt), Poison: f.PoisonPosition,
		Batch: f.Batch, MinBatch: f.MinBatch, MaxWait: showDuration(f.MaxWait), Lanes: f.Lanes, Start: f.Start, Timeout: showDuration(f.Timeout),
		RetryDelay: showDuration(f.RetryDelay), RetryMaxDelay: showDuration(f.RetryMax), Exponential: f.Exponential,
		Breaker: showBreaker(f.Breaker), Probe: showDuration(f.Breaker.Probe), ProbeMax: showDuration(f.Breaker.ProbeMax),
		CountAttempts: f.Breaker.Attempts, Notify: f.Notify, Target: f.Target, Created: f.Created,
	}
	if f.Retries != nil {
		s.Retries = *f.Retries
	}
	if f.Lag >= 0 {
		s.Lag = &f.Lag
	}
	if f.Oldest >= 0 && f.Lag > 0 {
		s.OldestSeconds = new(f.Oldest.Seconds())
	}
	if f.Poisoned >= 0 {
		s.Poisoned, s.PoisonedMore = &f.Poisoned, f.PoisonedMore
	}
	c := f.Counts
	s.Counts = functionwire.Counts{
		Calls: c.Calls, Failed: c.Failed, Timeouts: c.Timeouts, Done: c.Done, Retried: c.Retried, Poisoned: c.Poisoned, Skipped: c.Skipped,
		Dropped: c.Dropped,
	}
	return s
}

func showDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return config.FormatDuration(d)
}

func showBreaker(p breaker.Policy) string {
	if p.Failures < 0 {
		return "off"
	}
	return strconv.Itoa(p.Failures) + "/" + config.FormatDuration(p.Within)
}

// ShowState writes the state of a circuit.
func ShowState(r breaker.Record) functionwire.CircuitState {
	s := functionwire.CircuitState{
		State: string(r.State), Term: r.Term, Incident: r.Incident, Since: ifAny(r.Since), By: r.By, Reason: r.Reason, Opened: ifAny(r.Opened), Probes: r.Trips,
	}
	if s.State == "" {
		s.State = string(breaker.Closed)
	}
	for _, one := range r.Samples {
		s.Errors = append(s.Errors, functionwire.Failure{At: one.At.UTC(), Partition: one.Partition, Sequence: one.Sequence, Error: one.Error})
	}
	return s
}

// ShowCircuit writes a circuit.
func ShowCircuit(c runner.Circuit) functionwire.Circuit {
	s := functionwire.Circuit{
		Function: c.Function, Hub: c.Hub, Group: c.Group, CircuitState: ShowState(c.Record), Failures: c.Failures, Total: c.Total, Yard: c.Here,
	}
	if c.Lag >= 0 {
		s.Lag = &c.Lag
	}
	for instance, tally := range c.Instances {
		if s.Instances == nil {
			s.Instances = map[string]int64{}
		}
		s.Instances[instance] = tally.Total
	}
	return s
}

func ifAny(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// ParseRetries reads a number of retries; "forever" is -1.
func ParseRetries(text string) (int, error) {
	if strings.EqualFold(text, "forever") {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: retries: %q is neither a number from 0 on nor forever", runner.ErrInvalid, text)
	}
	return n, nil
}

// ParseHeader reads "Name: value".
func ParseHeader(line string) (name, value string, err error) {
	name, value, found := strings.Cut(line, ":")
	if name = strings.TrimSpace(name); !found || name == "" {
		return "", "", fmt.Errorf("%w: a header without a colon: write it like Authorization: Bearer abc", runner.ErrInvalid) // it may be a secret
	}
	return name, strings.TrimSpace(value), nil
}
