// Package caller says who asks: what a request was let in with. The listener that let it in puts it
// into the request's context. Where another node has to be asked, it goes along in the form that is
// here (wire.go), and that node judges it anew: it has the policies, too.
package caller

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// ErrNone: nothing was shown.
var ErrNone = errors.New("the request shows nothing to be let in with")

// Caller is who asks, by what was shown: a grant, or a key of a topic. It holds no key and no token.
type Caller struct {
	// Grant is what a policy or a bearer token gives; of a topic's key it is empty.
	Grant auth.Grant
	// Topic is the key of a topic that was shown instead; nil: none was.
	Topic *TopicKey
}

// TopicKey is a key of a topic, shown as it is or by a token that was made with it, for one of the
// topic's subscriptions.
type TopicKey struct {
	Topic, Subscription string // names
	// Key is the digest of the key.
	Key [sha256.Size]byte
	// Expires is when the token does; zero: never.
	Expires time.Time
}

// Digest is a key as it is told to others, who know the key as well.
func Digest(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

type key struct{}

// With gives a context of a request of this caller.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From gives the caller of a request; not ok: nobody called, or nobody said who.
func From(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(key{}).(Caller)
	return c, ok
}
