//go:build linux

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// hook is a webhook that keeps what it is sent. It agrees to both handshakes.
type hook struct {
	URL string
	// answer is what becomes of a delivery; nil: 200.
	answer func(w http.ResponseWriter, r *http.Request, d delivered)

	mu  sync.Mutex
	got []delivered // guarded by mu
}

// delivered is one request.
type delivered struct {
	at     time.Time
	header http.Header
	query  string
	body   []byte
}

func newHook(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, d delivered)) *hook {
	t.Helper()
	h := &hook{answer: answer}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections() // some handlers wait for their client's end
		server.Close()
	})
	h.URL = server.URL + "/hook"
	return h
}

// answering is a webhook with one answer to everything but handshakes.
func answering(t *testing.T, status int) *hook {
	t.Helper()
	return newHook(t, func(w http.ResponseWriter, _ *http.Request, _ delivered) { w.WriteHeader(status) })
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch {
	case r.Method == http.MethodOptions:
		w.Header().Set("WebHook-Allowed-Origin", r.Header.Get("WebHook-Request-Origin"))
		return
	case r.Header.Get("aeg-event-type") == "SubscriptionValidation":
		fmt.Fprintf(w, `{"validationResponse":%q}`, validationCode(body))
		return
	case r.Header.Get("aeg-event-type") == "SubscriptionDeletion":
		return
	}
	d := delivered{time.Now(), r.Header, r.URL.RawQuery, body}
	h.mu.Lock()
	h.got = append(h.got, d)
	h.mu.Unlock()
	if h.answer != nil {
		h.answer(w, r, d)
	}
}

// validationCode reads the validation event; empty if it is none.
func validationCode(body []byte) string {
	var events []struct {
		EventType string
		Data      struct{ ValidationCode, ValidationURL string }
	}
	if json.Unmarshal(body, &events) != nil || len(events) != 1 || events[0].EventType != "Microsoft.EventGrid.SubscriptionValidationEvent" {
		return ""
	}
	return events[0].Data.ValidationCode
}

// all is what came so far.
func (h *hook) all() []delivered {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// await waits for so many requests and gives them; more may follow.
func (h *hook) await(t *testing.T, n int) (got []delivered) {
	t.Helper()
	eventually(t, func() string {
		if got = h.all(); len(got) >= n {
			return ""
		}
		return fmt.Sprintf("%d of %d requests came", len(got), n)
	})
	return got
}

// read decodes the body of a request.
func read[T any](t *testing.T, body []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return value
}

// object is any JSON object.
type object = map[string]any
