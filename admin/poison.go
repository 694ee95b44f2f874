package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// PoisonEvent is an event that a function could not handle.
type PoisonEvent struct {
	ID        string `json:"id"`
	Function  string `json:"function"`
	Hub       string `json:"hub"`
	Group     string `json:"group"`
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
	Key       string `json:"key,omitempty"`

	Reason   string     `json:"reason"`
	Attempts int        `json:"attempts"`
	Deaths   int        `json:"deaths,omitempty"`
	Enqueued *time.Time `json:"enqueued,omitempty"`
	Poisoned *time.Time `json:"poisoned,omitempty"`
	Instance string     `json:"instance,omitempty"`
	// Redrives is how often it had been redriven when it was set aside; Redriven: it was since.
	Redrives int  `json:"redrives,omitempty"`
	Redriven bool `json:"redriven"`
	// Reference: the event was too large to be set aside, and is still where Hub, Partition and
	// Sequence say, as long as the hub keeps it.
	Reference bool `json:"reference,omitempty"`
	// At is its position in the poison hub.
	At PoisonPosition `json:"at"`
	// Stack and Event are there where one is asked for by its id.
	Stack string          `json:"stack,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
}

// PoisonPosition is a position in a poison hub.
type PoisonPosition struct {
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// PoisonQuery chooses poison events; an ID gives that one, with its event.
type PoisonQuery struct {
	Function, Source, ID, Since, Until string
	Redriven                           bool
	Max                                int
}

func (q PoisonQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"function": q.Function, "source": q.Source, "id": q.ID, "since": q.Since, "until": q.Until} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Redriven {
		v.Set("redriven", "true")
	}
	if q.Max > 0 {
		v.Set("max", strconv.Itoa(q.Max))
	}
	return v
}

// PoisonRedriveRequest publishes poison events again: all that were not redriven yet, or those
// chosen.
type PoisonRedriveRequest struct {
	Function string `json:"function,omitempty"`
	// Source is the hub they came from; needed where they name several.
	Source string   `json:"source,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	// Since and Until are times, or how long ago.
	Since    string `json:"since,omitempty"`
	Until    string `json:"until,omitempty"`
	Redriven bool   `json:"redriven,omitempty"`
	Force    bool   `json:"force,omitempty"`
	Rate     int    `json:"rate,omitempty"`
	Max      int    `json:"max,omitempty"`
	// DryRun: they are only counted, all at once.
	DryRun bool `json:"dryRun,omitempty"`
}

// PoisonRedriven is what came of it.
type PoisonRedriven struct {
	Redriven int `json:"redriven"`
	// Failed could not be redriven this time, those from before included.
	Failed int `json:"failed"`
	// Hub is where they went; empty: none did.
	Hub string `json:"hub,omitempty"`
	// More: there are more, ask again, with Hub as the source. Errors are the first few.
	More   bool     `json:"more"`
	Errors []string `json:"errors,omitempty"`
	// DryRun: nothing was redriven.
	DryRun bool `json:"dryRun,omitempty"`
}

// Poison lists the poison events of a hub, the newest first.
func (c *Client) Poison(ctx context.Context, hub string, q PoisonQuery) ([]PoisonEvent, error) {
	return list[PoisonEvent](ctx, c, "poison", request{method: http.MethodGet, path: []string{"hubs", hub, "poison"}, query: q.values()})
}

// RedrivePoison publishes some poison events again to the hub they came from; while the answer says
// More, ask again, for the same hub.
func (c *Client) RedrivePoison(ctx context.Context, hub string, r PoisonRedriveRequest) (PoisonRedriven, error) {
	return one[PoisonRedriven](ctx, c.patient(handshakePatience), request{method: http.MethodPost, path: []string{"hubs", hub, "poison", "redrive"}, body: r})
}
