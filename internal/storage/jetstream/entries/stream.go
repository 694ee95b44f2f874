package entries

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// bucketsLabel is where the stream of definitions says how many buckets of state its yard has, and
// versionLabel in which form entries are stored.
const (
	bucketsLabel = "eventyard-buckets"
	versionLabel = "eventyard-entries"
)

// provide finds the streams of the yard, and makes those that are not there. Many nodes may do so at
// once: the first to make the stream of definitions says how many others there are.
func (s *Store) provide(ctx context.Context) (layout, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	l := layout{s.cfg.Yard, s.cfg.Buckets}
	found, err := s.stream(ctx, l, definitions)
	if err != nil {
		return layout{}, err
	}
	if version := found.Metadata[versionLabel]; version != strconv.Itoa(messageVersion) {
		return layout{}, fmt.Errorf("stream %s has entries of version %q, and this program reads version %d", found.Name, version, messageVersion)
	}
	l.state, err = strconv.Atoi(found.Metadata[bucketsLabel])
	if err = errors.Join(err, l.check()); err != nil {
		return layout{}, fmt.Errorf("stream %s: its number of buckets %q: %w", found.Name, found.Metadata[bucketsLabel], err)
	}
	for _, name := range l.buckets()[1:] {
		if _, err := s.stream(ctx, l, name); err != nil {
			return layout{}, err
		}
	}
	return l, nil
}

// stream finds or makes one stream.
func (s *Store) stream(ctx context.Context, l layout, bucket string) (jetstream.StreamConfig, error) {
	want := s.streamConfig(l, bucket)
	have, err := s.conn.Stream(ctx, want)
	if err != nil {
		return want, fmt.Errorf("stream %s: %w", want.Name, outOfReach(ctx, err))
	}
	if have.MaxMsgsPerSubject != 1 || !have.AllowDirect || !have.AllowMsgTTL || have.MaxAge != 0 {
		return have, fmt.Errorf("stream %s is not as entries need it: one message per subject, direct reads, message TTL, no maximum age", want.Name)
	}
	return have, nil
}

func (s *Store) streamConfig(l layout, bucket string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: l.stream(bucket), Subjects: []string{l.subjects(bucket)},
		Description: "entries of Eventyard: do not write, delete or purge",
		Storage:     jetstream.FileStorage, Replicas: s.cfg.Replicas,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1,
		AllowDirect: true, AllowMsgTTL: true, DenyDelete: true,
		Metadata: map[string]string{versionLabel: strconv.Itoa(messageVersion), bucketsLabel: strconv.Itoa(l.state)},
	}
}

// outOfReach makes errors of servers that do not answer meta.ErrUnavailable; others are for a person.
func outOfReach(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	api, is := errors.AsType[*jetstream.APIError](err)
	passing := []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrConnectionClosed, nats.ErrDisconnected}
	for _, one := range passing {
		if errors.Is(err, one) {
			return fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
		}
	}
	if is && api.Code == 503 {
		return fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
	}
	return err
}
