package handshake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

var _ topics.Validator = (*Asker)(nil)

// hanging is a transport whose first requests are never answered; the others are, by a handler.
type hanging struct {
	hangs   int
	handler http.HandlerFunc
	asked   []time.Time
	closed  int
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked = append(h.asked, time.Now())
	if len(h.asked) <= h.hangs {
		<-r.Context().Done()
		h.closed++
		return nil, context.Cause(r.Context())
	}
	w := httptest.NewRecorder()
	h.handler(w, r)
	return w.Result(), nil
}

// G11: a time-out ends the try, and after 5 s it is asked again, several times.
func TestTimeOutsAreTriedAgain(t *testing.T) {
	for name, x := range map[string]struct {
		output schema.Kind
		hangs  int
		agreed bool
		tries  int
		took   time.Duration
	}{
		"the event, answered at the second try": {schema.EventGrid, 1, true, 2, 35 * time.Second},
		"the event, answered at the last try":   {schema.Custom, 2, true, 3, 70 * time.Second},
		"the event, never answered":             {schema.EventGrid, 9, false, 3, 100 * time.Second},
		"OPTIONS, answered at the second try":   {schema.CloudEvents, 1, true, 2, 35 * time.Second},
		"OPTIONS, never answered":               {schema.CloudEvents, 9, false, 3, 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hanging{hangs: x.hangs, handler: func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("WebHook-Allowed-Origin", "*")
					io.WriteString(w, `{"validationResponse":"`+code+`"}`)
				}}
				a := newAsker(t, egress.Config{Transport: h})
				began := time.Now()
				got := a.Validate(t.Context(), subscription("http://receiver.example/", x.output), topic, code, link)
				if got.Agreed != x.agreed || got.Awaiting || time.Since(began) != x.took || len(h.asked) != x.tries || h.closed != min(x.hangs, x.tries) {
					t.Errorf("after %v and %d tries (%d ended): %+v", time.Since(began), len(h.asked), h.closed, got)
				}
				if !x.agreed && !strings.Contains(got.Why, "no answer within 30s") {
					t.Errorf("why: %s", got.Why)
				}
			})
		})
	}
}

func TestWhoAsksMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{hangs: 9}
		a := newAsker(t, egress.Config{Transport: h})
		for _, after := range []time.Duration{10 * time.Second, 32 * time.Second} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("the operator left"))
			began := time.Now()
			got := a.Validate(ctx, subscription("http://receiver.example/", schema.EventGrid), topic, code, link)
			cancel()
			if got.Agreed || got.Awaiting || time.Since(began) != after || !strings.Contains(got.Why, "the operator left") {
				t.Errorf("after %v: %+v", time.Since(began), got)
			}
		}
	})
}

// What fails otherwise is told at once.
func TestOtherFailuresAreNotTriedAgain(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, output := range []schema.Kind{schema.EventGrid, schema.CloudEvents} {
		a := newAsker(t, egress.Config{Loopback: true})
		got := a.Validate(t.Context(), subscription(gone.URL, output), topic, code, link)
		if got.Agreed || got.Awaiting || !strings.Contains(got.Why, "did not answer") {
			t.Errorf("%s: %+v", output, got)
		}
		guarded := newAsker(t, egress.Config{})
		got = guarded.Validate(t.Context(), subscription(gone.URL, output), topic, code, link)
		if got.Agreed || got.Awaiting || !strings.Contains(got.Why, "grid.allow") {
			t.Errorf("%s: %+v", output, got)
		}
	}
}

func TestWhoIsNotAskedHasAgreed(t *testing.T) {
	a := newAsker(t, egress.Config{})
	trusted := subscription("http://10.0.0.1/", schema.EventGrid)
	trusted.SkipValidation = true
	for name, s := range map[string]topics.Subscription{
		"trusted": trusted,
		"a hub":   {Settings: topics.Settings{Hub: "orders"}},
		"pull":    {Settings: topics.Settings{Pull: &topics.Pull{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := a.Validate(t.Context(), s, topic, code, link); !got.Agreed {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}
