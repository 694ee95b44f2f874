package admin

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// tokenLife is how long a token is good, and a new one is made when half of it is over:
// so a tail lasts at least half of it before it has to be asked for again.
const tokenLife = time.Hour

// longTokenLife is that of a token for one answer that may take long and cannot be asked for again from
// the middle.
const longTokenLife = 7 * 24 * time.Hour

// signer makes the tokens that requests are let in with, and keeps the newest.
type signer struct {
	resource, policy, key string
	life                  time.Duration // of a token
	// ready is a token that was given as such, and cannot be renewed; empty: none.
	ready string

	mu    sync.Mutex
	token string    // guarded by mu; empty: to be made
	until time.Time // guarded by mu: when to make another
}

// newSigner takes what the configuration says: a connection string, or a policy and its
// key, or nothing, which means the key that every yard on loopback knows.
func newSigner(cfg Config, server *url.URL) (*signer, error) {
	var given auth.ConnectionString
	switch {
	case cfg.ConnectionString != "" && (cfg.Policy != "" || cfg.Key != ""):
		return nil, errors.New("there is both a connection string and a policy or key: give one of them")
	case cfg.ConnectionString != "":
		var err error
		if given, err = auth.ParseConnectionString(cfg.ConnectionString); err != nil {
			return nil, err
		}
	case cfg.Policy == "" && cfg.Key == "":
		given.Policy, given.Key = auth.RootPolicy, auth.DevelopmentKey
	case cfg.Policy == "" || cfg.Key == "":
		return nil, errors.New("a policy and its key go together: one of them is missing")
	default:
		given.Policy, given.Key = cfg.Policy, cfg.Key
	}
	return &signer{
		resource: server.Scheme + "://" + server.Host + "/" + given.Hub,
		policy:   given.Policy, key: given.Key, ready: readyToken(given.Signature), life: tokenLife,
	}, nil
}

// lasting is a signer of tokens that are good for so long.
func (s *signer) lasting(life time.Duration) *signer {
	return &signer{resource: s.resource, policy: s.policy, key: s.key, ready: s.ready, life: life}
}

// readyToken is what an Authorization header takes; some connection strings leave the
// first word out, which their own name says already.
func readyToken(given string) string {
	if given == "" || auth.IsSignature(given) {
		return given
	}
	return "SharedAccessSignature " + strings.TrimSpace(given)
}

// authorization gives the header for a request that is made now.
func (s *signer) authorization(now time.Time) string {
	if s.ready != "" {
		return s.ready
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || !now.Before(s.until) {
		s.token = auth.Sign(s.resource, s.policy, s.key, now.Add(s.life))
		s.until = now.Add(s.life / 2)
	}
	return s.token
}

// renew drops a token that the yard called expired; its clock may be ahead of ours. It
// is false where no other can be made.
func (s *signer) renew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
	return s.ready == ""
}
