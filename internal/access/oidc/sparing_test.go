package oidc

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/auth"
)

// answers is a transport that answers with a document, or an error, and counts.
type answers struct {
	status int
	body   string
	err    error
	asked  int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// However many made-up tokens come, the issuer is asked only so often, and the answer
// says whether it was ever heard.
func TestIssuerIsLeftInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &answers{err: errors.New("no route to host")}
		v, err := New(Config{Issuer: "https://login.example.net", Audience: "yard", Transport: silent})
		if err != nil {
			t.Fatal(err)
		}
		token := newKey(t, "k").sign(t, "https://login.example.net", nil)
		for range 100 {
			_, err := v.Verify(t.Context(), token)
			if !errors.Is(err, auth.ErrUnavailable) || !strings.Contains(err.Error(), "no route to host") {
				t.Fatalf("got %v", err)
			}
		}
		if silent.asked != 1 {
			t.Errorf("asked %d times", silent.asked)
		}
		time.Sleep(askPause)
		v.Verify(t.Context(), token)
		if silent.asked != 2 {
			t.Errorf("asked %d times after a pause", silent.asked)
		}
	})
}

func TestSparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &answers{status: http.StatusOK, body: strings.Repeat("x", maxAnswerBytes+1)}
		client := &http.Client{Transport: newSparing(next, time.Minute)}
		get := func(address string) error {
			response, err := client.Get(address)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err != nil || len(body) > maxAnswerBytes {
				t.Errorf("read %d bytes, %v", len(body), err)
			}
			return nil
		}
		if err := get("http://i/a"); err != nil {
			t.Fatal(err)
		}
		if err := get("http://i/a"); !errors.Is(err, errFresh) {
			t.Errorf("again: %v", err)
		}
		if err := get("http://i/b"); err != nil {
			t.Errorf("another: %v", err)
		}
		time.Sleep(time.Minute)
		next.status = http.StatusTeapot
		if err := get("http://i/a"); err != nil {
			t.Errorf("later: %v", err)
		}
		if err := get("http://i/a"); !errors.Is(err, errPausing) {
			t.Errorf("after no answer: %v", err)
		}
		for _, address := range strings.Split(strings.Repeat("x", 100), "") {
			time.Sleep(time.Second)
			get("http://i/" + address + time.Now().Format("150405"))
		}
		if got := len(client.Transport.(*sparing).asked); got > maxAddresses+1 {
			t.Errorf("%d addresses are remembered", got)
		}
	})
}
