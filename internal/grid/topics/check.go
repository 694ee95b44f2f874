package topics

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Bounds of settings; what one field may be is in the rows of the spec.
const (
	maxKeys          = 10
	maxLabels        = 100
	maxPathBytes     = 512
	maxURLBytes      = 8192
	maxTags          = 50
	maxTagNameBytes  = 512
	maxTagValueBytes = 256
	maxGroupBytes    = 512
	// maxSettingsBytes leaves room for a proposal beside them, and for what else is stored.
	maxSettingsBytes = meta.MaxValueBytes/2 - 16<<10
)

// rules decides what settings may ask for. It owns nothing.
type rules struct {
	broker        Broker
	limits        retry.Limits
	checkTarget   func(Target) error
	checkEndpoint func(Subscription) error
}

// complete fills in what follows from the rest, so that equal settings are equal to the letter.
func (k *rules) complete(s *Settings, at origin) {
	if s.Output == "" {
		s.Output = schema.DefaultOutput(at.input)
		if s.Pull != nil {
			s.Output = schema.CloudEvents // which is all that pullers know
		}
	}
	if s.Hub != "" {
		if h, err := k.broker.Hub(s.Hub); err == nil {
			s.Hub = h.Name
		}
	}
	s.tidyBatches()
	s.Expires = s.Expires.UTC()
	s.Retry.Resource = s.Hub != ""
}

// vet completes and checks settings; was is the subscription as it is, or as it will be but for
// them.
func (k *rules) vet(s Settings, at origin, was Subscription) (Settings, error) {
	k.complete(&s, at)
	for _, err := range []error{s.check(k.limits), s.checkPaths(at), s.checkSchemas(at), s.checkExpiry(was), s.checkDomain(at.Source), k.checkHubs(s, at)} {
		if err != nil {
			return Settings{}, err
		}
	}
	return s, k.checkElsewhere(s, was)
}

// Check says what is wrong with settings by themselves, before there is a yard that they could be
// stored in. Errors wrap ErrInvalid.
func (s Settings) Check() error {
	s.tidyBatches()
	return s.check(retry.Limits{})
}

func (s Settings) check(limits retry.Limits) error {
	for _, err := range []error{
		s.checkTarget(), s.checkTransport(), s.checkForms(), s.checkRetry(limits), s.checkOutput(), s.checkRanges(), s.checkBatches(),
		s.checkHeaders(), s.checkKeys(), s.checkPull(), s.checkLabels(), s.DeadLetter.check(), s.checkSize(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRanges holds the settings that Event Grid's management shape or a program can say, too, to
// the ranges of the spec; what only a request says was judged by its row when it was read.
func (s Settings) checkRanges() error {
	type setting struct {
		name  string
		value any
	}
	settings := []setting{
		{"maxEvents", s.MaxEvents}, {"preferredKib", s.PreferredKiB}, {"timeout", s.Timeout}, {"concurrency", s.Concurrency}, {"rate", s.Rate},
	}
	if s.Pull != nil {
		settings = append(settings, setting{"pull.lock", s.Pull.Lock}, setting{"pull.maxDeliveries", s.Pull.MaxDeliveries})
	}
	for _, label := range s.Labels {
		settings = append(settings, setting{"labels", label})
	}
	for _, one := range settings {
		if err := spec.Subscription.CheckValue(one.name, one.value); err != nil {
			return invalid("%w", err)
		}
	}
	return nil
}

func (s Settings) checkTarget() error {
	given := 0
	for _, is := range []bool{s.Webhook != nil, s.Hub != "", s.Pull != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return invalid("%d targets: give exactly one of a webhook, a hub, or pull, by endpoint (--endpoint), hub (--hub) or pull (--pull)", given)
	case s.Webhook != nil && s.Webhook.URL == "":
		return invalid("the webhook has no URL: give one, as in https://example.com/hook")
	case s.Webhook != nil && len(s.Webhook.URL) > maxURLBytes:
		return invalid("the webhook's URL has %d bytes: give at most %d", len(s.Webhook.URL), maxURLBytes)
	}
	return nil
}

// checkTransport refuses a URL that is none, and what means nothing, or gives secrets away, without
// TLS. It never repeats the URL, which may have a secret in it.
func (s Settings) checkTransport() error {
	if s.Webhook == nil {
		return nil
	}
	u, err := url.Parse(s.Webhook.URL)
	if err != nil && strings.Contains(s.Webhook.URL, "://") {
		return nil // who knows addresses says what is wrong with it
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return invalid("the webhook's URL does not begin with http:// or https://: write all of it, as in https://example.com/hook")
	}
	if u.Scheme == "http" && (s.Webhook.Cert != "" || s.Webhook.Key != "") {
		return invalid("the webhook's URL is plain http, where a client certificate is never shown: use https, or leave the certificate out")
	}
	if s.Webhook.OAuth == nil {
		if u.Scheme == "http" && s.Webhook.CA != "" {
			return invalid("the webhook's URL is plain http, where no certificate is checked: use https, or leave the authorities out")
		}
		return nil
	}
	token, err := url.Parse(s.Webhook.OAuth.TokenURL)
	if inTheClear(u) || err == nil && inTheClear(token) {
		return invalid("OAuth over plain http would give the token or the secret away: use https, for the webhook's URL and for the token's")
	}
	return nil
}

// inTheClear reports whether others than this machine could read what is sent.
func inTheClear(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	address, err := netip.ParseAddr(name)
	return name != "localhost" && !strings.HasSuffix(name, ".localhost") && (err != nil || !address.Unmap().IsLoopback())
}

func (s Settings) checkRetry(limits retry.Limits) error {
	policy := s.Retry
	if s.Pull != nil {
		policy.MaxAttempts = 1 // that is Pull.MaxDeliveries, whatever the limit
	}
	return invalidIf("retry", policy.CheckWithin(limits))
}

// checkOutput leaves alone what is not known yet: the output follows from the source.
func (s Settings) checkOutput() error {
	if s.Output != "" {
		if _, err := schema.ParseKind(string(s.Output)); err != nil {
			return invalid("output: %w", err)
		}
	}
	switch {
	case s.Pull != nil && s.Output != schema.CloudEvents && s.Output != "":
		return invalid("output %s: who pulls gets CloudEvents, leave it out", s.Output)
	case s.Binary && s.Hub != "":
		return invalid("a hub has no binary mode: leave it out")
	}
	return nil
}

// checkSchemas compares what is delivered with what the source has.
func (s Settings) checkSchemas(at origin) error {
	if err := schema.Compatible(at.input, s.Output, at.Hub != ""); err != nil {
		return invalid("output: %w", err)
	}
	if s.Binary && s.Output != schema.CloudEvents {
		return invalid("binary mode is CloudEvents': set the output to %s, or leave binary out", schema.CloudEvents)
	}
	return nil
}

func (s Settings) checkBatches() error {
	if s.Binary && (s.MaxEvents > 1 || s.PreferredKiB > 0) {
		return invalid("binary mode has one event in a request: leave out the batching, or binary")
	}
	return nil
}

func (s Settings) checkKeys() error {
	switch {
	case len(s.Keys) == 0:
		return nil
	case s.Webhook == nil:
		return invalid("only webhooks are signed: leave out the keys")
	case len(s.Keys) > maxKeys:
		return invalid("%d signing keys: give at most %d", len(s.Keys), maxKeys)
	}
	_, err := signature.NewSigner(s.Keys)
	return invalidIf("signing keys", err)
}

// SetPull lets clients receive. What is only for events that are pushed goes with the target that
// there was.
func (s *Settings) SetPull(p *Pull) {
	s.Pull, s.Webhook, s.Hub = p, nil, ""
	s.Retry = retry.Policy{TimeToLive: s.Retry.TimeToLive}
	s.Output, s.Binary, s.MaxEvents, s.PreferredKiB = "", false, 0, 0
	s.Headers, s.Keys = nil, nil
	s.Timeout, s.Concurrency, s.Rate, s.OrderBy = 0, 0, 0, ""
}

// checkPull also refuses what would have no effect on who pulls.
func (s Settings) checkPull() error {
	if s.Pull == nil {
		return nil
	}
	p := s.Retry
	for _, pushed := range []struct {
		what  string
		given bool
	}{
		{"binary", s.Binary}, {"batching", s.MaxEvents > 1 || s.PreferredKiB > 0}, {"headers", len(s.Headers) > 0},
		{"max attempts", p.MaxAttempts != 0},
		{"a retry schedule", len(p.Schedule) > 0 || len(p.Floors) > 0 || p.NoRetry != nil || p.MaxRetryAfter != 0},
		{"a time-out", s.Timeout != 0}, {"concurrency", s.Concurrency != 0}, {"a rate", s.Rate != 0}, {"an order", s.OrderBy != ""},
	} {
		if pushed.given {
			return invalid("%s: that is for what is pushed, leave it out where events are pulled", pushed.what)
		}
	}
	return nil
}

func (s Settings) checkLabels() error {
	if len(s.Labels) > maxLabels {
		return invalid("%d labels: give at most %d", len(s.Labels), maxLabels)
	}
	if slices.Contains(s.Labels, "") {
		return invalid("a label is empty: write something, or leave it out")
	}
	return nil
}

func (s Settings) checkExpiry(was Subscription) error {
	// A time that has passed may stay as it is.
	if s.Expires.IsZero() || time.Now().Before(s.Expires) || was.State != "" && s.Expires.Equal(was.Expires) {
		return nil
	}
	return invalid("it would have expired at %s already: give a time in the future", s.Expires.Format(time.RFC3339))
}

// checkPath looks at the form of a path into an event; whether an event has it shows later.
func checkPath(what, path string) error {
	unfit := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }
	if len(path) > maxPathBytes || strings.ContainsFunc(path, unfit) || slices.Contains(strings.Split(path, "."), "") {
		return invalid("%s %.80q: give a path into the event, as subject or data.customer.id", what, path)
	}
	return nil
}

// checkForms looks at how the filter and the order are written.
func (s Settings) checkForms() error {
	if _, err := filter.Compile(s.Filter); err != nil {
		return invalid("%w", err)
	}
	if s.OrderBy == "" {
		return nil
	}
	return checkPath("order by", s.OrderBy)
}

// checkPaths looks at what names fields of an event: the filter, headers, and the order. It refuses
// what leads nowhere in any event of the source: a filter would let nothing through, or everything,
// and nobody would know why.
func (s Settings) checkPaths(at origin) error {
	for _, c := range s.Filter.Advanced {
		if err := at.checkPath("filter on", c.Key); err != nil {
			return err
		}
	}
	for _, h := range s.Headers {
		if err := at.checkPath("header "+h.Name, h.Field); err != nil {
			return err
		}
	}
	return at.checkPath("order by", s.OrderBy)
}

func (at origin) checkPath(what, path string) error {
	if path == "" || at.input.Form().HasField(path) {
		return nil
	}
	hint := ""
	if at.input == schema.Custom {
		hint = " Its data is the whole event as it was published"
	}
	return invalid("%s %.80q: no event of this topic has it beside its data: did you mean %.80q?%s", what, path, "data."+path, hint)
}

// checkHubs looks for the hubs that are written to. It refuses events that would come back to where
// they came from, again and again.
func (k *rules) checkHubs(s Settings, at origin) error {
	for _, target := range []struct {
		what, name string
		given      bool
	}{
		{"the target", s.Hub, s.Hub != ""},
		{"the target of dead letters", s.DeadLetter.Where, s.DeadLetter.Kind == TargetHub},
	} {
		if !target.given {
			continue
		}
		h, err := k.broker.Hub(target.name)
		if err != nil {
			return invalid("%s: %v", target.what, err) // wrapped, it would look as if the source were missing
		}
		if at.Hub != "" && auth.Fold(h.Name) == auth.Fold(at.Hub) {
			return invalid("%s is hub %q, which the events come from: they would go round for ever, choose another hub", target.what, h.Name)
		}
	}
	return nil
}

func (s Settings) checkSize() error {
	value, err := json.Marshal(s)
	if err != nil {
		return invalid("%w", err)
	}
	if len(value) > maxSettingsBytes {
		return invalid("the definition takes %d bytes, at most %d are allowed: make it shorter", len(value), maxSettingsBytes)
	}
	return nil
}

// checkElsewhere has folders and addresses checked by those who know them.
func (k *rules) checkElsewhere(s Settings, was Subscription) error {
	if s.DeadLetter.Kind != "" {
		if err := k.checkTarget(s.DeadLetter); errors.Is(err, ErrInvalid) {
			return err
		} else if err != nil {
			return invalid("dead letters: %w", err)
		}
	}
	if s.Webhook == nil {
		return nil
	}
	was.Settings = s
	return invalidIf("webhook", k.checkEndpoint(was))
}

func checkTopic(t Topic) error {
	if err := spec.CheckTopicName(t.Name); err != nil {
		return invalidIf("topic", err)
	}
	if kind, err := schema.ParseKind(string(t.Schema)); err != nil || kind != t.Schema {
		return invalid("topic %q: schema %.32q: write %s, %s or %s", t.Name, t.Schema, schema.EventGrid, schema.CloudEvents, schema.Custom)
	}
	if t.Quota.Events < 0 || t.Quota.Bytes < 0 {
		return invalid("topic %q: a quota of %d events and %d bytes: use 0 for no limit", t.Name, t.Quota.Events, t.Quota.Bytes)
	}
	if t.Schema != schema.Custom && t.Mapping != (schema.Mapping{}) {
		return invalid("topic %q: a mapping is for custom events: leave it out, or set the schema to %s", t.Name, schema.Custom)
	}
	err := t.Mapping.Check()
	for _, key := range []string{t.Key1, t.Key2} {
		if err == nil && key != "" {
			err = auth.CheckKey(key)
		}
	}
	if err != nil {
		return invalid("topic %q: %w", t.Name, err)
	}
	if err := t.Domain.check(); err != nil {
		return err
	}
	if len(t.Tags) > maxTags {
		return invalid("topic %q: %d tags: give at most %d", t.Name, len(t.Tags), maxTags)
	}
	if len(t.Location) > maxTagValueBytes || len(t.Group) > maxGroupBytes {
		return invalid("topic %q: give it a location of at most %d bytes, and a subscription and resource group of at most %d", t.Name, maxTagValueBytes, maxGroupBytes)
	}
	for name, value := range t.Tags {
		if name == "" || len(name) > maxTagNameBytes || len(value) > maxTagValueBytes {
			return invalid("topic %q: tag %.32q: give a name of at most %d bytes and a value of at most %d", t.Name, name, maxTagNameBytes, maxTagValueBytes)
		}
	}
	return nil
}
