package httpclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/eventyard/eventyard/internal/api/functionwire"
)

// Functions lists all functions.
func (c *Client) Functions(ctx context.Context) ([]functionwire.Function, error) {
	var list struct {
		Functions []functionwire.Function `json:"functions"`
	}
	err := c.call(ctx, http.MethodGet, []string{"functions"}, nil, &list)
	return list.Functions, err
}

// Function shows one.
func (c *Client) Function(ctx context.Context, name string) (functionwire.Function, error) {
	return c.function(ctx, http.MethodGet, nil, name)
}

// CreateFunction makes one.
func (c *Client) CreateFunction(ctx context.Context, r functionwire.FunctionRequest) (functionwire.Function, error) {
	var f functionwire.Function
	err := c.call(ctx, http.MethodPost, []string{"functions"}, r, &f)
	return f, err
}

// UpdateFunction changes one.
func (c *Client) UpdateFunction(ctx context.Context, name string, r functionwire.FunctionRequest) (functionwire.Function, error) {
	return c.function(ctx, http.MethodPatch, r, name)
}

// PauseFunction stops its calls; ResumeFunction lets it go on.
func (c *Client) PauseFunction(ctx context.Context, name, reason string) (functionwire.Function, error) {
	return c.function(ctx, http.MethodPost, functionwire.CircuitRequest{Reason: reason}, name, "pause")
}

// ResumeFunction lets a function go on from its checkpoint.
func (c *Client) ResumeFunction(ctx context.Context, name string) (functionwire.Function, error) {
	return c.function(ctx, http.MethodPost, nil, name, "resume")
}

// DeleteFunction stops one and forgets it.
func (c *Client) DeleteFunction(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, []string{"functions", name}, nil, nil)
}

func (c *Client) function(ctx context.Context, method string, body any, path ...string) (functionwire.Function, error) {
	var f functionwire.Function
	err := c.call(ctx, method, append([]string{"functions"}, path...), body, &f)
	return f, err
}

// WhichCircuit names a circuit; Hub and Group are needed only where several groups have a function of that name.
type WhichCircuit struct{ Function, Hub, Group string }

func (w WhichCircuit) request(method string, body any, rest ...string) request {
	query := url.Values{}
	if w.Hub != "" {
		query.Set("hub", w.Hub)
	}
	if w.Group != "" {
		query.Set("group", w.Group)
	}
	return request{method: method, path: append([]string{"circuits", w.Function}, rest...), query: query, body: body}
}

// Circuits lists those of all functions.
func (c *Client) Circuits(ctx context.Context) ([]functionwire.Circuit, error) {
	var list struct {
		Circuits []functionwire.Circuit `json:"circuits"`
	}
	err := c.call(ctx, http.MethodGet, []string{"circuits"}, nil, &list)
	return list.Circuits, err
}

// Circuit shows one.
func (c *Client) Circuit(ctx context.Context, w WhichCircuit) (functionwire.Circuit, error) {
	var one functionwire.Circuit
	err := c.ask(ctx, w.request(http.MethodGet, nil), &one)
	return one, err
}

// OpenCircuit holds a function in every instance.
func (c *Client) OpenCircuit(ctx context.Context, w WhichCircuit, reason string) (functionwire.Circuit, error) {
	var one functionwire.Circuit
	err := c.ask(ctx, w.request(http.MethodPost, functionwire.CircuitRequest{Reason: reason}, "open"), &one)
	return one, err
}

// CloseCircuit lets it go on.
func (c *Client) CloseCircuit(ctx context.Context, w WhichCircuit, reason string) (functionwire.Circuit, error) {
	var one functionwire.Circuit
	err := c.ask(ctx, w.request(http.MethodPost, functionwire.CircuitRequest{Reason: reason}, "close"), &one)
	return one, err
}

// PoisonQuery chooses poison events; an ID gives that one, with its event.
type PoisonQuery struct {
	Function, Source, ID, Since string
	Redriven                    bool
	Max                         int
}

func (q PoisonQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"function": q.Function, "source": q.Source, "id": q.ID, "since": q.Since} {
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

// Poison lists the poison events of a hub, the newest first.
func (c *Client) Poison(ctx context.Context, hub string, q PoisonQuery) ([]functionwire.PoisonEvent, error) {
	var list struct {
		Poison []functionwire.PoisonEvent `json:"poison"`
	}
	err := c.ask(ctx, request{method: http.MethodGet, path: []string{"hubs", hub, "poison"}, query: q.values()}, &list)
	return list.Poison, err
}

// RedrivePoison publishes some again to the hub they came from; while More is told, ask again, for the same hub.
func (c *Client) RedrivePoison(ctx context.Context, hub string, r functionwire.RedriveRequest) (functionwire.Redriven, error) {
	var done functionwire.Redriven
	err := c.patient(handshakePatience).call(ctx, http.MethodPost, []string{"hubs", hub, "poison", "redrive"}, r, &done)
	return done, err
}

// TestNotice sends a notice to a target.
func (c *Client) TestNotice(ctx context.Context, target string) error {
	return c.patient(handshakePatience).call(ctx, http.MethodPost, []string{"notices", "test"}, map[string]string{"target": target}, nil)
}
