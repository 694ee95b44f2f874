package topics

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// A handshake has three steps, each a change of the definition:
//
//  1. A code and a link are stored: with the new subscription, which is Pending, or beside the
//     settings of an old one, which go on meanwhile (Proposal).
//  2. The endpoint is asked, while no lock is held. It may open the link at once (Confirm).
//  3. What it answered is stored: the settings are in force, or await the link, or are taken back.
//
// The code says whose handshake it is. It stays in the definition when the handshake is over,
// so that who asked learns that the link was opened first. After a crash steps 2 and 3 never
// come, and what was stored lapses.

// whyPending is what a Pending one says.
const whyPending = "the endpoint has been asked and has yet to agree: let it answer, or open the validation link it was sent"

// errSuperseded: while the endpoint was asked, somebody else has changed the definition.
var errSuperseded = errors.New("while its endpoint was asked it was changed by somebody else, or its time ran out: look at it and try again")

// mustAsk reports whether settings need an endpoint's consent. r is the present state, nil for a
// new subscription.
func (k *Registry) mustAsk(r *record, next Settings) bool {
	if next.Webhook == nil || next.SkipValidation || k.validator == nil {
		return false
	}
	return r == nil || r.State == Failed || r.State == Pending || r.SkipValidation || !r.sameEndpoint(next)
}

// sameEndpoint reports whether both go to one webhook.
func (s Settings) sameEndpoint(other Settings) bool {
	return s.Webhook != nil && other.Webhook != nil && s.Webhook.URL == other.Webhook.URL
}

// waits reports whether an endpoint has been asked for those settings, and its link can still be opened.
func (r *record) waits(next Settings) bool {
	return r.State == Pending && r.Validation.Awaiting && time.Now().Before(r.Validation.Until) &&
		r.sameEndpoint(next) && r.Output == next.Output
}

func (k *Registry) newValidation() Validation {
	return Validation{Code: NewUUID(), Token: rand.Text(), Until: now().Add(k.window)}
}

// askAgain is a validation under the link that somebody has and may be about to open.
func (v Validation) askAgain() Validation {
	return Validation{Code: NewUUID(), Token: v.Token, Until: v.Until}
}

// NewUUID is random. Codes are UUIDs because that is what receivers have seen in practice
// (reference §10.1).
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ask asks the endpoint of a stored definition, and stores what comes of it.
func (k *Registry) ask(ctx context.Context, r *record) (*record, error) {
	asked := r.Subscription
	if r.Proposal != nil {
		asked.Settings, asked.Validation = r.Proposal.Settings, r.Proposal.Validation
	}
	code, link := asked.Validation.Code, k.validationURL(asked, asked.Validation.Token)
	a := k.validator.Validate(ctx, asked, r.Resource, code, link)
	// What it said counts, also when the caller has left by now.
	ctx, cancel := detached(ctx)
	defer cancel()
	if a.Agreed || a.Awaiting {
		accepted, err := k.changeOf(ctx, r.key(), r.ID, func(r *record) error { return k.sources.accept(ctx, r, code, a) })
		switch {
		case errors.Is(err, meta.ErrNotFound):
			err = fmt.Errorf("%w: it was deleted while its endpoint was asked", ErrNotFound)
		case errors.Is(err, errSuperseded):
			// A conflict only for the caller: changeOf would take one for what goes away by trying
			// again.
			err = fmt.Errorf("%w (%w)", err, meta.ErrConflict)
		}
		return accepted, err
	}
	confirmed, err := k.refuse(ctx, r.key(), r.ID, code)
	if confirmed != nil {
		return confirmed, nil
	}
	if err != nil {
		k.log.Warn("refused subscription is still stored, it will lapse", "subscription", r.Name, "source", r.Source, "error", err)
	}
	return nil, fmt.Errorf("%w: %s", ErrHandshake, a.Why)
}

// proposes reports whether an update with that code is under way.
func (r *record) proposes(code string) bool {
	return r.Proposal != nil && r.Proposal.Validation.Code == code
}

// adopt puts what was proposed in force.
func (r *record) adopt() {
	asked := r.Proposal.Validation
	r.take(r.Proposal.Settings)
	r.Validation = asked
}

// take puts settings in force, in place of the present ones and of any that were proposed. The rate
// that an endpoint allowed, and the keys that were rotated out, are not those of others.
func (r *record) take(next Settings) {
	if !r.sameEndpoint(next) {
		r.Validation.Rate = 0
	}
	if !containsKeys(next.Keys, r.Keys) {
		r.Retired = nil
	}
	r.Settings, r.Proposal, r.Updated = next, nil, now()
}

// accept does what an endpoint's answer says that it agreed, or that a link will be opened.
func (k *sources) accept(ctx context.Context, r *record, code string, a Agreement) error {
	switch {
	case r.proposes(code):
		r.adopt()
	case r.Validation.Code != code:
		return errSuperseded
	case r.Validation.Token == "" && (a.Awaiting || r.State != Failed):
		return mirror.ErrUnchanged // the link was opened first, or is good no longer
	}
	if a.Awaiting {
		r.State, r.Why, r.Validation.Awaiting = Pending, whyPending, true
		return nil
	}
	at, err := k.present(r)
	if err != nil {
		return err
	}
	r.Validation.Rate = a.Rate
	return k.activate(ctx, r, at)
}

// neverAgreed: no endpoint of it ever has, so that nobody could miss it.
func (r *record) neverAgreed() bool {
	return r.Starts == nil && (r.State == Pending || r.State == Failed)
}

// refuse takes back what an endpoint did not agree to. It gives the subscription where the link
// was opened meanwhile: that stands.
func (k *Registry) refuse(ctx context.Context, key, id, code string) (confirmed *record, err error) {
	err = mirror.Uncontested(ctx, func() error {
		there, err := k.subscriptions.Read(ctx, key)
		if err != nil {
			return err
		}
		switch r := there.Value; {
		case r.ID != id:
			return nil
		case r.proposes(code):
			r.Proposal = nil
			_, err = k.subscriptions.Put(ctx, there)
		case r.Validation.Code != code:
			return nil
		case r.neverAgreed() && r.Proposal != nil: // somebody has asked again meanwhile: that counts
			r.adopt()
			r.State, r.Why = Pending, whyPending
			_, err = k.subscriptions.Put(ctx, there)
		case r.neverAgreed():
			err = k.subscriptions.Delete(ctx, there)
		default:
			confirmed = r
		}
		return err
	})
	if errors.Is(err, meta.ErrNotFound) {
		err = nil
	}
	return confirmed, err
}

// Confirm is what opening the validation URL does. rate is WebHook-Allowed-Rate, 0: none given.
func (k *Registry) Confirm(ctx context.Context, id, token string, rate int) (Subscription, error) {
	known := k.Snapshot().Subscriptions.Get(id)
	if known == nil {
		return Subscription{}, badToken()
	}
	r, err := k.changeOf(ctx, subscriptionKey(known.Source, known.Name), id, func(r *record) error {
		code := r.codeOf(token, time.Now())
		if code == "" {
			return badToken()
		}
		return k.sources.accept(ctx, r, code, Agreement{Agreed: true, Rate: max(rate, 0)})
	})
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return Subscription{}, badToken()
	case errors.Is(err, ErrToken):
		return Subscription{}, err
	case err != nil:
		return Subscription{}, fmt.Errorf("confirm subscription %q: %w", known.Name, err)
	}
	k.log.Info("subscription confirmed by its link", "subscription", r.Name, "source", r.Source, "state", r.State)
	return r.Subscription, nil
}

// badToken says the same of every link that is not good: strangers open it.
func badToken() error {
	return fmt.Errorf("%w: it is wrong, used up or too old, or the endpoint has been asked again since", ErrToken)
}

// codeOf gives the code of the handshake that a token ends; empty if there is none. Where an endpoint is asked
// again under the same link, it ends the later one.
func (r *record) codeOf(token string, now time.Time) string {
	var open []Validation
	if r.Proposal != nil {
		open = append(open, r.Proposal.Validation)
	}
	open = append(open, r.Validation)
	for _, v := range open {
		if v.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(v.Token)) == 1 && now.Before(v.Until) {
			return v.Code
		}
	}
	return ""
}
