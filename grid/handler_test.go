package grid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hook is a handler that keeps what it was given.
type hook struct {
	*Handler
	batches [][]Delivery
	errors  []error
}

func newHook(t *testing.T, cfg HandlerConfig, answer func([]Delivery) error) *hook {
	t.Helper()
	h := &hook{}
	cfg.OnError = func(err error) { h.errors = append(h.errors, err) }
	var err error
	h.Handler, err = NewHandler(func(_ context.Context, batch []Delivery) error {
		h.batches = append(h.batches, batch)
		return answer(batch)
	}, cfg)
	testkit.Must(t, err)
	return h
}

func takes([]Delivery) error { return nil }

func (h *hook) post(body string, headers ...string) *httptest.ResponseRecorder {
	return h.serve(http.MethodPost, strings.NewReader(body), headers...)
}

func (h *hook) serve(method string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/hook", body)
	r.Header = header(headers...)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// G12: what a delivery has beside its event.
func TestDeliveries(t *testing.T) {
	h := newHook(t, HandlerConfig{}, takes)
	w := h.post("["+gridOne+","+gridOne+"]", "Content-Type", "application/json; charset=utf-8", "aeg-event-type", "Notification",
		"aeg-subscription-name", "MAILER", "aeg-delivery-count", "3", "X-Env", "prod")
	testkit.MustSlices(t, []any{w.Code, w.Body.Len(), len(h.batches), len(h.errors)}, []any{200, 0, 1, 0}, "answered")
	for _, d := range h.batches[0] {
		testkit.Slices(t, []any{d.Attempt, d.Subscription, d.Header.Get("X-Env")}, []any{3, "MAILER", "prod"})
		testkit.Diff(t, fromGrid, d.Event)
	}
	if w = h.post("[]", "Content-Type", "application/json"); w.Code != 200 || len(h.batches) != 1 {
		t.Errorf("without events: answered %d, %d calls", w.Code, len(h.batches))
	}
	for _, count := range []string{"", "x", "-1"} {
		h.post(cloudOne, "Content-Type", "application/json", "aeg-delivery-count", count)
		testkit.Equal(t, h.batches[len(h.batches)-1][0].Attempt, 0, "count %q is attempt", count)
	}
}

// G3 to G5: what the function's answer means to a grid.
func TestAnswers(t *testing.T) {
	broken := errors.New("database password is hunter2")
	for _, tt := range []struct {
		what       string
		err        error
		status     int
		retryAfter string
		text       string
	}{
		{"nil", nil, 200, "", ""},
		{"an error", broken, 500, "", "the receiver could not take the events\n"},
		{"rejected", Reject(errors.New("no such order")), 400, "", "no such order\n"},
		{"rejected without a word", Reject(nil), 400, "", "rejected\n"},
		{"rejected, wrapped", fmt.Errorf("order 42: %w", Reject(errors.New("no such order"))), 400, "", "no such order\n"},
		{"later", RetryAfter(90*time.Second, broken), 503, "90", "the receiver asks to come again later\n"},
		{"later, rounded up", RetryAfter(time.Millisecond, nil), 503, "1", "the receiver asks to come again later\n"},
		{"later, wrapped", fmt.Errorf("mail: %w", RetryAfter(2*time.Minute, broken)), 503, "120", "the receiver asks to come again later\n"},
		{"later, whenever", RetryAfter(0, nil), 503, "", "the receiver asks to come again later\n"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := newHook(t, HandlerConfig{}, func([]Delivery) error { return tt.err })
			w := h.post(cloudOne, "Content-Type", "application/cloudevents+json")
			if w.Code != tt.status || w.Header().Get("Retry-After") != tt.retryAfter || w.Body.String() != tt.text {
				t.Errorf("answered %d, %q, %q", w.Code, w.Header().Get("Retry-After"), w.Body)
			}
			if tt.err != nil && (len(h.errors) != 1 || !errors.Is(h.errors[0], tt.err)) {
				t.Errorf("told %v", h.errors)
			}
		})
	}
}

func TestPanics(t *testing.T) {
	h := newHook(t, HandlerConfig{}, func([]Delivery) error { panic("out of luck") })
	w := h.post(cloudOne, "Content-Type", "application/cloudevents+json")
	testkit.Slices(t, []any{w.Code, strings.Contains(w.Body.String(), "luck")}, []any{500, false}, "answered")
	if len(h.errors) != 1 || !strings.Contains(h.errors[0].Error(), "panic: out of luck") || !strings.Contains(h.errors[0].Error(), "handler_test.go") {
		t.Errorf("told %v", h.errors)
	}
	defer func() {
		testkit.Equal[any](t, recover(), http.ErrAbortHandler, "panicked with")
	}()
	newHook(t, HandlerConfig{}, func([]Delivery) error { panic(http.ErrAbortHandler) }).post(cloudOne, "Content-Type", "application/json")
}

func TestRequestsThatAreNone(t *testing.T) {
	h := newHook(t, HandlerConfig{MaxBytes: 1000}, takes)
	tests := []struct {
		what   string
		answer *httptest.ResponseRecorder
		want   int
	}{
		{"GET", h.serve(http.MethodGet, nil), 405},
		{"PUT", h.serve(http.MethodPut, nil), 405},
		{"no JSON", h.post("x", "Content-Type", "application/json"), 400},
		{"no type", h.post("[]"), 415},
		{"too large", h.post(strings.Repeat(" ", 1001), "Content-Type", "application/json"), 413},
		{"cut off", h.serve(http.MethodPost, iotest.ErrReader(io.ErrUnexpectedEOF), "Content-Type", "application/json"), 408},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, tt.answer.Code, tt.want, "%s: answered", tt.what)
		})
	}
	if got := tests[0].answer.Header().Get("Allow"); got != "POST, OPTIONS" || len(h.batches) != 0 {
		t.Errorf("allowed %q, %d calls", got, len(h.batches))
	}
}

// Where keys are given, only what was signed with one of them gets through.
func TestSignatures(t *testing.T) {
	hmacKey, edKey, other := newKey(t, signature.HMAC), newKey(t, signature.Ed25519), newKey(t, signature.HMAC)
	public := testkit.Value(edKey.Public())(t)
	h := newHook(t, HandlerConfig{Keys: []string{hmacKey.Text, public}, Tolerance: time.Minute}, takes)
	for _, tt := range []struct {
		what   string
		keys   []signature.Key
		at     time.Duration
		body   string
		status int
	}{
		{"signed", []signature.Key{hmacKey}, 0, cloudOne, 200},
		{"signed by the other", []signature.Key{edKey}, 0, cloudOne, 200},
		{"signed by several", []signature.Key{other, edKey}, 0, cloudOne, 200},
		{"not signed", nil, 0, cloudOne, 412},
		{"signed by somebody else", []signature.Key{other}, 0, cloudOne, 412},
		{"signed long ago", []signature.Key{hmacKey}, -2 * time.Minute, cloudOne, 412},
		{"changed on its way", []signature.Key{hmacKey}, 0, cloudOne + " ", 412},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h.batches = nil
			signer := testkit.Value(signature.NewSigner(tt.keys))(t)
			signed := http.Header{}
			signer.Sign(signed, "1", time.Now().Add(tt.at), []byte(cloudOne))
			w := h.post(tt.body, "Content-Type", "application/cloudevents+json", "webhook-id", signed.Get("webhook-id"),
				"webhook-timestamp", signed.Get("webhook-timestamp"), "webhook-signature", signed.Get("webhook-signature"))
			if w.Code != tt.status || (len(h.batches) == 1) != (tt.status == 200) {
				t.Errorf("answered %d %s, %d calls", w.Code, w.Body, len(h.batches))
			}
		})
	}
}

func newKey(t *testing.T, algorithm string) signature.Key {
	t.Helper()
	key := testkit.Value(signature.New(algorithm))(t)
	return key
}

func TestNewHandlerRefuses(t *testing.T) {
	if _, err := NewHandler(nil, HandlerConfig{}); err == nil {
		t.Error("without a function")
	}
	if _, err := NewHandler(func(context.Context, []Delivery) error { return nil }, HandlerConfig{Keys: []string{"x"}}); err == nil {
		t.Error("with a key that is none")
	}
}

// Errors are logged where nobody asks for them.
func TestErrorsAreLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	h := testkit.Value(NewHandler(func(context.Context, []Delivery) error { return errors.New("no mail today") }, HandlerConfig{}))(t)
	(&hook{Handler: h}).post(cloudOne, "Content-Type", "application/json")
	if !strings.Contains(log.String(), "no mail today") {
		t.Errorf("logged %s", log.String())
	}
}

// G9: what the official library sends is what the function gets, in each mode.
func TestDeliveriesOfTheOfficialLibrary(t *testing.T) {
	sent := cloudevents.New()
	sent.SetID("1")
	sent.SetSource("/shop")
	sent.SetType("order.placed")
	sent.SetSubject("Größe 42 €")
	sent.SetTime(noon)
	sent.SetExtension("traceparent", "00")
	testkit.Must(t, sent.SetData("application/json", map[string]int{"total": 1999}))
	want := Event{ID: "1", Type: "order.placed", Source: "/shop", Subject: "Größe 42 €", Time: noon, ContentType: "application/json",
		Data: []byte(`{"total":1999}`), Extensions: map[string]any{"traceparent": "00"}}
	modes := map[string]func(context.Context) context.Context{"binary": binding.WithForceBinary, "structured": binding.WithForceStructured}
	for what, mode := range modes {
		t.Run(what, func(t *testing.T) {
			h := newHook(t, HandlerConfig{}, takes)
			r := httptest.NewRequest(http.MethodPost, "/hook", nil)
			testkit.Must(t, cehttp.WriteRequest(mode(t.Context()), binding.ToMessage(&sent), r))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			testkit.MustSlices(t, []any{w.Code, len(h.batches)}, []any{200, 1}, "answered")
			testkit.Diff(t, want, h.batches[0][0].Event)
		})
	}
}
