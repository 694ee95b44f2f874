package subscribe

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// Show gives a subscription without its secrets. With secrets it has the webhook's whole URL and
// what receivers check signatures with: for those who may manage it and ask for it.
func Show(s topics.Subscription, secrets bool) admin.Subscription {
	shown := admin.Subscription{
		Name: s.Name, ID: s.ID, Topic: s.Source.Topic, SourceHub: s.Source.Hub, State: string(s.State), Why: s.Why,
		Created: s.Created, Updated: s.Updated, Hub: s.Hub, Schema: string(s.Output), Binary: s.Binary,
		Retry: showRetry(s.Retry), MaxEvents: s.MaxEvents, PreferredKiB: s.PreferredKiB, Expires: spec.TimeIfAny(s.Expires),
		Concurrency: s.Concurrency, Rate: s.Rate, OrderBy: s.OrderBy, Labels: s.Labels, Timeout: durationIfAny(s.Timeout),
		Headers: showHeaders(s.Headers, secrets), Signing: ShowKeys(s, secrets), SkipValidation: s.SkipValidation, DisableOnGone: s.DisableOnGone,
	}
	if filter, err := json.Marshal(s.Filter); err == nil && string(filter) != "{}" {
		shown.Filter = filter
	}
	if s.DeadLetter.Kind != "" {
		shown.DeadLetter = s.DeadLetter.String()
	}
	if s.Pull != nil {
		shown.Pull = &admin.Pull{Lock: durationIfAny(s.Pull.Lock)}
		if n := s.Pull.MaxDeliveries; n != 0 {
			shown.Pull.MaxDeliveries = &n
		}
	}
	hook := s.Webhook
	if hook == nil {
		return shown
	}
	shown.Endpoint = hook.URL
	if !secrets {
		shown.Endpoint = hideQuery(hook.URL)
	}
	shown.MutualTLS, shown.CustomCA, shown.SkipVerify, shown.MinTLS = hook.Cert != "", hook.CA != "", hook.SkipVerify, hook.MinTLS
	if hook.OAuth != nil {
		shown.OAuth = new(admin.OAuth(*hook.OAuth))
		shown.OAuth.TokenURL, shown.OAuth.Secret = hideQuery(hook.OAuth.TokenURL), ""
	}
	return shown
}

// hideQuery leaves out what may be a key.
func hideQuery(url string) string {
	base, query, _ := strings.Cut(url, "?")
	if query == "" {
		return url
	}
	return base + admin.HiddenQuery
}

func showHeaders(headers []topics.Header, secrets bool) []admin.Header {
	var shown []admin.Header
	for _, h := range headers {
		if h.Secret && !secrets {
			h.Value = ""
		}
		shown = append(shown, admin.Header(h))
	}
	return shown
}

// ShowKeys gives what receivers check signatures with: of secret keys only that they are there,
// unless secrets are asked for.
func ShowKeys(s topics.Subscription, secrets bool) []admin.SigningKey {
	var shown []admin.SigningKey
	for _, k := range s.Keys {
		key := admin.SigningKey{Algorithm: algorithm(k), Expires: spec.TimeIfAny(k.Expires)}
		if key.Algorithm == signature.Ed25519 {
			key.Text, _ = k.Public() // which is no secret
		} else if secrets {
			key.Text = k.Text
		}
		shown = append(shown, key)
	}
	return shown
}

func showRetry(p retry.Policy) admin.RetryPolicy {
	shown := admin.RetryPolicy{
		Attempts: cmp.Or(p.MaxAttempts, retry.DefaultAttempts), TTL: quantity.FormatHours(cmp.Or(p.TimeToLive, retry.DefaultTimeToLive)), NoRetry: p.NoRetry,
		MaxRetryAfter: durationIfAny(p.MaxRetryAfter),
	}
	for _, step := range p.Schedule {
		shown.Schedule = append(shown.Schedule, quantity.FormatHours(step))
	}
	for status, least := range p.Floors {
		if shown.Floors == nil {
			shown.Floors = map[string]string{}
		}
		name := strconv.Itoa(status)
		if status == 0 {
			name = "other"
		}
		shown.Floors[name] = quantity.FormatHours(least)
	}
	return shown
}

func durationIfAny(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return quantity.FormatHours(d)
}

// SameAlgorithm tells whether the newest of some keys signs as another does.
func SameAlgorithm(keys, others []signature.Key) bool {
	return len(keys) > 0 && len(others) > 0 && algorithm(keys[len(keys)-1]) == algorithm(others[0])
}

func algorithm(k signature.Key) string {
	if public, err := k.Public(); err == nil && public != k.Text {
		return signature.Ed25519
	}
	return signature.HMAC
}
