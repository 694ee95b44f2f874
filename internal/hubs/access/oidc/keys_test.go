package oidc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// bubble runs a test with an issuer of one key, whose token was good once.
func bubble(t *testing.T, test func(t *testing.T, i *issuer, v *Verifier, key signingKey, check func(what string, key signingKey, want error))) {
	key := newKey(t, "known")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(key)
		v := patient(t, i)
		check := func(what string, key signingKey, want error) {
			t.Helper()
			testkit.ErrorIs(t, testkit.Err(v.Verify(t.Context(), key.sign(t, i.URL, nil))), want, "%s", what)
		}
		check("the first time", key, nil)
		test(t, i, v, key, check)
	})
}

// Known keys are looked at again after a while, behind the back of who asks; one that
// the issuer has taken back is good no more then.
func TestKeysTakenBack(t *testing.T) {
	fresh := newKey(t, "fresh")
	bubble(t, func(t *testing.T, i *issuer, _ *Verifier, old signingKey, check func(string, signingKey, error)) {
		i.show(fresh)
		time.Sleep(maxAge - 1)
		check("while the keys are young", old, nil)
		testkit.Equal(t, i.questions("/keys"), 1, "asked times")
		time.Sleep(time.Nanosecond)
		check("when they are old, from what is known", old, nil)
		synctest.Wait()
		check("when the new ones have come", old, auth.ErrSignature)
		check("the other", fresh, nil)
		testkit.Equal(t, i.questions("/keys"), 2, "asked times")
	})
}

// Keys are replaced by others that have come, and by nothing else.
func TestKnownKeysStay(t *testing.T) {
	for what, harm := range map[string]func(i *issuer){
		"it is down":              func(i *issuer) { i.down = true },
		"its keys are elsewhere":  func(i *issuer) { i.document["jwks_uri"] = i.URL + "/gone" },
		"it shows none":           func(i *issuer) { i.keys = nil },
		"it is somebody else":     func(i *issuer) { i.document["issuer"] = "https://elsewhere.example" },
		"it does not answer":      func(i *issuer) { i.hung = discovery },
		"its keys do not come":    func(i *issuer) { i.hung = "/keys" },
		"its keys are no keys":    func(i *issuer) { i.document["jwks_uri"] = i.URL + discovery },
		"its document is no more": func(i *issuer) { i.document = nil },
	} {
		t.Run(what, func(t *testing.T) {
			stranger := newKey(t, "made up")
			bubble(t, func(t *testing.T, i *issuer, _ *Verifier, key signingKey, check func(string, signingKey, error)) {
				i.set(func() { harm(i) })
				time.Sleep(maxAge)
				began := time.Now()
				check("a known key", key, nil)
				testkit.Equal(t, time.Since(began), 0, "it took")
				check("a key that only the issuer could know", stranger, auth.ErrUnavailable)
				check("a known key after that", key, nil)
			})
		})
	}
}

// H9: strangers with made-up tokens do not spoil the keys that are known, whenever they come.
func TestAStrangerSpoilsNothing(t *testing.T) {
	stranger := newKey(t, "made up")
	bubble(t, func(t *testing.T, i *issuer, _ *Verifier, key signingKey, check func(string, signingKey, error)) {
		for range 3 {
			time.Sleep(maxAge - askPause/2)
			check("the stranger's", stranger, auth.ErrSignature)
			time.Sleep(askPause / 2)
			check("a good one", key, nil)
		}
	})
}

// An issuer that does not answer is given up after a while, and who waits for it shares
// that outcome; from then on it is left in peace.
func TestHungIssuer(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(key)
		i.hung = discovery
		v := patient(t, i)
		token := key.sign(t, i.URL, nil)
		began := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := v.Verify(t.Context(), token)
				if took := time.Since(began); !errors.Is(err, auth.ErrUnavailable) || took != askTimeout {
					t.Errorf("got %v after %v", err, took)
				}
			})
		}
		all.Wait()
		time.Sleep(askPause - 1)
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, auth.ErrUnavailable) || time.Since(began) != askTimeout+askPause-1 {
			t.Errorf("in the pause: %v after %v", err, time.Since(began))
		}
		testkit.Equal(t, i.questions(discovery), 1, "asked times")
		i.set(func() { i.hung = "" })
		time.Sleep(time.Nanosecond)
		testkit.Check(t, testkit.Err(v.Verify(t.Context(), token)), "after the pause")
	})
}

// Who waits for an answer can leave; the others get it.
func TestWaitingEnds(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(key)
		i.hung = "/keys"
		v := patient(t, i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := v.Verify(ctx, key.sign(t, i.URL, nil))
		if !errors.Is(err, auth.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// Close does not wait for an issuer that does not answer, and nobody is asked after it.
func TestClose(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(key)
		i.hung = discovery
		v := patient(t, i)
		token := key.sign(t, i.URL, nil)
		began := time.Now()
		waited := make(chan error)
		go func() {
			_, err := v.Verify(t.Context(), token)
			waited <- err
		}()
		synctest.Wait()
		v.Close()
		v.Close()
		if err := <-waited; !errors.Is(err, auth.ErrUnavailable) || time.Since(began) != 0 {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		time.Sleep(askPause)
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, auth.ErrUnavailable) || i.questions(discovery) != 1 {
			t.Errorf("got %v after %d questions", err, i.questions(discovery))
		}
	})
}

// A token that none of the keys fits which were shown a moment ago is a wrong one: nobody
// has to wait to learn that, and the issuer is not asked.
func TestFreshKeysAreAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, i *issuer, _ *Verifier, _ signingKey, check func(string, signingKey, error)) {
		for range 3 {
			check("a stranger's", newKey(t, "x"), auth.ErrSignature)
		}
		testkit.Equal(t, i.questions("/keys"), 1, "asked times")
	})
}

// silent is a transport that answers with an error, or with a document, and counts.
type silent struct {
	err   error
	body  string
	asked int
}

func (s *silent) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

// However many made-up tokens come, the issuer is asked only so often, and the answer
// says why it was not heard.
func TestIssuerIsLeftInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &silent{err: errors.New("no route to host")}
		v := testkit.Value(New(Config{Issuer: "https://login.example.net", Audience: "yard", Transport: away}))(t)
		token := newKey(t, "k").sign(t, "https://login.example.net", nil)
		for range 100 {
			_, err := v.Verify(t.Context(), token)
			if !errors.Is(err, auth.ErrUnavailable) || !strings.Contains(err.Error(), "no route to host") {
				t.Fatalf("got %v", err)
			}
		}
		testkit.Equal(t, away.asked, 1, "asked times")
		time.Sleep(askPause)
		v.Verify(t.Context(), token)
		testkit.Equal(t, away.asked, 2, "asked … times after a pause")
	})
}

// An answer without end is not read to its end.
func TestAnswersAreBounded(t *testing.T) {
	endless := &silent{body: strings.Repeat("x", 2*maxAnswerBytes)}
	response, err := newSource("https://login.example.net", endless).client.Get("https://login.example.net/keys")
	testkit.Must(t, err)
	defer response.Body.Close()
	testkit.Equal(t, len(testkit.Value(io.ReadAll(response.Body))(t)), maxAnswerBytes, "read")
}

// R4: an issuer that does not answer is in the log, once in a while, and that it answers again.
func TestAnIssuerThatIsDownIsLogged(t *testing.T) {
	stranger := newKey(t, "made up")
	bubble(t, func(t *testing.T, i *issuer, v *Verifier, key signingKey, check func(string, signingKey, error)) {
		text := &testkit.Buffer{}
		v.keys.log = slog.New(slog.NewTextHandler(text, nil))
		lines := func(part string) int { return strings.Count(text.String(), part) }
		i.set(func() { i.down = true })
		for range 100 { // over eight minutes
			time.Sleep(askPause)
			check("a key that is not known", stranger, auth.ErrUnavailable)
		}
		testkit.Equal(t, lines("does not answer"), 1, "lines")
		testkit.That(t, strings.Contains(text.String(), "level=WARN") && strings.Contains(text.String(), "error="), "the log says %s", text)
		time.Sleep(reportEvery)
		check("later", stranger, auth.ErrUnavailable)
		testkit.Equal(t, lines("does not answer"), 2, "lines")
		i.set(func() { i.down = false })
		time.Sleep(askPause)
		check("when it is back", stranger, auth.ErrSignature)
		check("a good one", key, nil)
		testkit.Equal(t, lines("answers again"), 1, "lines")
	})
}
