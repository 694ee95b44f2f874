package natskv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
)

// entry is a key as it was read.
type entry struct {
	value    []byte
	revision uint64
	removed  bool // only the mark of its removal is there
}

// version is the entry's, empty if there is nothing but a mark.
func (e entry) version() processor.Version {
	if e.revision == 0 || e.removed {
		return ""
	}
	return processor.Version(strconv.FormatUint(e.revision, 10))
}

// errLags: a replica that has not come as far as the leader was asked.
var errLags = errors.New("the replica lags behind")

// errMany: more keys than a server gives in one answer.
var errMany = errors.New("too many keys for one answer")

// tryFor is how long an answer is waited for before a read is sent again: a server that
// stops takes the questions it has with it.
const tryFor = 2 * time.Second

// read gives the keys that filters find, all of one moment that is not before the call.
func (s *store) read(ctx context.Context, filters ...string) (map[string]entry, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		found, err := s.try(ctx, filters)
		switch {
		case errors.Is(err, errMany):
			return s.readMany(ctx, filters)
		case ctx.Err() == nil && (errors.Is(err, errLags) || errors.Is(err, context.DeadlineExceeded)):
			// A replica that lags has it soon, or another one answers.
		default:
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

func (s *store) try(ctx context.Context, filters []string) (map[string]entry, error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	info, err := s.stream.Info(ctx) // only the leader answers
	if err != nil {
		return nil, err
	}
	return s.readFrom(ctx, info.State.LastSeq, filters)
}

// readFrom asks any replica for the last values of all keys at once.
func (s *store) readFrom(ctx context.Context, least uint64, filters []string) (map[string]entry, error) {
	subjects := []string{s.prefix + anchor}
	for _, f := range filters {
		subjects = append(subjects, s.prefix+f)
	}
	request, err := json.Marshal(map[string]any{"multi_last": subjects})
	if err != nil {
		return nil, err
	}
	conn := s.js.Conn()
	answers, err := conn.SubscribeSync(conn.NewRespInbox())
	if err != nil {
		return nil, err
	}
	defer answers.Unsubscribe() // an error means that the connection is gone, and this with it
	if err := conn.PublishRequest(s.api("DIRECT.GET."+s.stream.CachedInfo().Config.Name), answers.Subject, request); err != nil {
		return nil, err
	}
	found := map[string]entry{}
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		if m.Header.Get("Status") != "" {
			return found, ended(m, least)
		}
		sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a direct read's answer: %w", err)
		}
		if key := strings.TrimPrefix(m.Header.Get("Nats-Subject"), s.prefix); key != anchor {
			removed := m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != ""
			found[key] = entry{value: m.Data, revision: sequence, removed: removed}
		}
	}
}

// bounded gives a context without a deadline that of the connection to JetStream.
func (s *store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.js.Options().DefaultTimeout)
}

// api is the subject of a request to JetStream.
func (s *store) api(name string) string {
	o := s.js.Options()
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API." + name
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "." + name
	}
	return jetstream.DefaultAPIPrefix + name
}

// ended judges the message that ends an answer.
func ended(m *nats.Msg, least uint64) error {
	switch m.Header.Get("Status") {
	case "204":
		upTo, err := strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
		if err != nil {
			return fmt.Errorf("the end of a direct read's answer: %w", err)
		}
		if m.Header.Get("Nats-Num-Pending") != "0" {
			return errMany
		}
		if upTo < least {
			return errLags
		}
		return nil
	case "404":
		return errLags // not even the anchor
	case "413":
		return errMany
	case "503":
		return nats.ErrNoResponders
	}
	return fmt.Errorf("a direct read's answer: %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
}

// readMany reads what does not fit into one answer, by a consumer. It may lag: no harm
// is done by that, as writes are conditional.
func (s *store) readMany(ctx context.Context, filters []string) (map[string]entry, error) {
	w, err := s.kv.WatchFiltered(ctx, slices.Clone(filters)) // it changes what it is given
	if err != nil {
		return nil, err
	}
	defer stop(w)
	found := map[string]entry{}
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case e, open := <-w.Updates():
			if !open {
				return nil, nats.ErrConnectionClosed
			}
			if e == nil { // all that were there
				return found, nil
			}
			found[e.Key()] = entry{value: e.Value(), revision: e.Revision(), removed: e.Operation() != jetstream.KeyValuePut}
		}
	}
}
