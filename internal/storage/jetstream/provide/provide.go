// Package provide has streams of NATS JetStream made that several nodes want at once, for entries and
// bodies; those of logs are made by natsstreams.
package provide

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lookPatience is how long it is waited to hear whether a stream is there, before it is asked for.
const lookPatience = 500 * time.Millisecond

// Stream finds a stream, or makes it, and gives its settings, which are another's if that node was
// faster. It blocks until the servers answer or ctx ends. Its errors are those of the client library,
// and ctx's.
//
// Where another node is making the stream right now, the question whether it is there may get no answer
// at all: the leader of all servers knows of the stream and leaves the answer to the stream's own
// leader, which has not heard of it yet and leaves it to the other. So Stream does not wait for it for
// long. The request for the stream itself is answered to all who make it.
func Stream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	looking, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	there, err := js.Stream(looking, want.Name)
	unanswered := err != nil && looking.Err() != nil && ctx.Err() == nil
	if errors.Is(err, jetstream.ErrStreamNotFound) || unanswered {
		if there, err = js.CreateStream(ctx, want); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			there, err = js.Stream(ctx, want.Name) // with other settings
		}
	}
	if err != nil {
		return want, err
	}
	return there.CachedInfo().Config, nil
}
