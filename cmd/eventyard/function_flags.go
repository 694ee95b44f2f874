package main

import (
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/api/functionwire"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// functionFlags are a function's settings. What was not given is not sent: the yard has the defaults, and a change leaves the rest.
type functionFlags struct {
	hub, group                               string
	endpoint, format, start, poison, breaker string
	maxWait, timeout, retryDelay, retryMax   string
	retries, probe, probeMax                 string
	headers, notify                          []string
	batch, minBatch, lanes, target           int
	exponential, countAttempts               bool
	added                                    []string
}

func (f *functionFlags) addTo(cmd *cobra.Command) {
	had := map[string]bool{}
	flags := cmd.Flags()
	flags.VisitAll(func(flag *pflag.Flag) { had[flag.Name] = true })
	flags.StringVar(&f.endpoint, "endpoint", "", "`URL` that is called")
	flags.StringVar(&f.format, "format", "", "what is sent: `cloudevents` or eventhubs (default cloudevents)")
	flags.StringArrayVar(&f.headers, "header", nil, "a `header` sent with every call, like 'Authorization: Bearer abc'; may be given several times, and replaces all that there were")
	flags.IntVar(&f.batch, "batch", 0, "the most `events` of a call (default 100)")
	flags.IntVar(&f.minBatch, "min-batch", 0, "so many `events` are waited for, --max-wait at most (default 1)")
	flags.StringVar(&f.maxWait, "max-wait", "", "how long --min-batch is waited for, a `duration` (default 1s)")
	flags.IntVar(&f.lanes, "lanes", 0, "so many `calls` at once for each partition, events of one key in order (default 1)")
	flags.StringVar(&f.start, "start", "", "where partitions without checkpoint begin: `earliest`, latest or a time (default earliest)")
	flags.StringVar(&f.timeout, "timeout", "", "how long a call may take, a `duration` (default 60s)")
	flags.StringVar(&f.retries, "retries", "", "`number` of calls after the first, or forever (default 5, doubled each time, if nothing is said of retries)")
	flags.StringVar(&f.retryDelay, "retry-delay", "", "before each retry, a `duration` (default 250ms)")
	flags.StringVar(&f.retryMax, "retry-max-delay", "", "the longest wait with --exponential, a `duration` (default 1m)")
	flags.BoolVar(&f.exponential, "exponential", false, "the delay doubles each time, with jitter")
	flags.StringVar(&f.poison, "poison", "", "where events go that used up their retries: a `hub`, topic:NAME or none (default NAME-poison)")
	flags.StringVar(&f.breaker, "breaker", "", "the circuit opens at more than so many failures in that time, like `100/30s`; or off (default 100/30s)")
	flags.StringVar(&f.probe, "probe", "", "how long an open circuit waits before it tries an event, a `duration`; 0: until somebody resumes it (default 0)")
	flags.StringVar(&f.probeMax, "probe-max", "", "the longest such wait, as it doubles each time, a `duration` (default 5m)")
	flags.BoolVar(&f.countAttempts, "count-attempts", false, "failed attempts count for the breaker, not only events that used up their retries")
	flags.StringArrayVar(&f.notify, "notify", nil, "who is told when the circuit opens: a `target` like mailto:ops@example.com or a webhook's URL; may be given several times")
	flags.IntVar(&f.target, "target", 0, "how many waiting `events` are worth one instance (default: as --batch)")
	completeFlags(cmd, cobra.FixedCompletions([]string{"cloudevents", "eventhubs"}, cobra.ShellCompDirectiveNoFileComp), "format")
	flags.VisitAll(func(flag *pflag.Flag) {
		if !had[flag.Name] {
			f.added = append(f.added, flag.Name)
		}
	})
}

// completer offers what may stand somewhere.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeFlags offers for flags what is offered for a first argument.
func completeFlags(cmd *cobra.Command, offer completer, names ...string) {
	for _, name := range names {
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return offer(cmd, nil, begun)
		})
	}
}

// given tells whether any setting was.
func (f *functionFlags) given(cmd *cobra.Command) bool {
	for _, name := range f.added {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// request has what was given.
func (f *functionFlags) request(cmd *cobra.Command) (functionwire.FunctionRequest, error) {
	r := functionwire.FunctionRequest{Hub: f.hub, Group: f.group}
	for name, n := range map[string]int{"batch": f.batch, "min-batch": f.minBatch, "lanes": f.lanes, "target": f.target} {
		if cmd.Flags().Changed(name) && n < 1 {
			return r, usagef(cmd, "--%s is at least 1", name)
		}
	}
	for name, text := range map[string]struct{ from, to any }{
		"endpoint": {&f.endpoint, &r.Endpoint}, "format": {&f.format, &r.Format}, "start": {&f.start, &r.Start}, "poison": {&f.poison, &r.Poison},
		"breaker": {&f.breaker, &r.Breaker}, "max-wait": {&f.maxWait, &r.MaxWait}, "timeout": {&f.timeout, &r.Timeout},
		"retry-delay": {&f.retryDelay, &r.RetryDelay}, "retry-max-delay": {&f.retryMax, &r.RetryMaxDelay}, "probe": {&f.probe, &r.Probe},
		"probe-max": {&f.probeMax, &r.ProbeMax}, "batch": {&f.batch, &r.Batch}, "min-batch": {&f.minBatch, &r.MinBatch}, "lanes": {&f.lanes, &r.Lanes},
		"target": {&f.target, &r.Target}, "exponential": {&f.exponential, &r.Exponential}, "count-attempts": {&f.countAttempts, &r.CountAttempts},
	} {
		if cmd.Flags().Changed(name) {
			take(text.from, text.to)
		}
	}
	if cmd.Flags().Changed("notify") {
		r.Notify = withoutEmpty(f.notify) // one empty value means none
	}
	if cmd.Flags().Changed("retries") {
		retries, err := define.ParseRetries(f.retries)
		if err != nil {
			return r, usagef(cmd, "--retries: %q is neither a number from 0 on nor forever", f.retries)
		}
		r.Retries = &retries
	}
	if f.breaker != "" {
		if _, _, err := define.ParseBreaker(f.breaker); err != nil {
			return r, usagef(cmd, "--breaker: %w", err)
		}
	}
	return r, f.takeHeaders(cmd, &r)
}

// take points a field of a request at a flag's value.
func take(from, to any) {
	switch from := from.(type) {
	case *string:
		*to.(**string) = from
	case *int:
		*to.(**int) = from
	case *bool:
		*to.(**bool) = from
	}
}

func (f *functionFlags) takeHeaders(cmd *cobra.Command, r *functionwire.FunctionRequest) error {
	if !cmd.Flags().Changed("header") {
		return nil
	}
	r.Headers = map[string]string{} // one empty value means none
	for _, line := range withoutEmpty(f.headers) {
		name, value, err := define.ParseHeader(line)
		if err != nil {
			return usagef(cmd, "--header: write it like 'Authorization: Bearer abc'") // without what was written: it may be a secret
		}
		r.Headers[name] = value
	}
	return nil
}
