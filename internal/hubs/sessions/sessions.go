// Package sessions keeps who is signed in at the console, as entries of the meta store, so that every
// node knows them. An entry has the hash of a token and what the session stands on: policies, the
// digest of the key that was shown, never the key itself. So a session ends with its policy or key, as
// every other grant does, and a copy of the store signs nobody in.
package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
)

// How long a session lasts: unused, and in all.
const (
	MaxIdle = 8 * time.Hour
	MaxAge  = 24 * time.Hour
)

const (
	prefix = "sessions/" // + the hash of its token
	// seenEvery is how often the use of a session is written down.
	seenEvery = 10 * time.Minute
	// sweepEvery is how often those that have ended are removed, by who signs in.
	sweepEvery = time.Minute
	// maxSessions is how many there may be, and maxOfOne of one policy, so that who has one policy
	// keeps nobody else from signing in.
	maxSessions = 10_000
	maxOfOne    = 1_000
)

var (
	// ErrEnded: there is no such session, or there was.
	ErrEnded = errors.New("the session has ended")
	// ErrFull: there are as many sessions as there may be, of a policy or in all.
	ErrFull = errors.New("there are too many sessions already")
)

// Access judges what a session stands on.
type Access interface {
	// Adopt gives a grant as it stands now; an error says that it does not.
	Adopt(ctx context.Context, g auth.Grant) (auth.Grant, error)
}

// Config is what sessions work with.
type Config struct {
	// Meta keeps them, and Access judges them. Required.
	Meta   meta.Store
	Access Access
	// Looks makes fresh looks for what another node has just begun; nil: there is none.
	Looks *looks.Looks
	// Log takes what nobody else hears of. nil means slog.Default().
	Log *slog.Logger
}

// Sessions are those of a yard. All methods may be called by many goroutines at once.
type Sessions struct {
	cfg Config

	mu    sync.Mutex
	swept time.Time      // guarded by mu
	of    map[string]int // by account, those that the last sweep left, and new ones since; guarded by mu
	count int            // all of these; guarded by mu
}

// Session is one that goes on.
type Session struct {
	Grant auth.Grant
	// Ends is when it will, unless it is used before.
	Ends time.Time
}

// record is what an entry holds.
type record struct {
	Caller  json.RawMessage `json:"caller"`
	Created time.Time       `json:"created"`
	Seen    time.Time       `json:"seen"`
}

func (r record) ends() time.Time {
	idle, age := r.Seen.Add(MaxIdle), r.Created.Add(MaxAge)
	if idle.Before(age) {
		return idle
	}
	return age
}

// New makes them of what the store has.
func New(cfg Config) *Sessions {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Sessions{cfg: cfg}
}

// Begin begins a session and gives its token, which is kept nowhere. Errors: ErrFull, those of the
// store.
func (s *Sessions) Begin(ctx context.Context, g auth.Grant) (token string, err error) {
	now := time.Now()
	if err := s.enter(ctx, g.Account(), now); err != nil {
		return "", err
	}
	who := caller.Caller{Grant: g}.EncodeWhole()
	if who == nil {
		return "", fmt.Errorf("%w: the grant is too large to be kept", auth.ErrUnsupported)
	}
	value, err := json.Marshal(record{Caller: who, Created: now.UTC(), Seen: now.UTC()})
	if err != nil {
		return "", err
	}
	var random [32]byte
	rand.Read(random[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(random[:])
	if _, err := s.cfg.Meta.CompareAndSet(ctx, keyOf(token), 0, value); err != nil {
		return "", fmt.Errorf("begin a session: %w", err)
	}
	return token, nil
}

// Find gives the session of a token. Errors: ErrEnded, also where what it stands on is gone; those of
// the store.
func (s *Sessions) Find(ctx context.Context, token string) (Session, error) {
	e, err := s.get(ctx, keyOf(token))
	if err != nil {
		return Session{}, err
	}
	now := time.Now()
	r, g, err := s.read(ctx, e, now)
	if err != nil {
		return Session{}, err
	}
	if now.Sub(r.Seen) >= seenEvery {
		r.Seen = now.UTC()
		s.note(ctx, e, r)
	}
	return Session{Grant: g, Ends: r.ends()}, nil
}

// read gives what an entry holds, and the grant as it stands now. Errors: ErrEnded, and
// auth.ErrUnavailable where that cannot be known just now.
func (s *Sessions) read(ctx context.Context, e meta.Entry, now time.Time) (r record, g auth.Grant, err error) {
	if err := json.Unmarshal(e.Value, &r); err != nil || !now.Before(r.ends()) {
		return r, g, ErrEnded
	}
	who, err := caller.Decode(r.Caller)
	if err != nil {
		return r, g, ErrEnded
	}
	g, err = s.cfg.Access.Adopt(ctx, who.Grant)
	switch {
	case errors.Is(err, auth.ErrUnavailable):
		return r, g, err
	case err != nil || g.Expired(now) || !g.Stands():
		return r, g, ErrEnded
	}
	return r, g, nil
}

// End ends the session of a token, if there is one.
func (s *Sessions) End(ctx context.Context, token string) error {
	for {
		e, err := s.get(ctx, keyOf(token))
		if errors.Is(err, ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.cfg.Meta.Delete(ctx, e.Key, e.Revision)
		if !errors.Is(err, meta.ErrConflict) { // else its use was just written down
			return err
		}
	}
}

func keyOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return prefix + hex.EncodeToString(sum[:])
}

func (s *Sessions) get(ctx context.Context, key string) (meta.Entry, error) {
	e, err := s.cfg.Meta.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		if looked, failed := s.cfg.Looks.Fresh(ctx, prefix); failed != nil {
			return e, failed
		} else if looked {
			e, err = s.cfg.Meta.Get(ctx, key)
		}
	}
	if errors.Is(err, meta.ErrNotFound) {
		return e, ErrEnded
	}
	return e, err
}

// note writes down that a session is used. Another request may have, or have ended it: then it is as
// that one said.
func (s *Sessions) note(ctx context.Context, e meta.Entry, r record) {
	value, err := json.Marshal(r)
	if err == nil {
		_, err = s.cfg.Meta.CompareAndSet(ctx, e.Key, e.Revision, value)
	}
	if err != nil && !errors.Is(err, meta.ErrConflict) {
		s.cfg.Log.Warn("the use of a session cannot be written down", "error", err)
	}
}

// enter counts one more of an account, unless there are as many as there may be. Now and then it
// removes those that have ended, and counts the others anew.
func (s *Sessions) enter(ctx context.Context, account string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= sweepEvery {
		left, count, err := s.sweep(ctx, now)
		if err != nil {
			return err
		}
		s.swept, s.of, s.count = now, left, count
	}
	switch {
	case s.of[account] >= maxOfOne:
		return fmt.Errorf("%w: %d of this policy", ErrFull, maxOfOne)
	case s.count >= maxSessions:
		return fmt.Errorf("%w: %d in all", ErrFull, maxSessions)
	}
	s.of[account]++
	s.count++
	return nil
}

// sweep removes sessions that have ended, and gives how many are left, by account and in all.
func (s *Sessions) sweep(ctx context.Context, now time.Time) (left map[string]int, count int, err error) {
	all, err := s.cfg.Meta.List(ctx, prefix)
	if err != nil {
		return nil, 0, fmt.Errorf("list sessions: %w", err)
	}
	left = map[string]int{}
	for _, e := range all {
		r, g, err := s.read(ctx, e, now)
		if err == nil {
			left[g.Account()]++
			count++
		}
		if now.Before(r.ends()) { // where it does not stand, that may not be known for good
			continue
		}
		if err := s.cfg.Meta.Delete(ctx, e.Key, e.Revision); err != nil && !errors.Is(err, meta.ErrConflict) {
			return nil, 0, fmt.Errorf("remove a session: %w", err)
		}
	}
	return left, count, nil
}
