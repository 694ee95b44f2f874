package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// bank is a token server and an endpoint that takes the tokens it has not revoked.
type bank struct {
	life    int // expires_in; 0: not said
	pause   time.Duration
	broken  atomic.Bool
	issued  atomic.Int32
	revoked atomic.Int32 // all tokens up to this number
	asked   atomic.Pointer[http.Request]
	calls   atomic.Int32 // at the endpoint
}

func (b *bank) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w.Result(), nil
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		b.token(w, r)
		return
	}
	b.calls.Add(1)
	var n int32
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token-%d", &n); err != nil || n <= b.revoked.Load() {
		w.WriteHeader(401)
	}
}

func (b *bank) token(w http.ResponseWriter, r *http.Request) {
	n := b.issued.Add(1)
	r.ParseForm()
	b.asked.Store(r)
	time.Sleep(b.pause)
	if b.broken.Load() {
		w.WriteHeader(500)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer"`, n)
	if b.life > 0 {
		fmt.Fprintf(w, `,"expires_in":%d`, b.life)
	}
	io.WriteString(w, "}")
}

// atBank is a request that needs a token.
func atBank(url string) Request {
	return Request{Method: "POST", Body: []byte("x"), Endpoint: Endpoint{URL: url + "/hook", OAuth: &OAuth{
		TokenURL: url + "/token", ClientID: "me", Secret: "s3cret", Scope: "a b", Audience: "them",
	}}}
}

func TestATokenIsGotOnceAndUsedUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{life: 3600}
		c := newClient(t, Config{Transport: b})
		do := func() {
			t.Helper()
			if a := c.Do(t.Context(), atBank("http://bank.example")); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
		}
		do()
		time.Sleep(58 * time.Minute)
		do()
		testkit.Equal(t, b.issued.Load(), 1, "tokens after 58 minutes")
		time.Sleep(time.Minute + time.Second)
		do()
		testkit.Equal(t, b.issued.Load(), 2, "tokens shortly before the first expires")
		form := b.asked.Load()
		user, secret, _ := form.BasicAuth()
		if form.Form.Get("grant_type") != "client_credentials" || form.Form.Get("scope") != "a b" || form.Form.Get("audience") != "them" || user != "me" || secret != "s3cret" {
			t.Errorf("asked for with %v, %s, %s", form.Form, user, secret)
		}
	})
}

func TestOneCallForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{pause: 5 * time.Second}
		c := newClient(t, Config{Transport: b})
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				ctx := t.Context()
				if i == 0 { // who came first may go first
					short, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					ctx = short
				} else {
					time.Sleep(time.Millisecond)
				}
				r := atBank("http://bank.example")
				r.Endpoint.URL += fmt.Sprint(i)
				a := c.Do(ctx, r)
				if i == 0 && a.Outcome != retry.Canceled || i > 0 && a.Status != 200 {
					t.Errorf("request %d: %+v", i, a)
				}
			})
		}
		all.Wait()
		testkit.Equal(t, b.issued.Load(), 1, "the token server was asked")
	})
}

// 401 is not retried (G4), so a token that was good and is no more must not cost an event.
func TestARefusedTokenIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{life: 3600}
		c := newClient(t, Config{Transport: b})
		for _, late := range []time.Duration{0, time.Minute} {
			for range 2 {
				r := atBank("http://bank.example")
				r.Late = late
				if a := c.Do(t.Context(), r); a.Status != 200 {
					t.Fatalf("%+v", a)
				}
				b.revoked.Store(b.issued.Load())
				time.Sleep(tokenPause)
			}
		}
		testkit.Equal(t, b.issued.Load(), 4, "tokens")
	})
}

// An endpoint that refuses every token does not have the token server asked for each event.
func TestRefusalsDoNotFloodTheTokenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{life: 3600}
		b.revoked.Store(1000)
		c := newClient(t, Config{Transport: b})
		for range 100 {
			if a := c.Do(t.Context(), atBank("http://bank.example")); a.Status != 401 {
				t.Fatalf("%+v", a)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := b.issued.Load(); n < 5 || n > 12 {
			t.Errorf("%d tokens in ten seconds", n)
		}
	})
}

func TestAnEndpointThatRefusesFreshTokensIsBelieved(t *testing.T) {
	b := &bank{life: 3600}
	b.revoked.Store(1000)
	c := newClient(t, Config{Transport: b})
	for i := range 3 {
		a := c.Do(t.Context(), atBank("http://bank.example"))
		if a.Status != 401 || a.Outcome != retry.Unauthorized || a.Err != nil {
			t.Errorf("%+v", a)
		}
		if n := b.calls.Load(); int(n) != i+1 {
			t.Errorf("%d calls after %d requests", n, i+1)
		}
	}
}

// Without a token nothing is sent, and the endpoint is not to blame.
func TestATokenServerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		b.broken.Store(true)
		c := newClient(t, Config{Transport: b})
		for range 5 {
			a := c.Do(t.Context(), atBank("http://bank.example"))
			if a.Outcome != retry.GenericError || a.Status != 0 || a.Err == nil || !strings.Contains(a.Err.Error(), "check its token URL") || strings.Contains(a.Err.Error(), "s3cret") {
				t.Errorf("%s: %v", a.Outcome, a.Err)
			}
		}
		testkit.Equal(t, b.calls.Load(), 0, "requests went out without a token")
		asked := b.issued.Load()
		if asked > 2 { // as header and in the body, as the library does
			t.Errorf("the token server was asked %d times in a row", asked)
		}
		b.broken.Store(false)
		time.Sleep(2 * tokenPause)
		if a := c.Do(t.Context(), atBank("http://bank.example")); a.Status != 200 {
			t.Errorf("after it is well again: %s: %v", a.Outcome, a.Err)
		}
	})
}

func TestATokenServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Hour}})
		began := time.Now()
		a := c.Do(t.Context(), atBank("http://bank.example"))
		if a.Outcome != retry.GenericError || time.Since(began) > 2*tokenTime {
			t.Errorf("after %v: %s: %v", time.Since(began), a.Outcome, a.Err)
		}
		r := atBank("http://bank.example")
		r.Timeout = time.Second
		r.Endpoint.OAuth.Scope = "other"
		if a := c.Do(t.Context(), r); a.Outcome != retry.TimedOut {
			t.Errorf("%s: %v", a.Outcome, a.Err)
		}
	})
}

// The token URL is the stranger's, too.
func TestTheTokenServerIsGuarded(t *testing.T) {
	town := newTown(t)
	c := newClient(t, Config{Allow: onlyIt})
	r := atBank("http://127.0.0.2:" + town.port)
	if a := c.Do(t.Context(), r); a.Outcome != retry.GenericError { // town gives no tokens
		t.Errorf("%s: %v", a.Outcome, a.Err)
	}
	town.handler = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:"+town.port+"/", http.StatusTemporaryRedirect)
	}
	r.Endpoint.OAuth.Scope = "redirect"
	if a := c.Do(t.Context(), r); a.Outcome != retry.GenericError {
		t.Errorf("%s: %v", a.Outcome, a.Err)
	}
	r.Endpoint.OAuth.TokenURL = "http://127.0.0.1:" + town.port
	if a := c.Do(t.Context(), r); !errors.Is(a.Err, ErrForbidden) {
		t.Errorf("%s: %v", a.Outcome, a.Err)
	}
	if town.breakIn.Load() > 0 {
		t.Error("a request reached our own network")
	}
}

// A token server of the same house has a certificate of the same house.
func TestTheTokenServerMayHaveTheEndpointsAuthority(t *testing.T) {
	ours := newAuthority(t)
	b := &bank{life: 60}
	s := httptest.NewUnstartedServer(b)
	s.TLS = ours.server(t)
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	c := newClient(t, Config{Loopback: true})
	r := atBank(s.URL)
	r.Endpoint.CA = ours.text
	if a := c.Do(t.Context(), r); a.Status != 200 {
		t.Errorf("%s: %v", a.Outcome, a.Err)
	}
	r.Endpoint.CA, r.Endpoint.SkipVerify = "", true
	if a := c.Do(t.Context(), r); a.Outcome != retry.GenericError {
		t.Errorf("the secret went to a server that nobody knows: %+v", a)
	}
}
