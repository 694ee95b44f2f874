package admin

import (
	"context"
	"net/http"
	"time"
)

// FunctionRequest creates a function, or changes one. Nil says nothing: the default holds, or what
// there is stays. Durations are texts like 30s.
type FunctionRequest struct {
	Name string `json:"name,omitempty"`
	// Hub is whose events it gets, Group the consumer group that it reads as; empty: one of the
	// function's name.
	Hub      string  `json:"hub,omitempty"`
	Group    string  `json:"group,omitempty"`
	Endpoint *string `json:"endpoint,omitempty"`
	// Format is cloudevents or eventhubs. Headers replace all that there were; their values are
	// secrets, and have to be given again with another endpoint.
	Format  *string           `json:"format,omitempty"`
	Headers map[string]string `json:"headers,omitzero"`

	// Batch is the most events of a call; MinBatch so many are waited for, MaxWait at most.
	Batch    *int    `json:"batch,omitempty"`
	MinBatch *int    `json:"minBatch,omitempty"`
	MaxWait  *string `json:"maxWait,omitempty"`
	// Lanes is the number of calls at once for each partition; events of one key stay in order.
	Lanes *int `json:"lanes,omitempty"`
	// Start is where partitions without checkpoint begin: earliest, latest or a time.
	Start   *string `json:"start,omitempty"`
	Timeout *string `json:"timeout,omitempty"`

	// Retries after the first call; -1: forever.
	Retries       *Retries `json:"retries,omitempty"`
	RetryDelay    *string  `json:"retryDelay,omitempty"`
	RetryMaxDelay *string  `json:"retryMaxDelay,omitempty"`
	Exponential   *bool    `json:"exponential,omitempty"`

	// Poison is where events go that used up their retries: a hub, topic:NAME or none.
	Poison *string `json:"poison,omitempty"`
	// Breaker is like 100/30s, or off. Probe is how long an open circuit waits before it tries an
	// event; 0: forever.
	Breaker       *string `json:"breaker,omitempty"`
	Probe         *string `json:"probe,omitempty"`
	ProbeMax      *string `json:"probeMax,omitempty"`
	CountAttempts *bool   `json:"countAttempts,omitempty"`

	// Notify are mailto: and http(s): URLs. One that ends with HiddenPath is the present one.
	Notify []string `json:"notify,omitzero"`
	// Target is how many waiting events are worth one instance.
	Target *int `json:"target,omitempty"`
}

// HiddenPath stands for what is behind the host of a webhook's URL that is shown. Written back, it
// means what is there.
const HiddenPath = "/..."

// Retries is a number of calls after the first; Forever never gives up.
type Retries int

// Forever retries without end.
const Forever Retries = -1

// Function is a function as the yard shows it.
type Function struct {
	Name     string `json:"name"`
	Hub      string `json:"hub"`
	Group    string `json:"group"`
	Endpoint string `json:"endpoint"`
	Format   string `json:"format"`
	// Headers are their names alone: the values may be secrets.
	Headers []string `json:"headers,omitempty"`

	// State is running, paused, open, half-open, starting or failing; Problem says why it is
	// failing.
	State   string `json:"state"`
	Problem string `json:"problem,omitempty"`
	// Lag is how many events wait, OldestSeconds how long the oldest of them has; nil: not known.
	Lag           *int64   `json:"lag,omitempty"`
	OldestSeconds *float64 `json:"oldestSeconds,omitempty"`
	// Failures are those within the breaker's window, over all instances.
	Failures    int          `json:"failures"`
	Circuit     CircuitState `json:"circuit"`
	Partitions  int          `json:"partitions"`
	Instances   int          `json:"instances"`
	Recommended int          `json:"recommendedInstances"`
	LastError   string       `json:"lastError,omitempty"`
	LastErrorAt *time.Time   `json:"lastErrorAt,omitempty"`
	// Poison is where events go that used up their retries, Poisoned how many are there and were
	// not redriven (nil: not known), and PoisonedMore that there may be more: neither very many nor
	// very large ones are all counted.
	Poison       string `json:"poison"`
	Poisoned     *int   `json:"poisoned,omitempty"`
	PoisonedMore bool   `json:"poisonedMore,omitempty"`
	// Counts are since this yard started.
	Counts FunctionCounts `json:"counts"`

	Batch         int    `json:"batch"`
	MinBatch      int    `json:"minBatch,omitempty"`
	MaxWait       string `json:"maxWait,omitempty"`
	Lanes         int    `json:"lanes,omitempty"`
	Start         string `json:"start"`
	Timeout       string `json:"timeout"`
	Retries       int    `json:"retries"`
	RetryDelay    string `json:"retryDelay"`
	RetryMaxDelay string `json:"retryMaxDelay,omitempty"`
	Exponential   bool   `json:"exponential"`
	Breaker       string `json:"breaker"`
	Probe         string `json:"probe,omitempty"`
	ProbeMax      string `json:"probeMax,omitempty"`
	CountAttempts bool   `json:"countAttempts,omitempty"`
	// Notify shows no more of webhooks than the host.
	Notify []string `json:"notify,omitempty"`
	Target int      `json:"target"`

	Created time.Time `json:"created"`
	// Stats is nil unless a list was asked for it.
	Stats *FunctionStats `json:"stats,omitempty"`
}

// FunctionCounts are of calls and events.
type FunctionCounts struct {
	Calls    int64 `json:"calls"`
	Failed   int64 `json:"failedCalls"`
	Timeouts int64 `json:"timeouts"`
	Done     int64 `json:"done"`
	Retried  int64 `json:"retried"`
	Poisoned int64 `json:"poisoned"`
	Skipped  int64 `json:"skipped"`
	Dropped  int64 `json:"dropped"`
}

// Functions lists all functions.
func (c *Client) Functions(ctx context.Context) ([]Function, error) {
	return list[Function](ctx, c, "functions", request{method: http.MethodGet, path: []string{"functions"}})
}

// Function shows one function.
func (c *Client) Function(ctx context.Context, name string) (Function, error) {
	return c.function(ctx, http.MethodGet, nil, name)
}

// CreateFunction creates a function.
func (c *Client) CreateFunction(ctx context.Context, r FunctionRequest) (Function, error) {
	return c.function(ctx, http.MethodPost, r)
}

// UpdateFunction changes a function. Its name, hub and group cannot be changed.
func (c *Client) UpdateFunction(ctx context.Context, name string, r FunctionRequest) (Function, error) {
	return c.function(ctx, http.MethodPatch, r, name)
}

// PauseFunction stops the calls of a function in every instance.
func (c *Client) PauseFunction(ctx context.Context, name, reason string) (Function, error) {
	return c.function(ctx, http.MethodPost, CircuitRequest{Reason: reason}, name, "pause")
}

// ResumeFunction lets a function go on from its checkpoint.
func (c *Client) ResumeFunction(ctx context.Context, name string) (Function, error) {
	return c.function(ctx, http.MethodPost, nil, name, "resume")
}

// DeleteFunction stops a function and deletes its definition.
func (c *Client) DeleteFunction(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, []string{"functions", name}, nil, nil)
}

func (c *Client) function(ctx context.Context, method string, body any, path ...string) (Function, error) {
	var f Function
	err := c.call(ctx, method, append([]string{"functions"}, path...), body, &f)
	return f, err
}

// TestNotice sends a notice to a target, so that the settings of mail are tried before they are
// needed.
func (c *Client) TestNotice(ctx context.Context, target string) error {
	return c.patient(handshakePatience).call(ctx, http.MethodPost, []string{"notices", "test"}, NoticeTest{target}, nil)
}

// NoticeTest names who gets a notice: mailto:ADDRESS, or the URL of a webhook.
type NoticeTest struct {
	Target string `json:"target"`
}
