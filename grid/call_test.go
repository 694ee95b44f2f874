package grid

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// fakeNetwork answers requests without a socket, so that time can be virtual, and keeps when
// they came and what was in them.
type fakeNetwork struct {
	answer func(attempt int, r *http.Request) (*http.Response, error)
	times  []time.Time
	bodies []string
}

func (n *fakeNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	n.times = append(n.times, time.Now())
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n.bodies = append(n.bodies, string(body))
	return n.answer(len(n.times), r)
}

func (n *fakeNetwork) client() *http.Client { return &http.Client{Transport: n} }

func response(status int, headers ...string) *http.Response {
	return &http.Response{StatusCode: status, Header: header(headers...), Body: io.NopCloser(strings.NewReader(""))}
}

// What passes is tried again, with the same bytes; what does not is not.
func TestRetries(t *testing.T) {
	broken := errors.New("connection reset")
	for _, tt := range []struct {
		what    string
		retry   Retry
		answers []int // 0: no answer
		want    int   // attempts
		ok      bool
	}{
		{"at once", Retry{}, []int{200}, 1, true},
		{"after all that passes", Retry{Attempts: 9}, []int{408, 429, 500, 502, 503, 504, 0, 200}, 8, true},
		{"five times by default", Retry{}, []int{500}, 5, false},
		{"as often as said", Retry{Attempts: 2}, []int{500}, 2, false},
		{"once", Retry{Attempts: 1}, []int{0}, 1, false},
		{"not after 400", Retry{}, []int{400, 200}, 1, false},
		{"not after 401", Retry{}, []int{401, 200}, 1, false},
		{"not after 413", Retry{}, []int{503, 413, 200}, 2, false},
		{"not after 501", Retry{}, []int{501, 200}, 1, false},
		{"not after 202, which does not say that it is durable", Retry{}, []int{202, 200}, 1, false},
		{"not after 204, which some proxy said", Retry{}, []int{204, 200}, 1, false},
		{"not after 302", Retry{}, []int{302, 200}, 1, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNetwork{answer: func(attempt int, _ *http.Request) (*http.Response, error) {
					status := tt.answers[min(attempt, len(tt.answers))-1]
					if status == 0 {
						return nil, broken
					}
					return response(status, "Location", "/x"), nil
				}}
				c := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client(), Retry: tt.retry})
				err := c.Publish(t.Context(), Event{Type: "x"})
				if (err == nil) != tt.ok || len(n.times) != tt.want {
					t.Errorf("%d attempts, %v", len(n.times), err)
				}
				for _, body := range n.bodies {
					if body != n.bodies[0] {
						t.Errorf("sent %s, then %s", n.bodies[0], body)
					}
				}
			})
		})
	}
}

// Delays double, with jitter, and are no shorter than Retry-After.
func TestDelays(t *testing.T) {
	for _, tt := range []struct {
		what       string
		retry      Retry
		retryAfter string
		least      []time.Duration
		most       []time.Duration
	}{
		{"by default", Retry{}, "",
			[]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond},
			[]time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond}},
		{"up to the longest", Retry{First: time.Second, Max: 2 * time.Second}, "",
			[]time.Duration{time.Second / 2, time.Second, time.Second, time.Second},
			[]time.Duration{time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}},
		{"as the grid asks", Retry{}, "30",
			[]time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second},
			[]time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}},
		{"not as long as it asks", Retry{}, "61", nil, nil},
		{"as long as it asks where that is allowed", Retry{Attempts: 2, MaxAfter: time.Hour}, "3600", []time.Duration{time.Hour}, []time.Duration{time.Hour}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNetwork{answer: func(int, *http.Request) (*http.Response, error) {
					return response(503, "Retry-After", tt.retryAfter), nil
				}}
				c := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client(), Retry: tt.retry})
				testkit.ErrorIs(t, c.Publish(t.Context(), Event{Type: "x"}), ErrBusy)
				testkit.MustEqual(t, len(n.times), len(tt.least)+1, "attempts")
				for i, least := range tt.least {
					if got := n.times[i+1].Sub(n.times[i]); got < least || got > tt.most[i] {
						t.Errorf("delay %d is %v, not %v to %v", i+1, got, least, tt.most[i])
					}
				}
			})
		})
	}
}

// An attempt has its time, and so has the caller.
func TestTimeouts(t *testing.T) {
	silent := func(_ int, r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{answer: silent}
		c := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client(), Retry: Retry{Attempts: 2, Timeout: 7 * time.Second}})
		began := time.Now()
		err := c.Publish(t.Context(), Event{Type: "x"})
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "no answer within 7s") || took < 14*time.Second || took > 15*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("it is taken for the end of the caller's context: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{answer: silent}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client()}).Publish(ctx, Event{Type: "x"})
		if !errors.Is(err, context.DeadlineExceeded) || len(n.times) != 1 {
			t.Errorf("%d attempts, %v", len(n.times), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{answer: func(int, *http.Request) (*http.Response, error) { return response(503, "Retry-After", "30"), nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client()}).Publish(ctx, Event{Type: "x"})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "after: status 503") {
			t.Errorf("waiting: %v", err)
		}
	})
}

// A token is kept for three quarters of its life, and not beyond a refusal.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, status := 0, 200
		var sent []string
		n := &fakeNetwork{answer: func(_ int, r *http.Request) (*http.Response, error) {
			sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return response(status), nil
		}}
		c := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client(), Token: func(context.Context) (string, time.Time, error) {
			asked++
			return strconv.Itoa(asked), time.Now().Add(time.Hour), nil
		}})
		publish := func(after time.Duration) error {
			time.Sleep(after)
			return c.Publish(t.Context(), Event{Type: "x"})
		}
		for _, after := range []time.Duration{0, 44 * time.Minute, time.Minute} {
			testkit.Must(t, publish(after))
		}
		status = 401
		testkit.ErrorIs(t, publish(0), ErrUnauthorized)
		status = 200
		testkit.Check(t, publish(0))
		testkit.Equal(t, strings.Join(sent, " "), "1 1 2 2 3", "sent")
	})
}

// Without an expiry a token is kept for 15 minutes; one that cannot be had ends the call.
func TestTokensWithoutAnExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := newBearer(func(context.Context) (string, time.Time, error) { asked++; return "t", time.Time{}, nil })
		for _, after := range []time.Duration{0, 15*time.Minute - 1, 1} {
			time.Sleep(after)
			testkit.Must(t, testkit.Err(b.token(t.Context())))
		}
		testkit.Equal(t, asked, 2, "asked times")
		for _, answer := range []error{nil, errors.New("no issuer")} {
			n := &fakeNetwork{}
			c := client(t, Config{Endpoint: "https://orders.test", HTTPClient: n.client(), Token: func(context.Context) (string, time.Time, error) {
				return "", time.Time{}, answer
			}})
			if err := c.Publish(t.Context(), Event{Type: "x"}); err == nil || len(n.times) != 0 || answer != nil && !errors.Is(err, answer) {
				t.Errorf("%d requests, %v", len(n.times), err)
			}
		}
	})
}

// Whoever waits for somebody else's token waits no longer than its own context.
func TestWaitingForATokenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBearer(func(context.Context) (string, time.Time, error) { <-release; return "t", time.Time{}, nil })
		done := make(chan error)
		go func() {
			_, err := b.token(context.Background())
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.ErrorIs(t, testkit.Err(b.token(ctx)), context.DeadlineExceeded)
		close(release)
		testkit.Check(t, <-done)
	})
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "0": 0, "-1": 0, "soon": 0, "99999999999": 0,
		"Wed, 02 Jan 2030 12:01:00 GMT": time.Minute, "Wed, 02 Jan 2030 11:00:00 GMT": 0,
	} {
		t.Run(text, func(t *testing.T) {
			testkit.Equal(t, parseRetryAfter(text, now), want, "%q", text)
		})
	}
}
