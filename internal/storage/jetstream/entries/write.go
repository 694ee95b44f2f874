package entries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// CompareAndSet stores a value if the key's revision is the expected one.
func (s *Store) CompareAndSet(ctx context.Context, key string, expected meta.Revision, v []byte) (meta.Revision, error) {
	if err := errors.Join(meta.CheckKey(key), meta.CheckValue(v)); err != nil {
		return 0, fmt.Errorf("set: %w", err)
	}
	revision, err := s.change(ctx, message{kind: value, key: key, value: bytes.Clone(v)}, expected)
	if err != nil {
		return 0, fmt.Errorf("set %q at revision %d: %w", key, expected, err)
	}
	return revision, nil
}

// Delete removes a key if its revision is the expected one.
func (s *Store) Delete(ctx context.Context, key string, expected meta.Revision) error {
	if err := meta.CheckKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if expected == 0 {
		return fmt.Errorf("delete %q: %w: the expected revision is zero", key, meta.ErrInvalid)
	}
	if _, err := s.change(ctx, message{kind: deletion, key: key}, expected); err != nil {
		return fmt.Errorf("delete %q at revision %d: %w", key, expected, err)
	}
	return nil
}

// maxTries bounds how often a key is created in vain because its deletion was not the newest.
const maxTries = 16

// change makes a change, on condition that the newest message of the key is the one that the
// revision stands for.
func (s *Store) change(caller context.Context, m message, expected meta.Revision) (meta.Revision, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	if err := caller.Err(); err != nil {
		return 0, err
	}
	ctx, cancel := s.bounded(caller)
	defer cancel()
	b := s.buckets[s.layout.bucketOf(m.key)]
	m.nonce = rand.Uint64()
	sight := s.replica.look(m.key, expected == 0)
	defer s.replica.forsake(sight)
	for range maxTries {
		it, _ := s.replica.state(m.key)
		var possible bool
		if m.before, possible = expectation(it, expected); !possible {
			return 0, s.conflict(ctx, b, it, expected)
		}
		encoded, begun := m.encode(), time.Now()
		seq, err := s.send(ctx, s.layout.subject(b.name, m.key), encoded, s.condition(m), func(at uint64) bool {
			return at < max(it.seq, m.before) && (at > 0 || it.kind == value) // there is none where a deletion was forgotten
		})
		var wrong *wrongSequence
		switch {
		case err == nil:
			m.seq = seq
			b.acknowledged(m)
			s.announce(b, seq, encoded)
			return m.revision(), nil
		case errors.Is(err, errDoubt) && caller.Err() != nil:
			return 0, caller.Err()
		case errors.Is(err, errDoubt):
			if revision, err := s.resolve(caller, b, m, sight, err); !errors.Is(err, errStoredAgain) {
				return revision, err
			}
			continue
		case !errors.As(err, &wrong):
			return 0, plainly(caller, err)
		}
		if err := s.learn(ctx, b, m, wrong.at); err != nil {
			return 0, plainly(caller, err)
		}
		if wrong.at != 0 { // also at the first try: who refused it need not be the only leader that it was handed to
			revision, err := fate(s.replica, b, m, sight)
			if wrong.behind && errors.Is(err, meta.ErrUncertain) {
				if revision, err = s.resolve(caller, b, m, sight, wrong); err != nil && !errors.Is(err, errStoredAgain) {
					return 0, err
				}
			}
			again, _ := s.replica.state(m.key)
			there := expected == 0 && it.kind == value // and its deletion is not forgotten as soon as that
			// who has not heard of a key that came and went meets its deletion, of what may be his own if there are two leaders
			went := expected == 0 && again.kind == deletion && time.Since(begun) < soonestLeader
			asItWas := expected != 0 && again.kind == value && again.revision() == expected // it was stored again
			if errors.Is(err, meta.ErrUncertain) && !there && !went && !asItWas {
				revision, err = hear(ctx, s.replica, b, m, sight)
			}
			switch {
			case err == nil:
				return revision, nil
			case errors.Is(err, errStoredAgain), asItWas:
				continue
			case errors.Is(err, meta.ErrUncertain) && !there && !went:
				return 0, fmt.Errorf("%w: it was refused, and others have changed the key since: %v", err, wrong)
			}
		}
		if it, _ = s.replica.state(m.key); expected != 0 || it.kind == value {
			return 0, meta.ErrConflict
		}
	}
	return 0, fmt.Errorf("%w: the key keeps changing", meta.ErrConflict)
}

// soonestLeader is less than it takes until a leader that was frozen is replaced, 4 to 9 seconds: what was refused within it
// was handed to one leader, unless another was frozen already when it began. That is not told apart: where the other one refuses
// it by what it had, and somebody deletes meanwhile what was made, it is made once more behind that.
const soonestLeader = 2 * time.Second

// expectation gives the sequence that the newest message of a key must have for the change to be
// made, zero for none; false: it is known to be another. The item is what we know of the key, which
// may be old.
func expectation(it item, expected meta.Revision) (before uint64, possible bool) {
	seq := uint64(expected / 2)
	switch {
	case expected == 0 && it.kind == deletion && !it.forgotten:
		return it.seq, true
	case expected == 0:
		return 0, true
	case expected%2 == 1, it.revision() > expected:
		return 0, false
	case it.revision() == expected: // it may have been stored again since
		return it.seq, true
	}
	return seq, true
}

// conflict is for an expectation that cannot hold. Reads must be as new as the revision that the
// caller knows of, from wherever.
func (s *Store) conflict(ctx context.Context, b *bucket, it item, expected meta.Revision) error {
	if it.revision() < expected {
		if err := s.fresh(ctx, []string{b.name}); err != nil {
			return err
		}
	}
	return meta.ErrConflict
}

// learn waits until reads are as new as what a change has met. That it met nothing means that the
// deletion it expected has been forgotten.
func (s *Store) learn(ctx context.Context, b *bucket, m message, at uint64) error {
	if at == 0 {
		s.replica.forget(m.key, m.before)
		return nil
	}
	return b.wait(ctx, at)
}

// resolve finds out what became of a change of which nothing was heard: behind a barrier the newest
// state of the key is the change, or something that took its place, or neither.
func (s *Store) resolve(caller context.Context, b *bucket, m message, seen *sight, doubt error) (meta.Revision, error) {
	ctx, cancel := s.bounded(caller)
	defer cancel()
	seq, err := s.barrier(ctx, b)
	if err == nil {
		err = b.wait(ctx, seq)
	}
	if err != nil {
		if caller.Err() != nil {
			return 0, caller.Err()
		}
		return 0, fmt.Errorf("%w: %v, %v", meta.ErrUncertain, doubt, err)
	}
	revision, err := fate(s.replica, b, m, seen)
	if errors.Is(err, meta.ErrUncertain) {
		err = fmt.Errorf("%w: %v", err, doubt)
	}
	return revision, err
}

// fate tells by the state of its key, and by what was seen of it meanwhile, what became of a change that may have been
// made: meta.ErrUncertain where it may have been, and others since.
func fate(r *replica, b *bucket, m message, seen *sight) (meta.Revision, error) {
	if it, _ := r.state(m.key); it.nonce == m.nonce && it.seq > m.before {
		b.acknowledged(it.message)
		return it.revision(), nil
	}
	switch by, known := r.successor(seen, m.before); {
	case !known:
		return 0, meta.ErrUncertain
	case by.nonce == m.nonce: // others have replaced it since
		return by.revision(), nil
	case by.was != 0, seen.creates && by.kind == deletion: // of values, and of deletions
		return 0, errStoredAgain
	}
	return 0, meta.ErrConflict // another replaced what we expected, so ours did not, and never will
}

// hearTime is how long is waited for an announcement that others have overtaken. One is there within milliseconds,
// unless it is lost.
const hearTime = 2 * time.Second

// hear is fate that waits for what is announced. The stream has only the newest of a key, which comes from it before the
// announcements of those that it has replaced: where many change a key, what replaced the expected message is often
// heard of last.
func hear(ctx context.Context, r *replica, b *bucket, m message, seen *sight) (meta.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, hearTime)
	defer cancel()
	for {
		revision, err := fate(r, b, m, seen)
		if !errors.Is(err, meta.ErrUncertain) {
			return revision, err
		}
		select {
		case <-seen.more:
		case <-ctx.Done():
			return 0, err
		}
	}
}

// errStoredAgain: what a change expected was stored again meanwhile, as it was; see tidy. The change was not made,
// and never will be on that condition.
var errStoredAgain = errors.New("the entry was stored again meanwhile")

// headerBytes is more than the headers of a message measure, ours and those of an answer.
const headerBytes = 4 << 10

// Headers of a write.
const (
	expectHeader = "Nats-Expected-Last-Subject-Sequence"
	lifeHeader   = "Nats-TTL"
)

func (s *Store) condition(m message) nats.Header {
	h := nats.Header{expectHeader: {strconv.FormatUint(m.before, 10)}}
	if m.kind == deletion {
		h.Set(lifeHeader, s.cfg.deletionLife.String())
	}
	return h
}

// What may become of one request to store a message.
var (
	// errBusy: another write of the key is in process, which may fail or succeed.
	errBusy = errors.New("another write of the key is in process")
	// errNobody: there is no connection, or no leader; nothing was handed over.
	errNobody = errors.New("nobody takes it")
	// errDoubt: it was handed over, and nothing was heard.
	errDoubt = errors.New("no answer")
)

// wrongSequence: the newest message of the key is another than expected; zero: there is none.
type wrongSequence struct {
	at uint64
	// behind: an earlier try was refused by a leader that was behind.
	behind bool
}

func (e *wrongSequence) Error() string { return fmt.Sprintf("the key is at sequence %d", e.at) }

// answerTime is how long an answer to a write is waited for.
const answerTime = 5 * time.Second

// send stores a message, if its headers allow, and gives its sequence. It tries again while that is
// safe, and while a leader names a sequence that the key is known to have passed: one that was frozen or cut
// off judges by what it has, and is no leader any more. Errors: *wrongSequence, errDoubt, meta's, and the
// cause of ctx's end.
//
// A refusal is one leader's word. A message is handed to the leader that was frozen and to the one that has
// taken its place, and the answer that comes first is heard: where the first refuses it, the second may have
// stored it, and what comes of a later try may come of that.
func (s *Store) send(ctx context.Context, subject string, encoded []byte, header nats.Header, passed func(at uint64) bool) (uint64, error) {
	behind := false
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		seq, err := s.take(ctx, subject, encoded, header)
		wrong, is := errors.AsType[*wrongSequence](err)
		switch {
		case is && passed(wrong.at):
			behind = true
		case errors.Is(err, errBusy), errors.Is(err, errNobody):
		case is:
			return 0, &wrongSequence{at: wrong.at, behind: behind}
		case err != nil && behind:
			return 0, fmt.Errorf("%w: %v", errDoubt, err)
		default:
			return seq, err
		}
		if ended := sleep.About(ctx, pause); ended != nil {
			if behind {
				return 0, fmt.Errorf("%w: %v", errDoubt, ended)
			}
			return 0, ended // nothing was handed over by the last try, nor stored by the others
		}
	}
}

func (s *Store) request(ctx context.Context, subject string, encoded []byte, header nats.Header) (uint64, error) {
	if !s.conn.IsConnected() { // what is sent now would be sent later, when nobody waits for it
		return 0, errNobody
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := s.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: header, Data: encoded})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return 0, errNobody
	case err != nil:
		return 0, fmt.Errorf("%w: %v", errDoubt, err)
	}
	return judge(answer.Data)
}

// judge reads the answer to a write.
func judge(answer []byte) (uint64, error) {
	seq, err := answers.ReadAck(answer)
	if err == nil {
		return seq, nil
	}
	refusal, is := errors.AsType[*answers.Refusal](err)
	switch {
	case !is, !refusal.Certain():
		return 0, fmt.Errorf("%w that says: %v", errDoubt, err)
	case refusal.Code == answers.CodeBusy:
		return 0, errBusy
	case refusal.Code == answers.CodeWrongSequence:
		_, number, _ := strings.Cut(refusal.Description, ": ")
		at, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return 0, errBusy // the next try names it
		}
		return 0, &wrongSequence{at: at}
	case refusal.Full():
		return 0, fmt.Errorf("%w: %w", meta.ErrNoSpace, refusal)
	}
	return 0, fmt.Errorf("%w: %w", meta.ErrUnavailable, refusal)
}

// announce tells the other nodes. What they miss they find in the stream.
func (s *Store) announce(b *bucket, seq uint64, encoded []byte) {
	_ = s.conn.Publish(s.layout.announcements(b.name), announce(seq, encoded))
}
