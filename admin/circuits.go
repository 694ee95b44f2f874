package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Circuit is the circuit breaker of a function, wherever it runs.
type Circuit struct {
	Function string `json:"function"`
	Hub      string `json:"hub"`
	Group    string `json:"group"`
	CircuitState
	// Failures are those within the window, Total those since the instances started.
	Failures  int              `json:"failures"`
	Total     int64            `json:"total"`
	Instances map[string]int64 `json:"instances,omitempty"` // failures in all, by instance
	Lag       *int64           `json:"lag,omitempty"`
	// Yard: the yard runs the function itself.
	Yard bool `json:"yard"`
}

// CircuitState is the state of a circuit.
type CircuitState struct {
	State    string     `json:"state"`
	Term     int64      `json:"term"`
	Incident string     `json:"incident,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	By       string     `json:"by,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	// Opened is when the incident began, Errors what it began with.
	Opened *time.Time `json:"opened,omitempty"`
	Errors []Failure  `json:"errors,omitempty"`
	// Probes are those of this incident that failed.
	Probes int `json:"failedProbes,omitempty"`
	// Trying is the event that By tries while the circuit is half-open; nil: that is not known, or not yet.
	Trying *TriedEvent `json:"trying,omitempty"`
}

// TriedEvent is where the event is that is tried, in the hub of the function.
type TriedEvent struct {
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// Failure is one failure of a function.
type Failure struct {
	At        time.Time `json:"at"`
	Partition string    `json:"partition,omitempty"`
	Sequence  int64     `json:"sequence"`
	Error     string    `json:"error"`
}

// CircuitRequest opens or closes a circuit.
type CircuitRequest struct {
	Reason string `json:"reason,omitempty"`
}

// CircuitRef names a circuit; Hub and Group are needed only where several groups have a function of
// that name.
type CircuitRef struct{ Function, Hub, Group string }

func (r CircuitRef) request(method string, body any, rest ...string) request {
	query := url.Values{}
	if r.Hub != "" {
		query.Set("hub", r.Hub)
	}
	if r.Group != "" {
		query.Set("group", r.Group)
	}
	return request{method: method, path: append([]string{"circuits", r.Function}, rest...), query: query, body: body}
}

// Circuits lists the circuits of all functions.
func (c *Client) Circuits(ctx context.Context) ([]Circuit, error) {
	return list[Circuit](ctx, c, "circuits", request{method: http.MethodGet, path: []string{"circuits"}})
}

// Circuit shows one circuit.
func (c *Client) Circuit(ctx context.Context, r CircuitRef) (Circuit, error) {
	return one[Circuit](ctx, c, r.request(http.MethodGet, nil))
}

// OpenCircuit stops a function in every instance.
func (c *Client) OpenCircuit(ctx context.Context, r CircuitRef, reason string) (Circuit, error) {
	return one[Circuit](ctx, c, r.request(http.MethodPost, CircuitRequest{Reason: reason}, "open"))
}

// CloseCircuit lets a function go on.
func (c *Client) CloseCircuit(ctx context.Context, r CircuitRef, reason string) (Circuit, error) {
	return one[Circuit](ctx, c, r.request(http.MethodPost, CircuitRequest{Reason: reason}, "close"))
}
