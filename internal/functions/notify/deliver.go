package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// sender sends notices and events, once. Its fields never change after Open.
type sender struct {
	cfg     Config
	metrics *metrics
	mailer  *mailer // nil: no mail
	secret  []byte  // that links are signed with
}

// errUnlisted: the target is not, or no longer, where notices of the function go.
var errUnlisted = errors.New("the target is none of the function's any more")

// refusal is what a receiver answered.
type refusal struct {
	error
	final bool          // it says that asking again is no use
	after time.Duration // it says when; 0: it does not
}

func (r *refusal) Unwrap() error { return r.error }

// deliver sends an item; nil: its receiver has it.
func (s *sender) deliver(ctx context.Context, l *ledger, it item) error {
	about := l.change(it.Change)
	if it.Kind == kindEvent {
		event, err := json.Marshal(eventOf(l, about, s.lag(ctx, l.Group)))
		if err != nil {
			return fmt.Errorf("compose an event: %w", err)
		}
		return s.cfg.Topics.Announce(ctx, [][]byte{event})
	}
	// What is gone has no definition any more; that it is gone is told to those who were its
	// targets.
	if !about.Gone && !slices.Contains(s.cfg.Circuits.Targets(l.Group, l.Function), it.Target) {
		return errUnlisted
	}
	if err := s.cfg.CheckTarget(it.Target); err != nil {
		return err
	}
	n := notice{
		Kind: it.Kind, Group: l.Group, Function: l.Function, Incident: about.Incident,
		Record: about.Record, Began: about.Record, Gone: about.Gone, Lag: s.lag(ctx, l.Group),
	}
	if about.Began != nil {
		n.Began = *about.Began
	}
	if it.Kind == kindOpened { // never for a held circuit: see the package's comment
		n.Link, n.Expires = s.link(n.Group, n.Function, n.Incident, time.Now())
	}
	return s.send(ctx, it.Target, n)
}

// send sends a notice to a target that was checked.
func (s *sender) send(ctx context.Context, target string, n notice) error {
	if mediumOf(target) == byWebhook {
		return s.post(ctx, target, n)
	}
	to, err := mailAddress(target)
	if err != nil {
		return err
	}
	message, err := s.mailer.compose(n, to, time.Now())
	if err != nil {
		return fmt.Errorf("compose a mail: %w", err)
	}
	return s.mailer.send(ctx, to, message)
}
