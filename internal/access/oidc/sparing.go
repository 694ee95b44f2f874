package oidc

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxAnswerBytes is the most that is read of an answer of the issuer.
const maxAnswerBytes = 1 << 20

var (
	// errFresh: what was asked for was answered a moment ago.
	errFresh = errors.New("the issuer answered a moment ago")
	// errPausing: what was asked for was not answered a moment ago.
	errPausing = errors.New("the issuer did not answer a moment ago")
)

func tooSoon(err error) bool { return errors.Is(err, errFresh) || errors.Is(err, errPausing) }

// maxAddresses is how many are remembered: two are asked, and where those send us on to.
const maxAddresses = 16

// sparing is a transport that asks for each address only so often.
type sparing struct {
	next  http.RoundTripper
	pause time.Duration

	mu    sync.Mutex
	asked map[string]asked // by address; guarded by mu
}

type asked struct {
	at       time.Time
	answered bool
}

func newSparing(next http.RoundTripper, pause time.Duration) *sparing {
	if next == nil {
		// Questions are rare: no connection is kept for the next one.
		next = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	}
	return &sparing{next: next, pause: pause, asked: make(map[string]asked)}
}

func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	if err := s.mayAsk(address); err != nil {
		return nil, err
	}
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		s.note(address, asked{at: time.Now(), answered: true})
	}
	response.Body = limited{io.LimitReader(response.Body, maxAnswerBytes), response.Body}
	return response, nil
}

// mayAsk counts a question as not answered until it is.
func (s *sparing) mayAsk(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) > maxAddresses {
		clear(s.asked)
	}
	last := s.asked[address]
	if last.at.IsZero() || time.Since(last.at) >= s.pause {
		s.asked[address] = asked{at: time.Now()}
		return nil
	}
	if last.answered {
		return errFresh
	}
	return errPausing
}

func (s *sparing) note(address string, a asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[address] = a
}

// limited is a body of which only so much is read.
type limited struct {
	io.Reader
	io.Closer
}
