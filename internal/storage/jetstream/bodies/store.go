package bodies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/jetstream/provide"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config says whose bodies a store has and how the servers keep them.
type Config struct {
	// Yard names the bodies among those that share the servers: 1 to 32 letters, digits, '-', '_'.
	Yard string
	// Replicas is how many servers keep each body, 1, 3 or 5; zero means 3. A stream that is there
	// keeps the number it has.
	Replicas int
	// MaxBytes is for all bodies of the yard; zero means no limit but the servers' own.
	MaxBytes int64

	// chunkBytes and patience are for tests; zero means the constants of the names.
	chunkBytes int64
	patience   time.Duration
}

const (
	// chunkBytes is half of what a message between servers should measure at most, so that other
	// traffic of a connection does not wait long.
	chunkBytes = 512 << 10
	// patience is how long a call waits for the servers before it says that they are out of reach. A
	// lost leader is replaced within 4 to 9 seconds.
	patience = 20 * time.Second
	// answerTime is how long one request waits before it is made again.
	answerTime = 4 * time.Second
)

// Store keeps bodies. All methods may be called by many goroutines at once.
type Store struct {
	cfg        Config
	put, reads *nats.Conn
}

// New makes a store over two connections, which stay the caller's: one for what is written and one
// for what is read, so that neither waits for the other. They may be the same. It does no I/O.
func New(put, reads *nats.Conn, cfg Config) *Store {
	cfg.Replicas, cfg.patience = cmp.Or(cfg.Replicas, 3), cmp.Or(cfg.patience, patience)
	cfg.chunkBytes = cmp.Or(cfg.chunkBytes, chunkBytes)
	return &Store{cfg: cfg, put: put, reads: reads}
}

// Load makes the stream unless it is there. Errors: meta.ErrUnavailable, ctx's; others are for a
// person. It may be called again after an error.
func (s *Store) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.patience)
	defer cancel()
	js, err := jetstream.New(s.put)
	if err != nil {
		return err
	}
	have, err := provide.Stream(ctx, js, s.streamConfig())
	if err != nil {
		return fmt.Errorf("load bodies: stream %s: %w", s.Stream(), outOfReach(ctx, err))
	}
	if !have.AllowDirect || have.MaxAge != 0 || have.MaxMsgsPerSubject > 0 {
		return fmt.Errorf("load bodies: stream %s is not as bodies need it: direct reads, no maximum age, any number of messages per subject", s.Stream())
	}
	return nil
}

func (s *Store) streamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Stream(), Subjects: []string{s.subjects(">")},
		Description: "bodies of blobs of Eventyard: do not write, delete or purge",
		Storage:     jetstream.FileStorage, Replicas: s.cfg.Replicas,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxBytes: cmp.Or(s.cfg.MaxBytes, -1),
		AllowDirect: true, DenyDelete: true,
	}
}

func outOfReach(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
	}
	return err
}

// Stream is the name that the stream of all bodies has at the servers.
func (s *Store) Stream() string { return "Y_" + s.cfg.Yard + "_b" }

// subjects are those of the stream, by their ends.
func (s *Store) subjects(end string) string { return "y." + s.cfg.Yard + ".b." + end }

func (s *Store) chunks(name string) string { return s.subjects(name + ".c") }
func (s *Store) index(name string) string  { return s.subjects(name + ".i") }

// errAgain: the request may have been done or not, and to make it again does no harm.
var errAgain = errors.New("the servers do not answer")

// persist makes a request until it is answered, for as long as patience allows.
func (s *Store) persist(ctx context.Context, request func(ctx context.Context) error) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, s.cfg.patience)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, done := context.WithTimeout(ctx, answerTime)
		err := request(one)
		done()
		if !errors.Is(err, errAgain) {
			return err
		}
		if caller.Err() != nil {
			return context.Cause(caller)
		}
		if sleep.About(ctx, pause) != nil {
			return fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
		}
	}
}

// ask sends one request and waits for its answer.
func ask(ctx context.Context, conn *nats.Conn, subject string, data []byte) (*nats.Msg, error) {
	if !conn.IsConnected() { // what is sent now would be sent later, when nobody waits for it
		return nil, fmt.Errorf("%w: there is no connection", errAgain)
	}
	answer, err := conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, fmt.Errorf("the NATS servers take messages of at most %d bytes: set max_payload to 8MB: %w", conn.MaxPayload(), err)
	}
	return nil, fmt.Errorf("%w: %w", errAgain, err)
}

// apiError is what JetStream says when it refuses.
type apiError struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

// Codes of JetStream's errors.
const (
	codeNoMessage = 10037
	codeNoStream  = 10059
)

func (e *apiError) judge() error {
	switch {
	case e == nil:
		return nil
	case e.Code == codeNoMessage:
		return fs.ErrNotExist
	case (&answers.Refusal{Code: e.Code, Description: e.Description}).Full():
		return fmt.Errorf("%w: %s (%d)", meta.ErrNoSpace, e.Description, e.Code)
	case e.Code == codeNoStream:
		return fmt.Errorf("the stream of bodies is gone: %s (%d)", e.Description, e.Code)
	}
	return fmt.Errorf("%w: %s (%d)", errAgain, e.Description, e.Code) // as without a leader
}

// call makes a request of JetStream's own and reads its answer.
func (s *Store) call(ctx context.Context, conn *nats.Conn, api string, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return s.persist(ctx, func(ctx context.Context) error {
		got, err := ask(ctx, conn, "$JS.API."+api+"."+s.Stream(), data)
		if err != nil {
			return err
		}
		var refused struct {
			Error *apiError `json:"error"`
		}
		if err := json.Unmarshal(got.Data, &refused); err != nil {
			return fmt.Errorf("%w that can be read: %w", errAgain, err)
		}
		if err := refused.Error.judge(); err != nil || answer == nil {
			return err
		}
		return json.Unmarshal(got.Data, answer)
	})
}
