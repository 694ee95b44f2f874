// Package subscribe stands between what people write about a subscription (a request, a
// configuration file) and its settings: it reads the one into the other, and shows settings
// without their secrets. What is allowed is decided where definitions are kept.
package subscribe

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Apply writes a request over settings: Event Grid's shape first, where it is given, then the rest.
// What the request leaves out stays, and so does a secret of which it has what Show shows. Errors
// say which field cannot be read, or is out of its range, and how it is written; they wrap
// topics.ErrInvalid.
func Apply(r admin.SubscriptionRequest, s *topics.Settings) error {
	if err := spec.Subscription.CheckFirst(&r); err != nil {
		return fmt.Errorf("%w: %w", topics.ErrInvalid, err)
	}
	for _, step := range []func(admin.SubscriptionRequest, *topics.Settings) error{
		applyProperties, applyTarget, applyTrust, applySigning, applyFilter, applyRetry, applyDeadLetter, applyRest,
	} {
		if err := step(r, s); err != nil {
			return err
		}
	}
	applyHeaders(r, s)
	return nil
}

// invalid says what is wrong with a field.
func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", topics.ErrInvalid, field, fmt.Sprintf(format, args...))
}

func applyProperties(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.Properties == nil {
		return nil
	}
	body := fmt.Appendf(nil, `{"properties":%s}`, r.Properties)
	parsed, err := topics.ParseSubscriptionARM(body, *s)
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// applyTarget chooses where events go. Naming one kind of target takes the place of another, with
// what belongs to that alone.
func applyTarget(r admin.SubscriptionRequest, s *topics.Settings) error {
	given := 0
	for _, is := range []bool{r.Endpoint != nil, r.Hub != nil, r.Pull != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return invalid("endpoint", "a subscription has one target: give an endpoint, a hub, or pull")
	case r.Endpoint != nil:
		return applyWebhook(r, s)
	case r.Hub != nil:
		s.Hub, s.Webhook, s.Pull, s.Keys = *r.Hub, nil, nil, nil
	case r.Pull != nil:
		pull := &topics.Pull{}
		set(r.Pull.MaxDeliveries, &pull.MaxDeliveries)
		if err := duration("pull.lock", &r.Pull.Lock, &pull.Lock); err != nil {
			return err
		}
		if s.Pull != nil {
			s.Pull = pull
			return nil
		}
		s.SetPull(pull)
	}
	return nil
}

// applyWebhook changes a copy: the present definition is not ours.
func applyWebhook(r admin.SubscriptionRequest, s *topics.Settings) error {
	var hook egress.Endpoint
	url := *r.Endpoint
	if s.Webhook != nil {
		hook = *s.Webhook
	}
	if strings.HasSuffix(url, admin.HiddenQuery) {
		if url != hideQuery(hook.URL) {
			return invalid("endpoint", "the query is hidden, and that of another URL is not known: write the whole URL, like https://example.com/hook?code=KEY")
		}
		url = hook.URL
	}
	if r.OAuth == nil || r.OAuth.TokenURL != "" && r.OAuth.Secret == "" { // it stays, or its secret does
		if err := topics.CheckMove(hook, url); err != nil {
			return err
		}
	}
	hook.URL = url
	s.Webhook, s.Hub, s.Pull = &hook, "", nil
	return nil
}

// applyTrust says how a webhook is reached and how the yard is let in there.
func applyTrust(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.CA == nil && r.SkipVerify == nil && r.Cert == nil && r.Key == nil && r.OAuth == nil && r.MinTLS == nil {
		return nil
	}
	if s.Webhook == nil {
		return invalid("endpoint", "certificates, authorities and OAuth are for webhooks: give an endpoint")
	}
	hook := *s.Webhook
	set(r.CA, &hook.CA)
	set(r.SkipVerify, &hook.SkipVerify)
	set(r.Cert, &hook.Cert)
	set(r.Key, &hook.Key)
	set(r.MinTLS, &hook.MinTLS)
	if r.OAuth != nil {
		var err error
		if hook.OAuth, err = newOAuth(*r.OAuth, hook.OAuth); err != nil {
			return err
		}
	}
	s.Webhook = &hook
	return nil
}

// newOAuth keeps a secret that was not given where it is asked for by the same client at the same
// place, and the query of that place where it is written as Show shows it.
func newOAuth(given admin.OAuth, present *egress.OAuth) (*egress.OAuth, error) {
	if given == (admin.OAuth{}) {
		return nil, nil
	}
	o := egress.OAuth(given)
	if strings.HasSuffix(o.TokenURL, admin.HiddenQuery) {
		if present == nil || o.TokenURL != hideQuery(present.TokenURL) {
			return nil, invalid("oauth.tokenUrl", "the query is hidden, and that of another URL is not known: write the whole URL")
		}
		o.TokenURL = present.TokenURL
	}
	if present != nil && o.Secret == "" && o.TokenURL == present.TokenURL && o.ClientID == present.ClientID {
		o.Secret = present.Secret
	}
	return &o, nil
}

func applySigning(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.SigningKeys != nil {
		s.Keys = nil
		for _, text := range r.SigningKeys {
			s.Keys = append(s.Keys, signature.Key{Text: text})
		}
	}
	if r.Sign == nil {
		return nil
	}
	if *r.Sign == "" || *r.Sign == "none" {
		s.Keys = nil
		return nil
	}
	key, err := signature.New(strings.ToLower(*r.Sign))
	if err != nil {
		return invalid("sign", "%q is no way to sign: write hmac, ed25519 or none", *r.Sign)
	}
	s.Keys = []signature.Key{key}
	return nil
}

// applyDeadLetter takes a place that reads like the present one for it, signature, key and all.
func applyDeadLetter(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.DeadLetter != nil && *r.DeadLetter != s.DeadLetter.String() {
		if strings.HasSuffix(*r.DeadLetter, admin.HiddenQuery) {
			return invalid("deadLetter", "the signature is hidden, and that of another container is not known: write the whole URL, like blob:https://account.blob.core.windows.net/dead?SIGNATURE")
		}
		target, err := topics.ParseTarget(*r.DeadLetter)
		if err != nil {
			return err
		}
		s.DeadLetter = target
	}
	set(r.DeadLetterKey, &s.DeadLetter.Key)
	return nil
}

// applyRest takes over what stands for itself.
func applyRest(r admin.SubscriptionRequest, s *topics.Settings) (err error) {
	if r.Schema != nil {
		s.Output = ""
		if *r.Schema != "" {
			if s.Output, err = schema.ParseKind(*r.Schema); err != nil {
				return invalid("schema", "%v", err)
			}
		}
	}
	if r.Expires != nil {
		s.Expires = time.Time{}
		if *r.Expires != "" {
			if s.Expires, err = time.Parse(time.RFC3339, *r.Expires); err != nil {
				return invalid("expires", "%q is no time: write it like 2027-01-31T18:00:00Z", *r.Expires)
			}
		}
	}
	set(r.Binary, &s.Binary)
	set(r.MaxEvents, &s.MaxEvents)
	set(r.PreferredKiB, &s.PreferredKiB)
	set(r.Concurrency, &s.Concurrency)
	set(r.Rate, &s.Rate)
	set(r.OrderBy, &s.OrderBy)
	set(r.FromStart, &s.FromStart)
	set(r.SkipValidation, &s.SkipValidation)
	set(r.DisableOnGone, &s.DisableOnGone)
	set(r.Paused, &s.Paused)
	if r.Labels != nil {
		s.Labels = copyOf(r.Labels)
	}
	return duration("timeout", r.Timeout, &s.Timeout)
}

// applyHeaders replaces the delivery properties. A secret one without a value keeps the value it
// has: whoever reads a subscription, changes something else and writes it back does not know it.
func applyHeaders(r admin.SubscriptionRequest, s *topics.Settings) {
	if r.Headers == nil {
		return
	}
	known := map[string]string{}
	for _, h := range s.Headers {
		known[strings.ToLower(h.Name)] = h.Value
	}
	s.Headers = nil
	for _, h := range r.Headers {
		if h.Secret && h.Value == "" && h.Field == "" {
			h.Value = known[strings.ToLower(h.Name)]
		}
		s.Headers = append(s.Headers, topics.Header(h))
	}
}

// set takes over what was given.
func set[T any](given *T, field *T) {
	if given != nil {
		*field = *given
	}
}

// copyOf makes none of an empty list, so that equal settings are stored equally.
func copyOf(list []string) []string { return append([]string(nil), list...) }

// duration reads one that was given; empty is zero, the default.
func duration(name string, given *string, field *time.Duration) error {
	if given == nil {
		return nil
	}
	*field = 0
	if *given == "" {
		return nil
	}
	d, err := quantity.ParseSigned(*given)
	if err != nil {
		return invalid(name, "%v", err)
	}
	*field = d
	return nil
}
