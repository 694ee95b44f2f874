// Package define reads a function's definition from the words that the HTTP listener, the command
// line and the configuration have in common, and shows it in them.
package define

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/runner"
	"github.com/eventyard/eventyard/internal/functions/triage"
)

// Apply writes a request over a definition: what is not given stays. What is wrong with the words
// is an error that wraps runner.ErrInvalid; what is wrong with the whole is the runner's to say.
func Apply(r admin.FunctionRequest, d *runner.Definition) error {
	if err := spec.Function.CheckFirst(&r); err != nil {
		return fmt.Errorf("%w: %w", runner.ErrInvalid, err)
	}
	setText(&d.Name, r.Name)
	setText(&d.Hub, r.Hub)
	setText(&d.Group, r.Group)
	if err := checkMove(r, *d); err != nil {
		return err
	}
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
		d.Retries = new(int(*r.Retries))
	}
	set(&d.Exponential, r.Exponential)
	set(&d.Poison, r.Poison)
	set(&d.Breaker.Attempts, r.CountAttempts)
	set(&d.Target, r.Target)
	if err := applyNotify(r.Notify, d); err != nil {
		return err
	}
	if err := applyTimes(r, d); err != nil {
		return err
	}
	if r.Exponential != nil && !*r.Exponential && d.RetryDelay == 0 {
		d.RetryDelay = triage.DefaultDelay // where nothing is said of retries at all their waits double
	}
	return nil
}

// checkMove keeps the values of headers, which are never shown, from where somebody moves the
// function to: who may change it is not told them, nor who else listens there.
func checkMove(r admin.FunctionRequest, d runner.Definition) error {
	if r.Endpoint == nil || *r.Endpoint == d.Endpoint || r.Headers != nil || len(d.Headers) == 0 {
		return nil
	}
	return fmt.Errorf("%w: endpoint: the function has headers, whose values are hidden and not sent elsewhere unless they are given again: "+
		"give headers with the endpoint, or empty ones", runner.ErrInvalid)
}

// applyNotify takes what Show shows of a target for the target.
func applyNotify(given []string, d *runner.Definition) error {
	if given == nil {
		return nil
	}
	known := map[string][]string{} // by how they are shown; several may look alike
	for _, target := range d.Notify {
		known[showTarget(target)] = append(known[showTarget(target)], target)
	}
	d.Notify = make([]string, len(given))
	for i, target := range given {
		if strings.HasSuffix(target, admin.HiddenPath) {
			alike := known[target]
			if len(alike) == 0 {
				return fmt.Errorf("%w: notify: the path is hidden, and that of another webhook is not known: write the whole URL", runner.ErrInvalid)
			}
			target, known[target] = alike[0], alike[1:]
		}
		d.Notify[i] = target
	}
	return nil
}

// showTarget hides what is behind the host of a webhook: in those of chats it is what lets in.
func showTarget(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || strings.Trim(u.EscapedPath(), "/") == "" && u.RawQuery == "" && u.User == nil {
		return target
	}
	return u.Scheme + "://" + u.Host + admin.HiddenPath
}

func applyTimes(r admin.FunctionRequest, d *runner.Definition) error {
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
		duration, err := quantity.ParseDuration(*f.text)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", runner.ErrInvalid, f.name, err)
		}
		*f.to = duration
	}
	if r.Breaker == nil {
		return nil
	}
	failures, within, err := spec.ParseBreaker(*r.Breaker)
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

// Show writes a function in the words of requests, without the values of its headers and the
// secrets in its targets.
func Show(f runner.Function) admin.Function {
	var notify []string
	for _, target := range f.Notify {
		notify = append(notify, showTarget(target))
	}
	s := admin.Function{
		Name: f.Name, Hub: f.Hub, Group: f.Group, Endpoint: f.Endpoint, Format: f.Format, Headers: slices.Sorted(maps.Keys(f.Headers)),
		State: f.State, Problem: f.Problem, Failures: f.Failures, Circuit: ShowState(f.Circuit), Partitions: f.Partitions,
		Instances: f.Instances, Recommended: f.Recommended, LastError: f.LastError, LastErrorAt: spec.TimeIfAny(f.LastErrorAt), Poison: f.PoisonTarget,
		Batch: f.Batch, MinBatch: f.MinBatch, MaxWait: showDuration(f.MaxWait), Lanes: f.Lanes, Start: f.Start, Timeout: showDuration(f.Timeout),
		RetryDelay: showDuration(f.RetryDelay), RetryMaxDelay: showDuration(f.RetryMax), Exponential: f.Exponential,
		Breaker: showBreaker(f.Breaker), Probe: showDuration(f.Breaker.Probe), ProbeMax: showDuration(f.Breaker.ProbeMax),
		CountAttempts: f.Breaker.Attempts, Notify: notify, Target: f.Target, Created: f.Created,
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
	s.Counts = admin.FunctionCounts{
		Calls: c.Calls, Failed: c.Failed, Timeouts: c.Timeouts, Done: c.Done, Retried: c.Retried, Poisoned: c.Poisoned, Skipped: c.Skipped,
		Dropped: c.Dropped,
	}
	return s
}

func showDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return quantity.FormatDuration(d)
}

func showBreaker(p breaker.Policy) string {
	if p.Failures < 0 {
		return "off"
	}
	return strconv.Itoa(p.Failures) + "/" + quantity.FormatDuration(p.Within)
}

// ShowState writes the state of a circuit.
func ShowState(r breaker.Record) admin.CircuitState {
	s := admin.CircuitState{
		State: string(r.State), Term: r.Term, Incident: r.Incident, Since: spec.TimeIfAny(r.Since), By: r.By, Reason: r.Reason, Opened: spec.TimeIfAny(r.Opened), Probes: r.Trips,
	}
	if s.State == "" {
		s.State = string(breaker.Closed)
	}
	if r.Tries != nil {
		s.Trying = &admin.TriedEvent{Partition: r.Tries.Partition, Sequence: r.Tries.Sequence}
	}
	for _, one := range r.Samples {
		s.Errors = append(s.Errors, admin.Failure{At: one.At.UTC(), Partition: one.Partition, Sequence: one.Sequence, Error: one.Error})
	}
	return s
}

// ShowCircuit writes a circuit.
func ShowCircuit(c runner.Circuit) admin.Circuit {
	s := admin.Circuit{
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
