package natsstreams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// Make is streams.Storage's. A stream that is there and not as logs need it is an error for a person,
// as are limits of the account or the servers.
func (s *Storage) Make(ctx context.Context, stream string, cfg streams.Config) error {
	err := checkStream(stream)
	if err == nil {
		err = s.makeSoon(ctx, s.streamConfig(stream, cfg))
	}
	if err != nil {
		return fmt.Errorf("make stream %s: %w", stream, err)
	}
	return nil
}

// makeSoon tries again for a while: servers answer when the new stream has a leader, and where the
// first vote fails that takes them longer than any other answer.
func (s *Storage) makeSoon(ctx context.Context, want jetstream.StreamConfig) error {
	for late := time.Now().Add(makePatience); ; {
		err := s.make(ctx, want)
		if !errors.Is(err, streams.ErrUnavailable) || time.Now().After(late) {
			return err
		}
		if sleep.About(ctx, makePause) != nil {
			return err
		}
	}
}

func (s *Storage) make(ctx context.Context, want jetstream.StreamConfig) error {
	have, err := s.info(ctx, want.Name)
	if errors.Is(err, streams.ErrNoStream) {
		err = s.call(ctx, "STREAM.CREATE."+want.Name, want, &have)
		if refusal, is := errors.AsType[*answers.Refusal](err); is && refusal.Code == answers.CodeNameInUse {
			have, err = s.info(ctx, want.Name) // another node was faster, with other settings
		}
	}
	if err != nil {
		return err
	}
	return unfit(want, have.Config)
}

// minDuplicates is the smallest window that servers allow for the recognition of messages by an ID.
// We send none.
const minDuplicates = 100 * time.Millisecond

// streamConfig is how a stream is made: it keeps everything until it is purged, and refuses what it
// has no room for. A maximum age would remove the messages that others are counted from.
func (s *Storage) streamConfig(stream string, cfg streams.Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.names.stream(stream), Subjects: []string{s.names.subjects(stream)},
		Description: "a log of Eventyard: do not write, delete or purge",
		Storage:     jetstream.FileStorage, Replicas: cmp.Or(cfg.Replicas, s.cfg.Replicas),
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		MaxBytes: cmp.Or(cfg.MaxBytes, -1), MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1,
		Duplicates: minDuplicates, AllowDirect: true, DenyDelete: true,
	}
}

// unfit says in what a stream differs from what logs need; how many replicas it has and how large it
// may become is its own matter.
func unfit(want, have jetstream.StreamConfig) error {
	var wrong []string
	for what, is := range map[string]bool{
		"it takes in " + strings.Join(have.Subjects, ", "): len(have.Subjects) != 1 || have.Subjects[0] != want.Subjects[0],
		"it is not kept in files":                          have.Storage != jetstream.FileStorage || have.PersistMode == jetstream.AsyncPersistMode,
		"its retention is not by limits":                   have.Retention != jetstream.LimitsPolicy,
		"it discards old messages":                         have.Discard != jetstream.DiscardNew,
		"it has a maximum age":                             have.MaxAge != 0 || have.AllowMsgTTL,
		"it has a maximum number of messages":              have.MaxMsgs > 0 || have.MaxMsgsPerSubject > 0,
		"it limits the size of messages":                   have.MaxMsgSize > 0,
		"it has no direct reads":                           !have.AllowDirect,
		"messages can be deleted from it":                  !have.DenyDelete || have.AllowRollup,
		"it cannot be purged":                              have.DenyPurge || have.Sealed,
		"it does not acknowledge":                          have.NoAck,
		"it is fed by others":                              have.Mirror != nil || len(have.Sources) > 0 || have.SubjectTransform != nil,
	} {
		if is {
			wrong = append(wrong, what)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s is there and not as a log needs it: %s", have.Name, strings.Join(wrong, "; "))
}

// Delete is streams.Storage's.
func (s *Storage) Delete(ctx context.Context, stream string) error {
	err := checkStream(stream)
	if err == nil {
		err = s.call(ctx, "STREAM.DELETE."+s.names.stream(stream), nil, nil)
	}
	if err != nil && !errors.Is(err, streams.ErrNoStream) {
		return fmt.Errorf("delete stream %s: %w", stream, err)
	}
	return nil
}

// Names is streams.Storage's.
func (s *Storage) Names(ctx context.Context) (found []string, err error) {
	for offset := 0; ; {
		var page struct {
			Total   int      `json:"total"`
			Streams []string `json:"streams"`
		}
		err := s.ask(ctx, "STREAM.NAMES", map[string]any{"offset": offset, "subject": s.names.all()}, &page)
		if err != nil {
			return nil, fmt.Errorf("list streams: %w", err)
		}
		for _, name := range page.Streams {
			if stream, ours := s.names.ours(name); ours {
				found = append(found, stream)
			}
		}
		if offset += len(page.Streams); offset >= page.Total || len(page.Streams) == 0 {
			return found, nil
		}
	}
}

// Last is streams.Storage's. Direct gets are faster, and answered by any replica.
func (s *Storage) Last(ctx context.Context, stream, subject string) (streams.Message, error) {
	m, err := s.last(ctx, stream, subject)
	if err != nil {
		return streams.Message{}, fmt.Errorf("last message of stream %s: %w", stream, err)
	}
	return m, nil
}

func (s *Storage) last(ctx context.Context, stream, subject string) (streams.Message, error) {
	if err := checkStream(stream); err != nil {
		return streams.Message{}, err
	}
	if subject == "" {
		subject = "*"
	} else if err := checkSubject(subject); err != nil {
		return streams.Message{}, err
	}
	prefix := s.names.prefix(stream)
	var got struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := s.ask(ctx, "STREAM.MSG.GET."+s.names.stream(stream), map[string]string{"last_by_subj": prefix + subject}, &got)
	if err != nil {
		return streams.Message{}, err
	}
	own, is := strings.CutPrefix(got.Message.Subject, prefix)
	if !is {
		return streams.Message{}, fmt.Errorf("the stream has a message under the subject %q", got.Message.Subject)
	}
	return streams.Message{Seq: streams.Seq(got.Message.Seq), Subject: own, Data: got.Message.Data}, nil
}

// State is streams.Storage's.
func (s *Storage) State(ctx context.Context, stream string) (streams.State, error) {
	err := checkStream(stream)
	var have jetstream.StreamInfo
	if err == nil {
		have, err = s.info(ctx, s.names.stream(stream))
	}
	if err != nil {
		return streams.State{}, fmt.Errorf("state of stream %s: %w", stream, err)
	}
	st := have.State
	state := streams.State{
		First: streams.Seq(st.FirstSeq), Last: streams.Seq(st.LastSeq), Bytes: int64(st.Bytes), MaxBytes: max(have.Config.MaxBytes, 0),
		Messages: st.Msgs, Absent: absent(have.Cluster),
	}
	if st.Msgs == 0 {
		state.First = state.Last + 1 // servers say zero of a stream that never had a message
	}
	return state, nil
}

// absent counts the servers of a stream that its leader does not see, or that do not have all of it.
func absent(c *jetstream.ClusterInfo) (n int) {
	if c == nil { // there is one server
		return 0
	}
	for _, r := range c.Replicas {
		if r.Offline || !r.Current {
			n++
		}
	}
	return n
}

func (s *Storage) info(ctx context.Context, name string) (have jetstream.StreamInfo, err error) {
	return have, s.ask(ctx, "STREAM.INFO."+name, nil, &have)
}

// Purge is streams.Storage's. A server that is asked to purge beyond the end moves the end there, so
// it is not.
func (s *Storage) Purge(ctx context.Context, stream, subject string, below streams.Seq) error {
	state, err := s.State(ctx, stream)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	below = min(below, state.Last+1)
	if below <= state.First {
		return nil
	}
	ask := map[string]any{"seq": below}
	if subject != "" {
		if err := checkSubject(subject); err != nil {
			return fmt.Errorf("purge stream %s: %w", stream, err)
		}
		ask["filter"] = s.names.prefix(stream) + subject
	}
	if err := s.call(ctx, "STREAM.PURGE."+s.names.stream(stream), ask, nil); err != nil {
		return fmt.Errorf("purge stream %s below %d: %w", stream, below, err)
	}
	return nil
}

// askWaits is how long a question waits for its answer before it is asked again. The last one has
// callPatience, so that servers that are slow are heard too.
var askWaits = []time.Duration{300 * time.Millisecond, time.Second}

// errUnanswered is why a question is asked again.
var errUnanswered = fmt.Errorf("%w yet", streams.ErrUnavailable)

// ask is call for questions, which change nothing and so may be asked again. Some get no answer at all:
// servers leave it to the leader of a stream, and that server may not know yet that it leads, or, where
// another node is making the stream right now, that there is one.
func (s *Storage) ask(caller context.Context, subject string, ask, answer any) error {
	for _, wait := range askWaits {
		ctx, cancel := context.WithTimeoutCause(caller, wait, errUnanswered)
		err := s.call(ctx, subject, ask, answer)
		cancel()
		if !errors.Is(err, errUnanswered) {
			return err
		}
	}
	return s.call(caller, subject, ask, answer)
}

// call asks JetStream for something. Its errors are those of the contract; others are for a person,
// and *answers.Refusal if a server gave them.
func (s *Storage) call(caller context.Context, subject string, ask, answer any) error {
	if caller.Err() != nil {
		return context.Cause(caller)
	}
	ctx, cancel := s.bounded(caller)
	defer cancel()
	var data []byte
	if ask != nil {
		var err error
		if data, err = json.Marshal(ask); err != nil {
			return err
		}
	}
	switch {
	case s.life.Err() != nil:
		return streams.ErrClosed
	case !s.control.IsConnected() && !s.control.IsClosed():
		return errUnconnected
	}
	got, err := s.control.RequestWithContext(ctx, "$JS.API."+subject, data)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return plain(err)
	}
	return readAnswer(got.Data, answer)
}

// readAnswer reads what JetStream answers to a call; answer may be nil.
func readAnswer(data []byte, answer any) error {
	var failed struct {
		Error *answers.Refusal `json:"error"`
	}
	err := json.Unmarshal(data, &failed)
	if err == nil && failed.Error == nil && answer != nil {
		err = json.Unmarshal(data, answer)
	}
	if err != nil {
		return fmt.Errorf("%w: an answer cannot be read: %w", streams.ErrUnavailable, err)
	}
	switch r := failed.Error; {
	case r == nil:
		return nil
	case r.Code == answers.CodeNoStream:
		return streams.ErrNoStream
	case r.Code == answers.CodeNoMessage:
		return streams.ErrNoMessage
	case r.Full():
		return fmt.Errorf("%w: %w", streams.ErrNoSpace, r)
	case r.Passing():
		return fmt.Errorf("%w: %w", streams.ErrUnavailable, r)
	default:
		return r
	}
}
