package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Update replaces the settings; a changed URL, or one that has not agreed yet, is asked first.
// change is given the present settings, and again if somebody else was faster. While a changed
// endpoint has yet to agree the subscription is Pending: events wait. Until it has answered at all,
// and where it refuses (ErrHandshake), everything stays as it is. One that was Disabled is Active
// again.
//
// Somebody may be about to open the link of one that is Pending: as long as endpoint and schema are
// those that were asked it stays good. Other settings are changed without asking; where nothing is
// changed the endpoint is asked again, under that link.
func (k *Registry) Update(ctx context.Context, source Source, name string, change func(*Settings) error) (Subscription, error) {
	well := func(r *record) bool { return r.State == Active || r.State == Paused || r.State == Expired }
	return k.update(ctx, source, name, well, func(_ *record, s *Settings) error { return change(s) })
}

// Ensure is Create, or Update where it exists and differs, for configuration files. One that is as
// it should be is left alone, except that one that has failed, or is Pending and never answered, is
// asked again. Signing keys stay as long as those given are among them, or were: they may have been
// rotated since.
func (k *Registry) Ensure(ctx context.Context, source Source, name string, s Settings) (Subscription, error) {
	if _, err := k.sources.find(source); err != nil {
		return Subscription{}, fmt.Errorf("ensure subscription %q: %w", name, err)
	}
	well := func(r *record) bool { return r.State != Failed && (r.State != Pending || r.Validation.Awaiting) }
	replace := func(r *record, next *Settings) error {
		keys := next.Keys
		if *next = s; s.Webhook != nil && r.knows(s.Keys) {
			next.Keys = keys
		}
		return nil
	}
	for try := 1; ; try++ {
		there, err := k.update(ctx, source, name, well, replace)
		if !errors.Is(err, ErrNotFound) {
			return there, err
		}
		there, err = k.Create(ctx, source, name, s)
		if !errors.Is(err, ErrExists) || try == mirror.MaxTries {
			return there, err
		}
	}
}

// update lets the settings of a definition be changed. Where they stay as they are, and the
// definition is well, nothing is done. Where the endpoint is to be asked the change is proposed.
// Another proposal that is under way is dropped: it was made for settings that are no more.
func (k *Registry) update(
	ctx context.Context, source Source, name string, well func(*record) bool, change func(*record, *Settings) error,
) (Subscription, error) {
	key, err := k.keyOf(source, name)
	if err != nil {
		return Subscription{}, err
	}
	changed, asking := false, false
	r, err := k.change(ctx, key, func(r *record) error {
		changed, asking = false, false
		at, err := k.sources.present(r)
		if err != nil {
			return err
		}
		next := r.Settings.clone()
		if err := change(r, &next); err != nil {
			return err
		}
		k.rules.complete(&next, at)
		if next.equal(r.Settings) && well(r) {
			return mirror.ErrUnchanged
		}
		if next, err = k.rules.vet(next, at, r.Subscription); err != nil {
			return err
		}
		changed = true
		waits, same := r.waits(next), next.equal(r.Settings)
		switch asking = k.mustAsk(r, next) && (same || !waits); {
		case asking && waits:
			r.Proposal = &proposal{Settings: next, Validation: r.Validation.askAgain()}
			return nil
		case asking:
			r.Proposal = &proposal{Settings: next, Validation: k.newValidation()}
			return nil
		case waits && !next.SkipValidation:
			r.take(next)
			return nil
		}
		r.take(next)
		return k.sources.activate(ctx, r, at)
	})
	if err == nil && asking {
		r, err = k.ask(ctx, r)
	}
	if errors.Is(err, meta.ErrNotFound) {
		return Subscription{}, notFound(source, name)
	}
	if err != nil {
		return Subscription{}, fmt.Errorf("update subscription %q: %w", name, err)
	}
	if changed {
		k.log.Info("subscription changed", "subscription", r.Name, "source", r.Source, "state", r.State)
	}
	return r.Subscription, nil
}

// clone shares nothing with the original, which is of the form that storing gives.
func (s Settings) clone() (copied Settings) {
	if err := json.Unmarshal(s.encode(), &copied); err != nil {
		panic(fmt.Sprintf("copy settings: %v", err))
	}
	copied.Retry.Resource = s.Retry.Resource
	return copied
}

// equal compares what would be stored. What cannot be stored equals nothing.
func (s Settings) equal(other Settings) bool {
	x, err := json.Marshal(s)
	return err == nil && string(x) == string(other.encode())
}

func (s Settings) encode() []byte {
	value, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode settings: %v", err))
	}
	return value
}
