package natskv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
)

// Config says which bucket. The zero Config works.
type Config struct {
	// Bucket is the bucket's name; empty means "eventyard". It is made if it does not exist.
	Bucket string
	// Replicas is how many servers keep it; 0 means 3 in a cluster and else 1, and takes
	// a bucket that exists as it is. Any other number has to be that of a bucket that exists.
	Replicas int
}

// markers is how long the mark of a removed key is kept: long enough for every watcher to see
// it, not for ever, as each instance leaves one.
const markers = time.Hour

// anchor is a key that always exists, so that an answer without records is distinct from one of a
// replica that has none yet.
const anchor = "eventyard"

type store struct {
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	stream jetstream.Stream
	prefix string // of the subjects of keys
	expire bool   // marks of removed keys may expire
}

var (
	_ processor.Store   = (*store)(nil)
	_ processor.Watcher = (*store)(nil)
)

// New keeps records in a bucket, which it makes if there is none.
func New(ctx context.Context, js jetstream.JetStream, cfg Config) (processor.Store, error) {
	cfg.Bucket = cmp.Or(cfg.Bucket, "eventyard")
	s := &store{js: js, prefix: "$KV." + cfg.Bucket + "."}
	if err := s.open(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	return s, nil
}

func (s *store) open(ctx context.Context, cfg Config) (err error) {
	s.kv, err = s.js.KeyValue(ctx, cfg.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		replicas := cfg.Replicas
		if replicas == 0 && s.js.Conn().ConnectedClusterName() != "" {
			replicas = 3
		}
		s.kv, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: cfg.Bucket, Description: "Leases and checkpoints of consumer groups",
			History: 1, Storage: jetstream.FileStorage, Replicas: replicas, LimitMarkerTTL: markers,
		})
		if errors.Is(err, jetstream.ErrBucketExists) {
			s.kv, err = s.js.KeyValue(ctx, cfg.Bucket) // another instance's, made just now
		}
	}
	if err != nil {
		return err
	}
	if s.stream, err = s.js.Stream(ctx, "KV_"+cfg.Bucket); err != nil {
		return err
	}
	found := s.stream.CachedInfo().Config
	if err := check(found, cfg); err != nil {
		return err
	}
	s.expire = found.AllowMsgTTL
	_, err = s.kv.Update(ctx, anchor, nil, 0)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil // it is there
	}
	return err
}

// check refuses a bucket that would lose records or cannot be read as a whole.
func check(found jetstream.StreamConfig, cfg Config) error {
	switch {
	case cfg.Replicas != 0 && found.Replicas != cfg.Replicas:
		return fmt.Errorf("it has %d replicas and not %d", found.Replicas, cfg.Replicas)
	case found.MaxAge != 0:
		return fmt.Errorf("its keys expire after %v", found.MaxAge)
	case found.Storage != jetstream.FileStorage:
		return errors.New("it is in memory only")
	case !found.AllowDirect:
		return errors.New("it does not allow direct reads")
	}
	return nil
}
