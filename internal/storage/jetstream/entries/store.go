package entries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config says whose entries a store has and how the servers keep them.
type Config struct {
	// Yard names the entries among those that share the servers: 1 to 32 letters, digits, '-', '_'.
	Yard string
	// Replicas is how many servers keep each entry, 1, 3 or 5; zero means 3. Streams that are there
	// keep the number they have.
	Replicas int
	// Buckets is over how many streams entries of state are spread; zero means 4. A yard keeps the
	// number that it was made with.
	Buckets int
	// MaxGaps is how many gaps a stream may have before the oldest entries are stored again; zero means
	// 250,000.
	MaxGaps int
	// Log takes what the store goes on from; nil means slog.Default().
	Log *slog.Logger

	// For tests; zero means the constant of the name.
	deletionLife, patience, tidyEvery time.Duration
}

// deletionLife is how long a bucket keeps the message of a deletion. Who has not read for half that
// long reads everything anew.
const deletionLife = 24 * time.Hour

// Store is a meta.Store over JetStream. New, then Run in a goroutine, then Load, then the rest; Tidy
// in a goroutine where the process is one of the yard's nodes.
type Store struct {
	cfg  Config
	conn Conn
	log  *slog.Logger

	take func(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) // request; tests replace it

	replica *replica
	ready   chan struct{}      // closed by Load when there are streams to read
	loaded  atomic.Bool        // reads may be answered
	layout  layout             // written by Load before ready is closed
	buckets map[string]*bucket // by name; written by Load before ready is closed

	loading sync.Mutex      // held by Load
	life    context.Context // ends with Close: what waits is bound to it
	end     context.CancelFunc
}

var (
	_ meta.Store     = (*Store)(nil)
	_ meta.Selecting = (*Store)(nil)
)

// New makes a store over a connection, which stays the caller's. It does no I/O.
func New(conn *nats.Conn, cfg Config) (*Store, error) { return Over(natsConn{conn}, cfg) }

// Over is New for any connection.
func Over(conn Conn, cfg Config) (*Store, error) {
	cfg.Replicas, cfg.Buckets = cmp.Or(cfg.Replicas, 3), cmp.Or(cfg.Buckets, 4)
	cfg.MaxGaps, cfg.tidyEvery = cmp.Or(cfg.MaxGaps, maxGaps), cmp.Or(cfg.tidyEvery, tidyEvery)
	cfg.deletionLife, cfg.patience = cmp.Or(cfg.deletionLife, deletionLife), cmp.Or(cfg.patience, patience)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if err := (layout{cfg.Yard, cfg.Buckets}).check(); err != nil {
		return nil, fmt.Errorf("entries: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	s := &Store{
		cfg: cfg, conn: conn, log: cfg.Log.With("yard", cfg.Yard),
		replica: newReplica(), ready: make(chan struct{}), life: life, end: end,
	}
	s.take = s.request
	return s, nil
}

// Load makes the streams of a new yard, and waits until the replica has what was stored before. Run
// must be running. Errors: meta.ErrUnavailable, meta.ErrClosed, ctx's; others are for a person, as
// when the streams are not of the form they should have. It may be called again after an error.
func (s *Store) Load(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if err := s.prepare(ctx); err != nil {
		return fmt.Errorf("load entries of yard %s: %w", s.cfg.Yard, err)
	}
	if err := s.fresh(ctx, s.layout.buckets()); err != nil {
		return fmt.Errorf("load entries of yard %s: %w", s.cfg.Yard, err)
	}
	s.loaded.Store(true)
	return nil
}

// prepare finds or makes the streams, once.
func (s *Store) prepare(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	if !s.conn.IsConnected() {
		return fmt.Errorf("%w: there is no connection to a NATS server", meta.ErrUnavailable)
	}
	if most := s.conn.MaxPayload(); most < maxMessageBytes+headerBytes {
		return fmt.Errorf("the NATS servers take messages of at most %d bytes: set max_payload to 8MB", most)
	}
	l, err := s.provide(ctx)
	if err != nil {
		return err
	}
	s.layout, s.buckets = l, make(map[string]*bucket)
	for _, name := range l.buckets() {
		s.buckets[name] = newBucket(name, s.replica)
	}
	close(s.ready)
	return nil
}

// Close ends what waits, Run too, with meta.ErrClosed, and whatever comes later. What is under way
// at the servers may still be done.
func (s *Store) Close() error {
	s.end()
	return nil
}

// usable tells why a call cannot be answered: the store was closed, or is not loaded yet.
func (s *Store) usable() error {
	if s.life.Err() != nil {
		return meta.ErrClosed
	}
	if !s.loaded.Load() {
		return fmt.Errorf("%w: the entries are not loaded yet", meta.ErrUnavailable)
	}
	return nil
}

// patience is how long a call waits for the servers before it says that they are out of reach. A
// lost leader is replaced within 4 to 9 seconds.
const patience = 10 * time.Second

// errPatience is why a wait has ended that took too long.
var errPatience = fmt.Errorf("%w: the servers do not answer", meta.ErrUnavailable)

// bounded is ctx with the store's own end and patience.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.patience, errPatience)
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { end(meta.ErrClosed) })
	return ctx, func() {
		stop()
		end(nil)
		cancel()
	}
}

// plainly gives the caller's own error where its context is why a call has ended, whatever the cause.
func plainly(caller context.Context, err error) error {
	if cause := context.Cause(caller); cause != nil && errors.Is(err, cause) && !errors.Is(err, caller.Err()) {
		return fmt.Errorf("%w: %w", caller.Err(), err)
	}
	return err
}

// Get reads one entry.
func (s *Store) Get(ctx context.Context, key string) (meta.Entry, error) {
	if err := meta.CheckKey(key); err != nil {
		return meta.Entry{}, fmt.Errorf("get: %w", err)
	}
	if err := s.behindOwn(ctx, key); err != nil {
		return meta.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	entry, err := s.replica.get(key)
	if err != nil {
		return meta.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	return entry, nil
}

// List reads all entries under a prefix.
func (s *Store) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	if err := meta.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	if err := s.behindOwnUnder(ctx, prefix); err != nil {
		return nil, fmt.Errorf("list %q: %w", prefix, err)
	}
	return s.replica.list(prefix), nil
}

// Fresh has a barrier written to each bucket under the prefix, and waits until it was reached.
func (s *Store) Fresh(ctx context.Context, prefix string) error {
	if err := meta.CheckPrefix(prefix); err != nil {
		return fmt.Errorf("fresh: %w", err)
	}
	err := s.usable()
	if err == nil {
		err = s.fresh(ctx, s.layout.bucketsUnder(prefix))
	}
	if err != nil {
		return fmt.Errorf("fresh %q: %w", prefix, err)
	}
	return nil
}

func (s *Store) fresh(caller context.Context, buckets []string) error {
	ctx, cancel := s.bounded(caller)
	defer cancel()
	errs := make([]error, len(buckets))
	var all sync.WaitGroup
	for i, name := range buckets {
		all.Go(func() {
			b := s.buckets[name]
			seq, err := s.barrier(ctx, b)
			if err == nil {
				err = b.wait(ctx, seq)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return plainly(caller, errors.Join(errs...))
}

// behindOwn waits until a key is at least as new as what this process has seen acknowledged. It
// seldom has to wait.
func (s *Store) behindOwn(ctx context.Context, key string) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.wait(ctx, s.buckets[s.layout.bucketOf(key)])
}

func (s *Store) behindOwnUnder(ctx context.Context, prefix string) error {
	if err := s.usable(); err != nil {
		return err
	}
	for _, name := range s.layout.bucketsUnder(prefix) {
		if err := s.wait(ctx, s.buckets[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) wait(ctx context.Context, b *bucket) error {
	if b.atOwn() {
		return nil
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	return plainly(ctx, b.own(bounded))
}

// Watch begins a watch. It costs nothing before its first answer.
func (s *Store) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	return s.WatchSome(ctx, prefix, nil)
}

// WatchSome begins a watch of those keys that are wanted; nil: of all.
func (s *Store) WatchSome(ctx context.Context, prefix string, wants func(key string) bool) (meta.Watcher, error) {
	if err := meta.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	err := s.usable()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", prefix, err)
	}
	return &watch{
		store: s, ctx: ctx,
		watcher: watcher{prefix: prefix, wants: wants, ready: make(chan struct{}, 1), pending: make(map[string]meta.Change)},
	}, nil
}

// watch is one running watch.
type watch struct {
	watcher
	store *Store
	ctx   context.Context // the watch's life; meta.Watcher has Next without one
	begun bool            // used by the reader only
}

// Next waits for something to report.
func (w *watch) Next() ([]meta.Change, error) {
	changes, err := w.next()
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", w.prefix, err)
	}
	return changes, nil
}

func (w *watch) next() ([]meta.Change, error) {
	if err := w.ended(); err != nil {
		return nil, err
	}
	if !w.begun {
		if err := w.store.behindOwnUnder(w.ctx, w.prefix); err != nil {
			return nil, err
		}
		w.begun = true
		state := w.store.replica.begin(&w.watcher)
		context.AfterFunc(w.ctx, func() { w.store.replica.end(&w.watcher) })
		return state, nil
	}
	for {
		select {
		case <-w.ctx.Done():
			return nil, w.ended()
		case <-w.store.life.Done():
			return nil, w.ended()
		case <-w.ready:
			if changes := w.take(); len(changes) > 0 {
				return changes, nil
			}
		}
	}
}

func (w *watch) ended() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.store.life.Err() != nil {
		return meta.ErrClosed
	}
	return nil
}
