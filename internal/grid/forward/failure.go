package forward

import (
	"errors"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// names are those of the errors that callers branch on, on the way between nodes. They never change.
var names = map[string]error{
	"elsewhere":              shards.ErrElsewhere,
	"not-delivered":          delivery.ErrNotFound,
	"not-pull":               delivery.ErrNotPull,
	"lock-lost":              delivery.ErrLockLost,
	"token":                  delivery.ErrToken,
	"letter-not-found":       deadletter.ErrNotFound,
	"invalid":                topics.ErrInvalid,
	"topic-not-found":        topics.ErrTopicNotFound,
	"subscription-not-found": topics.ErrNotFound,
	"no-space":               eventlog.ErrNoSpace,
	"unavailable":            eventlog.ErrUnavailable,
	"meta-no-space":          meta.ErrNoSpace,
	"meta-unavailable":       meta.ErrUnavailable,

	// Why a caller is not let in.
	"nothing-shown":       caller.ErrNone,
	"malformed":           auth.ErrMalformed,
	"unsupported":         auth.ErrUnsupported,
	"revoked":             auth.ErrRevoked,
	"expired":             auth.ErrExpired,
	"audience":            auth.ErrAudience,
	"too-few-rights":      auth.ErrTooFewRights,
	"topic-key":           topickey.ErrSignature,
	"topic-token-expired": topickey.ErrExpired,
}

// failure is an error as it is sent: its text, and which of the known ones it is; empty: none.
type failure struct {
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	for name, known := range names {
		if errors.Is(err, known) {
			f.Name = name
		}
	}
	return f
}

// err is the error at the one who asked.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return &remoteError{f.Text, names[f.Name]}
}

// remoteError has the text of another node's error, and is what that was.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }
