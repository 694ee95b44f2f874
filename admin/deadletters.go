package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"time"
)

// DeadLetter is an event that could not be delivered.
type DeadLetter struct {
	Number      int64      `json:"number"`
	EventID     string     `json:"eventId"`
	EventType   string     `json:"eventType"`
	Subject     string     `json:"subject,omitempty"`
	Reason      string     `json:"reason"`
	Advice      string     `json:"advice,omitempty"` // what to do about the reason, where that is not plain
	Attempts    int        `json:"attempts"`
	Outcome     string     `json:"lastOutcome,omitempty"`
	Status      int        `json:"lastStatus,omitempty"`
	Published   time.Time  `json:"published"`
	LastAttempt *time.Time `json:"lastAttempt,omitempty"`
	Died        time.Time  `json:"died"`
	// Written is the blob, file or position that it was written to outside the yard.
	Written  string     `json:"written,omitempty"`
	Redriven *time.Time `json:"redriven,omitempty"`
	Redrives int        `json:"redrives,omitempty"`
	// TraceID is the trace that the event belongs to, TraceParent how its publisher said so; both absent where it
	// belongs to none.
	TraceID     string `json:"traceId,omitempty"`
	TraceParent string `json:"traceparent,omitempty"`
	// Event is the event as it would have been delivered; nil in lists.
	Event json.RawMessage `json:"event,omitempty"`
}

// DeadLetterCounts is how many dead letters there are.
type DeadLetterCounts struct {
	Kept      int64      `json:"kept"`
	Unwritten int64      `json:"unwritten"`
	Dropped   int64      `json:"dropped"`
	Problem   string     `json:"problem,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

// DeadLetterPage is some dead letters; Next is where to go on, 0 at the end.
type DeadLetterPage struct {
	Letters []DeadLetter `json:"letters"`
	Next    int64        `json:"next,omitempty"`
	Total   int64        `json:"total"`
}

// DeadLetterChoice says which dead letters are meant; the zero value means all that were not
// redriven.
type DeadLetterChoice struct {
	Numbers   []int64 `json:"numbers,omitempty"`
	EventID   string  `json:"eventId,omitempty"`
	EventType string  `json:"eventType,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Outcome   string  `json:"outcome,omitempty"`
	Since     string  `json:"since,omitempty"`
	Until     string  `json:"until,omitempty"`
	// Redriven means also those that were redriven already.
	Redriven bool `json:"redriven,omitempty"`
}

// All reports whether it chooses all that were not redriven.
func (c DeadLetterChoice) All() bool { return reflect.DeepEqual(c, DeadLetterChoice{}) }

// RedriveRequest delivers dead letters to their subscription again.
type RedriveRequest struct {
	DeadLetterChoice
	// From is the Next of the answer before; Max is how many dead letters are looked at.
	From   int64   `json:"from,omitempty"`
	Max    int     `json:"max,omitempty"`
	Rate   float64 `json:"rate,omitempty"`
	Force  bool    `json:"force,omitempty"`
	DryRun bool    `json:"dryRun,omitempty"`
}

// Redriven is what came of it. Skipped were redriven too often before. Next is where to go on, 0 at
// the end; the next request then repeats Until.
type Redriven struct {
	Redriven int    `json:"redriven"`
	Skipped  int    `json:"skipped"`
	Next     int64  `json:"next,omitempty"`
	Until    string `json:"until,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
}

// DeadLetters gives a page of dead letters. from is the Next of the page before, 0 at first; most
// bounds the page, 0 leaves that to the yard.
func (c *Client) DeadLetters(ctx context.Context, s SubscriptionRef, choice DeadLetterChoice, from int64, most int) (DeadLetterPage, error) {
	r := s.request(http.MethodGet, nil, "dead")
	for name, value := range map[string]string{
		"eventId": choice.EventID, "eventType": choice.EventType, "reason": choice.Reason, "outcome": choice.Outcome,
		"since": choice.Since, "until": choice.Until,
	} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if choice.Redriven {
		r.query.Set("redriven", "true")
	}
	if from > 0 {
		r.query.Set("from", strconv.FormatInt(from, 10))
	}
	if most > 0 {
		r.query.Set("max", strconv.Itoa(most))
	}
	return one[DeadLetterPage](ctx, c, r)
}

// DeadLetter gives one dead letter with its event.
func (c *Client) DeadLetter(ctx context.Context, s SubscriptionRef, number int64) (DeadLetter, error) {
	return one[DeadLetter](ctx, c, s.request(http.MethodGet, nil, "dead", strconv.FormatInt(number, 10)))
}

// Redrive delivers some dead letters again; the answer's Next says where to go on.
func (c *Client) Redrive(ctx context.Context, s SubscriptionRef, r RedriveRequest) (Redriven, error) {
	return one[Redriven](ctx, c.patient(handshakePatience), s.request(http.MethodPost, r, "redrive"))
}

// Purge deletes dead letters and returns how many.
func (c *Client) Purge(ctx context.Context, s SubscriptionRef, choice DeadLetterChoice) (int, error) {
	done, err := one[Purged](ctx, c, s.request(http.MethodPost, choice, "purge"))
	return done.Purged, err
}

// Purged is how many dead letters were deleted.
type Purged struct {
	Purged int `json:"purged"`
}
