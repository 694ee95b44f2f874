package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sign makes a signer for a server.
func sign(t *testing.T, cfg Config, server string) *signer {
	t.Helper()
	base, err := url.Parse(server)
	testkit.Must(t, err)
	s, err := newSigner(cfg, base)
	testkit.Must(t, err)
	return s
}

func TestTokensAreForTheServer(t *testing.T) {
	const prefix = "Endpoint=sb://other:5672/;SharedAccessKeyName=p;SharedAccessKey=k+/=;"
	for name, test := range map[string]struct {
		cfg                   Config
		server                string
		resource, policy, key string
	}{
		"the key of a yard on loopback": {Config{}, "http://127.0.0.1:8080", "http://127.0.0.1:8080/", auth.RootPolicy, auth.DevelopmentKey},
		"a policy and key":              {Config{Policy: "p", Key: "k"}, "https://yard.example", "https://yard.example/", "p", "k"},
		"a connection string":           {Config{ConnectionString: prefix}, "http://yard:1", "http://yard:1/", "p", "k+/="},
		"one for a hub":                 {Config{ConnectionString: prefix + "EntityPath=shop/orders"}, "http://yard:1", "http://yard:1/shop/orders", "p", "k+/="},
		"the path of a proxy is no hub": {Config{Policy: "p", Key: "k"}, "https://proxy/yard", "https://proxy/", "p", "k"},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			got, err := auth.ParseSignature(sign(t, test.cfg, test.server).authorization(now))
			testkit.Must(t, err)
			if got.Resource != test.resource || got.Policy != test.policy || !got.SignedBy(test.key) || !got.Expires.Equal(now.Add(tokenLife)) {
				t.Errorf("the token is %+v", got)
			}
		})
	}
}

func TestTokensAreKeptUntilHalfOfTheirLifeIsOver(t *testing.T) {
	s, now := sign(t, Config{}, "http://yard"), time.Unix(1e9, 0)
	first := s.authorization(now)
	testkit.Equal(t, s.authorization(now.Add(tokenLife/2-time.Second)), first,
		"another token was made too early")
	if late := s.authorization(now.Add(tokenLife / 2)); late == first {
		t.Error("the old token was kept for too long")
	}
	if !s.renew() || s.authorization(now.Add(time.Second)) == first {
		t.Error("a token that was called expired is kept")
	}
}

func TestAReadyTokenIsShownAsItIs(t *testing.T) {
	for _, given := range []string{"SharedAccessSignature sr=a&sig=b&se=1&skn=p", "sr=a&sig=b&se=1&skn=p"} {
		s := sign(t, Config{ConnectionString: "Endpoint=sb://x/;SharedAccessSignature=" + given}, "http://yard")
		if got := s.authorization(time.Now()); got != "SharedAccessSignature sr=a&sig=b&se=1&skn=p" || s.renew() {
			t.Errorf("%q is shown as %q", given, got)
		}
	}
}

func TestCredentialsThatAreNone(t *testing.T) {
	const whole = "Endpoint=sb://x/;SharedAccessKeyName=p;SharedAccessKey=secret"
	for name, cfg := range map[string]Config{
		"a policy without its key":         {Policy: "p"},
		"a key without its policy":         {Key: "secret"},
		"half a connection string":         {ConnectionString: "Endpoint=sb://x/;SharedAccessKey=secret"},
		"both":                             {ConnectionString: whole, Policy: "p", Key: "secret"},
		"a connection string and a key":    {ConnectionString: whole, Key: "secret"},
		"something else than a string":     {ConnectionString: "http://x"},
		"a token beside a key in a string": {ConnectionString: whole + ";SharedAccessSignature=sr=secret"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// expired refuses a request as one whose token is over.
func expired(w http.ResponseWriter) {
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprint(w, `{"type":"urn:eventyard:problem:expired-token","title":"T","detail":"D","next":"compare the clocks"}`)
}

// A yard whose clock is ahead calls a token expired that is not; another one is made, once.
func TestAnExpiredTokenIsReplacedOnce(t *testing.T) {
	for refusals, ok := range map[int32]bool{0: true, 1: true, 2: false} {
		var asked atomic.Int32
		client := dial(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) <= refusals {
				expired(w)
				return
			}
			fmt.Fprint(w, "{}")
		})
		_, err := client.Hubs(t.Context())
		var p *Problem
		if ok != (err == nil) || err != nil && (!errors.As(err, &p) || p.Status != 401 || p.Next != "compare the clocks") {
			t.Errorf("after %d refusals the error is %v", refusals, err)
		}
		testkit.Equal(t, asked.Load(), min(refusals+1, 2), "with %d refusals it asked", refusals)
	}
}

// H4: a reading that lasts longer than its token goes on with another.
func TestReadingGoesOnWhenTheTokenExpires(t *testing.T) {
	var asked atomic.Int32
	client := dial(t, lists(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			fmt.Fprintln(w, `{"partition":"0","sequence":0}`)
			fmt.Fprintln(w, `{"problem":{"type":"urn:eventyard:problem:expired-token","title":"T","detail":"D","status":401}}`)
			cutOff(w)
		}
		testkit.Equal(t, r.URL.Query().Get("from"), "1", "it went on from")
		fmt.Fprintln(w, `{"partition":"0","sequence":1}`)
	}))
	got, err := collect(client.Read(t.Context(), Query{Hub: "h"}, nil))
	if err != nil || len(got) != 2 {
		t.Errorf("got %q and error %v", got, err)
	}
}

// A backup may take longer than a token usually lasts, and cannot be asked for again from its middle.
func TestBackupsHaveALongToken(t *testing.T) {
	s, now := sign(t, Config{}, "http://yard"), time.Unix(1e9, 0)
	long, err := auth.ParseSignature(s.lasting(longTokenLife).authorization(now))
	testkit.Must(t, err)
	testkit.Equal(t, long.Expires.Sub(now), longTokenLife, "the life of its token")
	given := sign(t, Config{ConnectionString: "Endpoint=sb://yard/;SharedAccessSignature=SharedAccessSignature sr=a&sig=b&se=1&skn=c"}, "http://yard")
	testkit.Equal(t, given.lasting(longTokenLife).authorization(now), given.authorization(now), "a token that was given")
}
