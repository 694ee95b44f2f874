package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/api/gridwire"
	"github.com/spf13/cobra"
)

// subscriptionFlags are what a subscription can be told, by create and by update alike.
type subscriptionFlags struct {
	topic, sourceHub string

	endpoint, hub, lock      string
	pull                     bool
	maxDeliveries            int
	types, filters           []string
	begins, ends             string
	caseSensitive, arrays    bool
	schema                   string
	binary                   bool
	attempts                 int
	ttl, schedule            string
	floors                   []string
	noRetry                  string
	maxEvents, preferredKiB  int
	deadLetter, deadKey      string
	expires                  string
	headers, secretHeaders   []string
	sign                     string
	signingKeys              []string
	ca, cert, key, minTLS    string
	skipVerify               bool
	oauth                    gridwire.OAuth
	timeout                  string
	concurrency              int
	rate                     float64
	orderBy                  string
	fromStart, skip, disable bool
	labels                   []string
}

func (f *subscriptionFlags) addTo(cmd *cobra.Command, create bool) {
	flags := cmd.Flags()
	flags.SortFlags = false // they are in an order that can be read
	flags.StringVar(&f.topic, "topic", "", "`name` of the topic that the events come from")
	flags.StringVar(&f.sourceHub, "source-hub", "", "`name` of the hub that they come from instead")

	flags.StringVar(&f.endpoint, "endpoint", "", "`URL` of the webhook that gets them")
	flags.StringVar(&f.hub, "hub", "", "`name` of the hub that gets them instead")
	flags.BoolVar(&f.pull, "pull", false, "let clients receive them instead")
	flags.StringVar(&f.lock, "lock", "", "with --pull: how long received events are the receiver's, a `duration` (default 60s)")
	flags.IntVar(&f.maxDeliveries, "max-deliveries", 0, "with --pull: how often an event is given, 1 to 10 (default 10)")

	flags.StringArrayVar(&f.types, "type", nil, "only events of this `type`; may be repeated")
	flags.StringVar(&f.begins, "subject-begins-with", "", "only subjects that begin with this `text`")
	flags.StringVar(&f.ends, "subject-ends-with", "", "only subjects that end with this `text`")
	flags.BoolVar(&f.caseSensitive, "subject-case-sensitive", false, "tell upper from lower case there")
	flags.StringArrayVar(&f.filters, "filter", nil, "only events that pass this `filter`, like 'data.k NumberGreaterThan 5'; may be repeated")
	flags.BoolVar(&f.arrays, "filter-arrays", false, "let filters look into arrays")

	flags.StringVar(&f.schema, "schema", "", "what is delivered: `eventgrid`, cloudevents or custom (default: cloudevents for topics of CloudEvents, for hubs and with --pull; else eventgrid, also for custom topics)")
	flags.BoolVar(&f.binary, "binary", false, "CloudEvents in binary mode")
	flags.IntVar(&f.maxEvents, "max-events", 0, "events in one request, 1 to 5000 (default 1)")
	flags.IntVar(&f.preferredKiB, "preferred-kib", 0, "preferred size of a request, 1 to 1024 KiB (default 64)")

	flags.IntVar(&f.attempts, "attempts", 0, "attempts for each event, 1 to 30 (default 30)")
	flags.StringVar(&f.ttl, "ttl", "", "how long an event may be tried, a `duration` up to 24h (default 24h)")
	flags.StringVar(&f.schedule, "retry-schedule", "", "waits between attempts, `durations` like 1s,2s,5s, the last repeated; "+
		"it also sets the least waits by status to zero (default 10s,30s,1m,5m,10m,30m,1h,3h,6h,12h)")
	flags.StringArrayVar(&f.floors, "retry-floor", nil, "least wait after a `status`, like 503=5s or other=1s; may be repeated")
	flags.StringVar(&f.noRetry, "no-retry", "", "`statuses` that are given up at once, or none (default 400,401,403,404,413)")
	flags.StringVar(&f.deadLetter, "dead-letter", "", "`place` for what cannot be delivered: yard, folder:DIR, blob:URL or hub:NAME (default: dropped)")
	flags.StringVar(&f.deadKey, "dead-letter-key", "", "the storage account's key, where the URL has no signature: `text`, or @FILE")

	flags.StringArrayVar(&f.headers, "header", nil, "header of each request, `NAME=VALUE`, or NAME={data.path} from the event; may be repeated")
	flags.StringArrayVar(&f.secretHeaders, "secret-header", nil, "the same, `NAME=VALUE`, never shown again")
	flags.StringVar(&f.sign, "sign", "", "make a key and sign requests (Standard Webhooks): `hmac`, ed25519 or none")
	flags.StringArrayVar(&f.signingKeys, "signing-key", nil, "sign with this `key`, whsec_… or whsk_…, or @FILE; may be repeated")
	flags.StringVar(&f.ca, "endpoint-ca", "", "`file` with the authorities of the endpoint's certificate")
	flags.StringVar(&f.cert, "endpoint-cert", "", "`file` with a client certificate to show to the endpoint")
	flags.StringVar(&f.key, "endpoint-key", "", "`file` with its private key")
	flags.BoolVar(&f.skipVerify, "endpoint-skip-verify", false, "trust the endpoint's certificate whoever signed it")
	flags.StringVar(&f.minTLS, "endpoint-min-tls", "", "least TLS `version` to the endpoint: 1.2 or 1.3")
	flags.StringVar(&f.oauth.TokenURL, "oauth-token-url", "", "`URL` to get a bearer token from, by client credentials")
	flags.StringVar(&f.oauth.ClientID, "oauth-client", "", "client `id` for it")
	flags.StringVar(&f.oauth.Secret, "oauth-secret", "", "client secret for it: `text`, or @FILE")
	flags.StringVar(&f.oauth.Scope, "oauth-scope", "", "`scope` to ask for")
	flags.StringVar(&f.oauth.Audience, "oauth-audience", "", "`audience` to ask for")

	flags.StringVar(&f.timeout, "timeout", "", "how long an answer may take, a `duration` (default 30s)")
	flags.IntVar(&f.concurrency, "concurrency", 0, "requests under way at once (default 16)")
	flags.Float64Var(&f.rate, "rate", 0, "requests a second at most (default: any)")
	flags.StringVar(&f.orderBy, "order-by", "", "deliver events with the same value of this `path`, like subject or data.id, one after another")
	flags.StringVar(&f.expires, "expires", "", "when the subscription ends, a `time` like 2027-01-31T18:00:00Z")
	flags.BoolVar(&f.skip, "skip-validation", false, "trust the endpoint without asking it")
	flags.BoolVar(&f.disable, "disable-on-gone", false, "stop for good when the endpoint answers 410")
	flags.StringArrayVar(&f.labels, "label", nil, "a `label`; may be repeated")
	if create {
		flags.BoolVar(&f.fromStart, "from-start", false, "deliver what the source still has, too")
	}
}

// request gives what the command line names, and nothing else: an update leaves the rest.
func (f *subscriptionFlags) request(cmd *cobra.Command) (gridwire.SubscriptionRequest, error) {
	r := gridwire.SubscriptionRequest{Topic: f.topic, SourceHub: f.sourceHub}
	for name, field := range map[string]**string{
		"endpoint": &r.Endpoint, "hub": &r.Hub, "subject-begins-with": &r.SubjectBeginsWith, "subject-ends-with": &r.SubjectEndsWith,
		"schema": &r.Schema, "ttl": &r.TTL, "retry-schedule": &r.RetrySchedule, "dead-letter": &r.DeadLetter, "expires": &r.Expires,
		"sign": &r.Sign, "endpoint-min-tls": &r.MinTLS, "timeout": &r.Timeout, "order-by": &r.OrderBy,
	} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			*field = new(flag.Value.String())
		}
	}
	ifGiven(cmd, "subject-case-sensitive", &f.caseSensitive, &r.SubjectCaseSensitive)
	ifGiven(cmd, "filter-arrays", &f.arrays, &r.Arrays)
	ifGiven(cmd, "binary", &f.binary, &r.Binary)
	ifGiven(cmd, "attempts", &f.attempts, &r.Attempts)
	ifGiven(cmd, "max-events", &f.maxEvents, &r.MaxEvents)
	ifGiven(cmd, "preferred-kib", &f.preferredKiB, &r.PreferredKiB)
	ifGiven(cmd, "endpoint-skip-verify", &f.skipVerify, &r.SkipVerify)
	ifGiven(cmd, "concurrency", &f.concurrency, &r.Concurrency)
	ifGiven(cmd, "rate", &f.rate, &r.Rate)
	ifGiven(cmd, "skip-validation", &f.skip, &r.SkipValidation)
	ifGiven(cmd, "disable-on-gone", &f.disable, &r.DisableOnGone)
	ifGiven(cmd, "from-start", &f.fromStart, &r.FromStart)
	if f.pull {
		r.Pull = &gridwire.Pull{Lock: f.lock, MaxDeliveries: f.maxDeliveries}
	}
	f.lists(cmd, &r)
	for _, step := range []func(*cobra.Command, *gridwire.SubscriptionRequest) error{f.bounds, f.together, f.statuses, f.pairs, f.files} {
		if err := step(cmd, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// bounds refuses what a yard would take for a number that is not given.
func (f *subscriptionFlags) bounds(cmd *cobra.Command, _ *gridwire.SubscriptionRequest) error {
	for _, flag := range []struct {
		name        string
		value, most int
	}{{"attempts", f.attempts, 30}, {"max-events", f.maxEvents, 5000}, {"preferred-kib", f.preferredKiB, 1024}, {"max-deliveries", f.maxDeliveries, 10}} {
		if cmd.Flags().Changed(flag.name) && (flag.value < 1 || flag.value > flag.most) {
			return usagef(cmd, "--%s %d: give 1 to %d", flag.name, flag.value, flag.most)
		}
	}
	return nil
}

// together refuses flags that would have no effect without another.
func (f *subscriptionFlags) together(cmd *cobra.Command, _ *gridwire.SubscriptionRequest) error {
	for _, flag := range []struct{ name, needs string }{
		{"lock", "pull"}, {"max-deliveries", "pull"}, {"oauth-client", "oauth-token-url"}, {"oauth-secret", "oauth-token-url"},
		{"oauth-scope", "oauth-token-url"}, {"oauth-audience", "oauth-token-url"},
	} {
		if cmd.Flags().Changed(flag.name) && !cmd.Flags().Changed(flag.needs) {
			return usagef(cmd, "--%s goes with --%s: give both", flag.name, flag.needs)
		}
	}
	return nil
}

// statuses reads those that are given up. None is a list, too: an empty one.
func (f *subscriptionFlags) statuses(cmd *cobra.Command, r *gridwire.SubscriptionRequest) error {
	if !cmd.Flags().Changed("no-retry") {
		return nil
	}
	r.NoRetry = []int{}
	if f.noRetry == "none" {
		return nil
	}
	for text := range strings.SplitSeq(f.noRetry, ",") {
		status, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return usagef(cmd, "--no-retry: %q is no status: write them like 400,413, or none", text)
		}
		r.NoRetry = append(r.NoRetry, status)
	}
	return nil
}

func ifGiven[T any](cmd *cobra.Command, name string, value *T, field **T) {
	if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
		*field = value
	}
}

// lists takes over what may be repeated. One empty value means none.
func (f *subscriptionFlags) lists(cmd *cobra.Command, r *gridwire.SubscriptionRequest) {
	changed := cmd.Flags().Changed
	if changed("type") {
		r.Types = withoutEmpty(f.types)
	}
	if changed("filter") {
		r.Filters = []json.RawMessage{}
		for _, text := range withoutEmpty(f.filters) {
			quoted, _ := json.Marshal(text) // text always can be
			r.Filters = append(r.Filters, quoted)
		}
	}
	if changed("label") {
		r.Labels = withoutEmpty(f.labels)
	}
}

func withoutEmpty(all []string) []string {
	kept := []string{}
	for _, text := range all {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// pairs reads flags of the form NAME=VALUE.
func (f *subscriptionFlags) pairs(cmd *cobra.Command, r *gridwire.SubscriptionRequest) error {
	if cmd.Flags().Changed("retry-floor") {
		r.RetryFloors = map[string]string{}
		for _, pair := range withoutEmpty(f.floors) {
			status, least, found := strings.Cut(pair, "=")
			if !found {
				return usagef(cmd, "--retry-floor %q: write it like 503=5s", pair)
			}
			r.RetryFloors[status] = least
		}
	}
	if cmd.Flags().Changed("header") || cmd.Flags().Changed("secret-header") {
		r.Headers = []gridwire.Header{}
	}
	open := withoutEmpty(f.headers)
	for i, pair := range append(open, withoutEmpty(f.secretHeaders)...) {
		header, err := gridwire.ParseHeader(pair)
		if err != nil {
			return usagef(cmd, "--header: %w", err)
		}
		header.Secret = i >= len(open)
		r.Headers = append(r.Headers, header)
	}
	return nil
}

// files reads what is better kept off a command line.
func (f *subscriptionFlags) files(cmd *cobra.Command, r *gridwire.SubscriptionRequest) error {
	for _, file := range []struct {
		flag, path string
		field      **string
	}{{"endpoint-ca", f.ca, &r.CA}, {"endpoint-cert", f.cert, &r.Cert}, {"endpoint-key", f.key, &r.Key}} {
		if !cmd.Flags().Changed(file.flag) {
			continue
		}
		text := ""
		if file.path != "" {
			content, err := os.ReadFile(file.path)
			if err != nil {
				return usagef(cmd, "--%s: %w", file.flag, err)
			}
			text = string(content)
		}
		*file.field = &text
	}
	return f.secrets(cmd, r)
}

func (f *subscriptionFlags) secrets(cmd *cobra.Command, r *gridwire.SubscriptionRequest) error {
	if cmd.Flags().Changed("dead-letter-key") {
		key, err := textOrFile(cmd, "dead-letter-key", f.deadKey)
		if err != nil {
			return err
		}
		r.DeadLetterKey = &key
	}
	if cmd.Flags().Changed("signing-key") {
		r.SigningKeys = []string{}
		for _, given := range withoutEmpty(f.signingKeys) {
			key, err := textOrFile(cmd, "signing-key", given)
			if err != nil {
				return err
			}
			r.SigningKeys = append(r.SigningKeys, key)
		}
	}
	if cmd.Flags().Changed("oauth-token-url") {
		secret, err := textOrFile(cmd, "oauth-secret", f.oauth.Secret)
		if err != nil {
			return err
		}
		oauth := f.oauth
		oauth.Secret = secret
		r.OAuth = &oauth
	}
	return nil
}

// textOrFile reads a secret from a file where its name is given behind an @.
func textOrFile(cmd *cobra.Command, flag, given string) (string, error) {
	path, ok := strings.CutPrefix(given, "@")
	if !ok {
		return given, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", usagef(cmd, "--%s: %w", flag, err)
	}
	return strings.TrimSpace(string(content)), nil
}
