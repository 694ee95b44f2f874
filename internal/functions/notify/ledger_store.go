package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// ledgerPrefix is where ledgers are: HUB/GROUP/FUNCTION below it.
const ledgerPrefix = "notices/circuits/"

// follow has the ledgers kept in a store.
func (s *outbox) follow(store meta.Store) {
	s.ledgers = mirror.New(mirror.Config[*ledger]{
		Store: store, Prefix: ledgerPrefix, Name: "notices", Encode: (*ledger).encode, Apply: s.applied, Log: s.cfg.Log,
		Decode: func(e meta.Entry) (*ledger, error) { return s.read(e.Key, e.Value), nil },
	})
}

// keyOf is the same for all spellings of a group.
func keyOf(g processor.Group, function string) string {
	g = g.Canonical()
	return ledgerPrefix + url.PathEscape(g.Hub) + "/" + url.PathEscape(g.Group) + "/" + url.PathEscape(function)
}

// change changes a ledger, as often as it takes: f is asked with the newest, an empty one where
// there is none, and says whether it changed it; it leaves alone what it does not. After an error
// it may have been changed: f finds that out when it is asked again. A conflict is not waited out:
// it is mostly with other lanes of this process, and each change of theirs gets one of them on.
func (s *outbox) change(ctx context.Context, key string, f func(*ledger) bool) error {
	for {
		there, err := s.ledgers.Read(ctx, key)
		if errors.Is(err, meta.ErrNotFound) {
			there, err = mirror.Item[*ledger]{Key: key, Value: &ledger{}}, nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		if !f(there.Value) {
			return nil
		}
		switch _, err = s.ledgers.Put(ctx, there); {
		case errors.Is(err, meta.ErrConflict):
		case err != nil:
			return fmt.Errorf("store %s: %w", key, err)
		default:
			s.account(there.Value)
			return nil
		}
	}
}

// read decodes a ledger. One that cannot be read is begun anew: its circuit is noticed again,
// rather than never.
func (s *outbox) read(key string, value []byte) *ledger {
	l := &ledger{}
	if len(value) == 0 {
		return l
	}
	if err := json.Unmarshal(value, l); err != nil {
		s.cfg.Log.Error("a record of notices cannot be read: what it held is not sent, and the circuit is noticed anew", "key", key, "error", err)
		return &ledger{}
	}
	return l
}

// encode leaves characters of markup as they are: escaped they would take six times the room.
func (l *ledger) encode() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		panic(fmt.Sprintf("notify: encode a ledger: %v", err)) // it has nothing that cannot be encoded
	}
	return b.Bytes()
}

// account counts what left unsent, once that is stored.
func (s *outbox) account(l *ledger) {
	for _, d := range l.dropped {
		s.metrics.count(d.medium(), d.why)
		if d.why == givenUp {
			s.cfg.Log.Warn("a notice was given up: too many newer ones wait for the same receiver", append(logItem(l, d.item), "attempts", d.Attempts)...)
		}
	}
	l.dropped = nil
}

// medium is how an item is sent.
func (it item) medium() medium {
	if it.Kind == kindEvent {
		return byEvent
	}
	return mediumOf(it.Target)
}

func logItem(l *ledger, it item) []any {
	return []any{"notice", it.Kind, "to", it.receiver(), "hub", l.Group.Hub, "group", l.Group.Group, "function", l.Function}
}

// receiver is who gets it, for logs.
func (it item) receiver() string {
	if it.Kind == kindEvent {
		return "grid"
	}
	return showTarget(it.Target)
}
