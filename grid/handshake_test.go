package grid

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/testkit"
)

const validationOne = `[{"id":"1","topic":"t","subject":"","eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"2030-01-02T12:00:00Z",` +
	`"metadataVersion":"1","dataVersion":"2","data":{"validationCode":"512d38b6","validationUrl":"https://x"}}]`

// G11: the handshake of the Event Grid schema, also where signatures are asked for.
func TestValidation(t *testing.T) {
	const echo = `{"validationResponse":"512d38b6"}`
	for _, tt := range []struct {
		what, kind, body string
		status           int
		answer           string
		calls            int
	}{
		{"asked", "SubscriptionValidation", validationOne, 200, echo, 0},
		{"asked in another case", "subscriptionvalidation", validationOne, 200, echo, 0},
		{"asked without the header", "", validationOne, 200, echo, 0},
		{"an event of that type that somebody published", "Notification", validationOne, 200, "", 1},
		{"asked without a code", "SubscriptionValidation", "[" + gridOne + "]", 400, "the validation event has no validationCode\n", 0},
		{"asked without an event", "SubscriptionValidation", "[]", 400, "the validation event has no validationCode\n", 0},
		{"asked in another shape", "SubscriptionValidation", "{}", 400, "the validation event has no validationCode\n", 0},
		{"told that it is over", "SubscriptionDeletion", "[" + gridOne + "]", 200, "", 0},
		{"told so in another word", "Unsubscribe", "", 200, "", 0},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := newHook(t, HandlerConfig{}, takes)
			w := h.post(tt.body, "Content-Type", "application/json; charset=utf-8", "aeg-event-type", tt.kind)
			testkit.Slices(t, []any{w.Code, w.Body.String(), len(h.batches)}, []any{tt.status, tt.answer, tt.calls}, "answered")
			if tt.answer == echo && w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("of type %s", w.Header().Get("Content-Type"))
			}
		})
	}
	h := newHook(t, HandlerConfig{Keys: []string{newKey(t, signature.HMAC).Text}}, takes)
	if w := h.post(validationOne, "Content-Type", "application/json", "aeg-event-type", "SubscriptionValidation"); w.Body.String() != echo {
		t.Errorf("with keys: answered %d %q", w.Code, w.Body)
	}
}

// G11: the handshake of CloudEvents.
func TestConsent(t *testing.T) {
	for _, tt := range []struct {
		what    string
		cfg     HandlerConfig
		headers []string
		status  int
		origin  string
		rate    string
	}{
		{"everybody is welcome", HandlerConfig{}, []string{"WebHook-Request-Origin", "grid.test"}, 200, "grid.test", ""},
		{"at any rate", HandlerConfig{}, []string{"WebHook-Request-Origin", "grid.test", "WebHook-Request-Rate", "120"}, 200, "grid.test", "*"},
		{"at this rate", HandlerConfig{MaxPerMinute: 60}, []string{"WebHook-Request-Origin", "grid.test"}, 200, "grid.test", "60"},
		{"one is welcome", HandlerConfig{Origins: []string{"a.test", "Grid.Test"}}, []string{"WebHook-Request-Origin", "grid.test"}, 200, "grid.test", ""},
		{"all by name", HandlerConfig{Origins: []string{"*"}}, []string{"WebHook-Request-Origin", "grid.test"}, 200, "grid.test", ""},
		{"another is not", HandlerConfig{Origins: []string{"a.test"}}, []string{"WebHook-Request-Origin", "grid.test", "WebHook-Request-Rate", "1"}, 403, "", ""},
		{"nobody is", HandlerConfig{Origins: []string{}}, []string{"WebHook-Request-Origin", "grid.test"}, 403, "", ""},
		{"no question", HandlerConfig{}, nil, 204, "", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := newHook(t, tt.cfg, takes)
			w := h.serve(http.MethodOptions, strings.NewReader(""), tt.headers...)
			if w.Code != tt.status || w.Header().Get("WebHook-Allowed-Origin") != tt.origin || w.Header().Get("WebHook-Allowed-Rate") != tt.rate {
				t.Errorf("answered %d %v", w.Code, w.Header())
			}
			testkit.Slices(t, []any{w.Header().Get("Allow"), len(h.batches)}, []any{"POST, OPTIONS", 0}, "allowed")
		})
	}
}
