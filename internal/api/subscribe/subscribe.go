// Package subscribe stands between what people write about a subscription (a request, a
// configuration file) and its settings: it reads the one into the other, and shows settings
// without their secrets. What is allowed is decided where definitions are kept.
package subscribe

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// parts are the things that settings are about, in the order in which a request is read. Each has a
// file, where its fields are read and shown side by side.
var parts = []struct {
	apply func(r admin.SubscriptionRequest, s *topics.Settings) error
	show  func(s topics.Settings, secrets bool, shown *admin.Subscription)
}{
	{applyTarget, showTarget},
	{applyTrust, showTrust},
	{applySigning, showSigning},
	{applyFilter, showFilter},
	{applyRetry, showRetry},
	{applyDeadLetter, showDeadLetter},
	{applyPlain, showPlain},
	{applyHeaders, showHeaders},
}

// Apply writes a request over settings: Event Grid's shape first, where it is given, then the rest.
// What the request leaves out stays, and so does a secret of which it has what Show shows. Errors
// say which field cannot be read, or is out of its range, and how it is written; they wrap
// topics.ErrInvalid.
func Apply(r admin.SubscriptionRequest, s *topics.Settings) error {
	if err := spec.Subscription.CheckFirst(&r); err != nil {
		return fmt.Errorf("%w: %w", topics.ErrInvalid, err)
	}
	if err := applyProperties(r, s); err != nil {
		return err
	}
	present := *s
	for _, part := range parts {
		if err := part.apply(r, s); err != nil {
			return err
		}
	}
	return checkHeaders(r, present, *s)
}

// Show gives a subscription without its secrets. With secrets it has the webhook's whole URL and
// what receivers check signatures with: for those who may manage it and ask for it.
func Show(s topics.Subscription, secrets bool) admin.Subscription {
	shown := admin.Subscription{
		Name: s.Name, ID: s.ID, Topic: s.Source.Topic, SourceHub: s.Source.Hub, DomainTopic: s.Source.DomainTopic, State: string(s.State), Why: s.Why,
		Created: s.Created, Updated: s.Updated,
	}
	for _, part := range parts {
		part.show(s.Settings, secrets, &shown)
	}
	return shown
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

func durationIfAny(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return quantity.FormatHours(d)
}
