package eventgrid

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/schema"
)

// The finer codes that are used more than once.
const (
	codeInvalid  = "InvalidRequest"
	codeNotFound = "ResourceNotFound"
	codeTooLarge = "PayloadTooLarge"
)

// Judge leaves what is wrong with events to the schema's own words.
func (c *call) Judge(err error) frame.Refusal {
	if e, ok := errors.AsType[*schema.InputError](err); ok {
		return frame.Refusal{Status: e.Status, Code: e.Code, Detail: e.Message}
	}
	return frame.Judge(frame.EventGrid, err)
}

// Refuse writes a refusal as Event Grid does (reference §5); to a person who opens a validation
// link, as a page.
func (c *call) Refuse(said frame.Refusal) {
	c.Drain()
	h := c.Header()
	if said.Status == http.StatusUnauthorized {
		said.Next += c.handler.howToEnter()
		h["Www-Authenticate"] = frame.Challenges
	}
	h.Set("x-ms-error-code", outerCode(said.Status))
	if said.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(said.RetryAfter.Seconds())))
	}
	if c.Route.Name == "Validate" && wantsPage(c.R) {
		c.page(said.Status, "The endpoint was not confirmed", wholeText(said))
		return
	}
	_ = c.replyJSON(said.Status, document(said))
}

// Ended counts the call and, where it was to publish events, that it failed. What a client calls a
// topic is no label: only the names of those that exist are.
func (c *call) Ended(took time.Duration) {
	c.handler.metrics.Observe(c.Call, took)
	if c.Refused != nil && c.publishes() {
		c.handler.metrics.published.WithLabelValues(c.topic.Name, c.Refused.Code).Add(float64(max(1, c.events)))
	}
}

// outerCode is what Event Grid says for a status.
func outerCode(status int) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return codeTooLarge
	case http.StatusServiceUnavailable:
		return "Busy"
	}
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

// wholeText is the whole message, which ends with what to do.
func wholeText(said frame.Refusal) string {
	text := strings.TrimSuffix(said.Detail, ".")
	if said.Next != "" {
		text += ": " + said.Next
	}
	return text + "."
}

// errorDocument is the body of every refusal.
type errorDocument struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	Details []errorDetail `json:"details"`
}

type errorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// document says in the outer message what is wrong, and in the finer one also what to do.
func document(said frame.Refusal) errorDocument {
	short := strings.TrimSuffix(said.Detail, ".") + "."
	return errorDocument{errorBody{Code: outerCode(said.Status), Message: short, Details: []errorDetail{{said.Code, wholeText(said)}}}}
}
