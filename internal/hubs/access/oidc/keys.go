package oidc

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// keys are those of an issuer, as it showed them at that time.
type keys struct {
	set jose.JSONWebKeySet
	at  time.Time
}

// verify gives the payload of a token that one of the keys signed.
func (k *keys) verify(token *jose.JSONWebSignature) ([]byte, bool) {
	id := token.Signatures[0].Header.KeyID
	for _, key := range k.set.Keys {
		if id != "" && key.KeyID != id || key.Use != "" && key.Use != "sig" {
			continue
		}
		if payload, err := token.Verify(key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// ring keeps the keys of an issuer.
//
// The issuer is asked by one goroutine at a time, for all who want to know, and after each answer
// it is left in peace for a while, so that strangers with made-up tokens cannot have it asked
// without end. Keys are replaced only by others that have come: an issuer that is down, or that
// does not answer, holds up nobody whose token was signed by a known key.
type ring struct {
	// ask gets the keys.
	ask func(context.Context) (jose.JSONWebKeySet, error)
	// pause is how long the issuer is left in peace, maxAge how long keys are good without
	// a new look at it.
	pause, maxAge time.Duration

	mu sync.Mutex
	// All of these are guarded by mu. known is nil before the first keys have come; asked
	// is the question under way, or the last; asking says which.
	known  *keys
	asked  *question
	asking bool
	closed bool
	// stop ends the question under way; work counts the goroutine that asks.
	stop context.CancelFunc
	work sync.WaitGroup
	// log hears of an issuer that does not answer; reported is when it last did, failing whether it
	// has yet to hear that the issuer answers again.
	log      *slog.Logger
	reported time.Time
	failing  bool
}

// question is one look at the issuer. Its outcome is set before done is closed.
type question struct {
	done chan struct{}
	keys *keys
	err  error
	at   time.Time
}

var errClosed = errors.New("the verifier is closed")

// present gives the keys that are known, and has newer ones fetched where they are old. It
// waits only if there are none.
func (r *ring) present(ctx context.Context) (*keys, error) {
	r.mu.Lock()
	known := r.known
	var q *question
	if known == nil || time.Since(known.at) >= r.maxAge {
		q = r.askLocked()
	}
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return q.wait(ctx)
}

// newer gives other keys than those seen, for a token that none of them fits. Where the
// issuer was asked a moment ago they may be the same.
func (r *ring) newer(ctx context.Context, seen *keys) (*keys, error) {
	r.mu.Lock()
	known := r.known
	var q *question
	if known == seen {
		q = r.askLocked()
	}
	r.mu.Unlock()
	if q == nil {
		return known, nil
	}
	return q.wait(ctx)
}

// askLocked gives a question: the one under way, the last if it was answered a moment
// ago, or a new one.
func (r *ring) askLocked() *question {
	switch {
	case r.asking, r.asked != nil && time.Since(r.asked.at) < r.pause:
		return r.asked
	case r.closed:
		q := &question{done: make(chan struct{}), err: errClosed}
		close(q.done)
		return q
	}
	q := &question{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	r.asked, r.asking, r.stop = q, true, cancel
	r.work.Go(func() {
		defer cancel()
		set, err := r.ask(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		q.at, q.err = time.Now(), err
		r.reportLocked(err, q.at)
		if err == nil {
			q.keys = &keys{set, q.at}
			r.known = q.keys
		}
		r.asking = false
		close(q.done)
	})
	return q
}

// reportEvery is how often the log hears of it: strangers can have the issuer asked every few seconds.
const reportEvery = 10 * time.Minute

// reportLocked logs that the issuer does not answer, and that it does again.
func (r *ring) reportLocked(err error, now time.Time) {
	switch {
	case r.closed:
	case err == nil && r.failing:
		r.log.Info("the issuer of bearer tokens answers again")
		r.failing = false
	case err != nil && now.Sub(r.reported) >= reportEvery:
		r.log.Warn("the issuer of bearer tokens does not answer: tokens of keys that are not known yet are put off", "error", err)
		r.reported, r.failing = now, true
	}
}

// close ends the question under way and waits for its goroutine. Safe twice.
func (r *ring) close() {
	r.mu.Lock()
	r.closed = true
	if r.stop != nil {
		r.stop()
	}
	r.mu.Unlock()
	r.work.Wait()
}

func (q *question) wait(ctx context.Context) (*keys, error) {
	select {
	case <-q.done:
		return q.keys, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
