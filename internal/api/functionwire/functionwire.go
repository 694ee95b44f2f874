// Package functionwire is the JSON of the calls under /api/v1 that manage functions, circuits and poison events,
// spoken by the HTTP listener on one side and the command line on the other. It knows neither.
package functionwire

import (
	"encoding/json"
	"time"
)

// FunctionRequest creates a function, or changes one: nil leaves, or means the default. Durations are texts like 30s.
type FunctionRequest struct {
	Name     string  `json:"name,omitempty"`
	Hub      string  `json:"hub,omitempty"`
	Group    string  `json:"group,omitempty"`
	Endpoint *string `json:"endpoint,omitempty"`
	// Format is cloudevents or eventhubs. Headers replace all that there were; their values are secrets.
	Format  *string           `json:"format,omitempty"`
	Headers map[string]string `json:"headers,omitzero"`

	Batch    *int    `json:"batch,omitempty"`
	MinBatch *int    `json:"minBatch,omitempty"`
	MaxWait  *string `json:"maxWait,omitempty"`
	Lanes    *int    `json:"lanes,omitempty"`
	// Start is earliest, latest or a time: where partitions begin that have no checkpoint.
	Start   *string `json:"start,omitempty"`
	Timeout *string `json:"timeout,omitempty"`

	// Retries after the first call; -1: for ever.
	Retries       *int    `json:"retries,omitempty"`
	RetryDelay    *string `json:"retryDelay,omitempty"`
	RetryMaxDelay *string `json:"retryMaxDelay,omitempty"`
	Exponential   *bool   `json:"exponential,omitempty"`

	// Poison is a hub, topic:NAME or none.
	Poison *string `json:"poison,omitempty"`
	// Breaker is like 100/30s, or off. Probe is how long an open circuit waits before it tries an event; 0: for ever.
	Breaker       *string `json:"breaker,omitempty"`
	Probe         *string `json:"probe,omitempty"`
	ProbeMax      *string `json:"probeMax,omitempty"`
	CountAttempts *bool   `json:"countAttempts,omitempty"`

	// Notify are mailto: and http(s): URLs.
	Notify []string `json:"notify,omitzero"`
	// Target is how many waiting events are worth one instance.
	Target *int `json:"target,omitempty"`
}

// Function is a function as the yard shows it.
type Function struct {
	Name     string `json:"name"`
	Hub      string `json:"hub"`
	Group    string `json:"group"`
	Endpoint string `json:"endpoint"`
	Format   string `json:"format"`
	// Headers are the names alone: their values may be secrets.
	Headers []string `json:"headers,omitempty"`

	// State is running, paused, open, half-open, starting or failing; Problem says why it is failing.
	State   string `json:"state"`
	Problem string `json:"problem,omitempty"`
	// Lag is how many events wait, OldestSeconds how long the oldest of them has; absent where it is not known.
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
	// Poison is where events go that used up their retries, Poisoned how many lie there and were not redriven (absent where that cannot be
	// known), and PoisonedMore that there may be more: neither very many nor very large ones are all counted.
	Poison       string `json:"poison"`
	Poisoned     *int   `json:"poisoned,omitempty"`
	PoisonedMore bool   `json:"poisonedMore,omitempty"`
	// Counts are since this yard started.
	Counts Counts `json:"counts"`

	Batch         int      `json:"batch"`
	MinBatch      int      `json:"minBatch,omitempty"`
	MaxWait       string   `json:"maxWait,omitempty"`
	Lanes         int      `json:"lanes,omitempty"`
	Start         string   `json:"start"`
	Timeout       string   `json:"timeout"`
	Retries       int      `json:"retries"`
	RetryDelay    string   `json:"retryDelay"`
	RetryMaxDelay string   `json:"retryMaxDelay,omitempty"`
	Exponential   bool     `json:"exponential"`
	Breaker       string   `json:"breaker"`
	Probe         string   `json:"probe,omitempty"`
	ProbeMax      string   `json:"probeMax,omitempty"`
	CountAttempts bool     `json:"countAttempts,omitempty"`
	Notify        []string `json:"notify,omitempty"`
	Target        int      `json:"target"`

	Created time.Time `json:"created"`
}

// Counts are of calls and events.
type Counts struct {
	Calls    int64 `json:"calls"`
	Failed   int64 `json:"failedCalls"`
	Timeouts int64 `json:"timeouts"`
	Done     int64 `json:"done"`
	Retried  int64 `json:"retried"`
	Poisoned int64 `json:"poisoned"`
	Skipped  int64 `json:"skipped"`
	Dropped  int64 `json:"dropped"`
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
}

// Failure is one.
type Failure struct {
	At        time.Time `json:"at"`
	Partition string    `json:"partition,omitempty"`
	Sequence  int64     `json:"sequence"`
	Error     string    `json:"error"`
}

// Circuit is that of a function, wherever it runs.
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
	// Yard: it is a function of the yard's own.
	Yard bool `json:"yard"`
}

// CircuitRequest opens or closes one.
type CircuitRequest struct {
	Reason string `json:"reason,omitempty"`
}

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
	// Redrives is how often it had been redriven when it was put away; Redriven: it was since.
	Redrives int  `json:"redrives,omitempty"`
	Redriven bool `json:"redriven"`
	// Reference: the event was too large to be put away, and is still where hub, partition and sequence say, as long as that is kept.
	Reference bool `json:"reference,omitempty"`
	// At is where it lies in the poison hub.
	At PoisonPosition `json:"at"`
	// Stack and Event are there where one is asked for by its id.
	Stack string          `json:"stack,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
}

// PoisonPosition is a place in a poison hub.
type PoisonPosition struct {
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// RedriveRequest redrives: all that were not yet, or those chosen.
type RedriveRequest struct {
	Function string `json:"function,omitempty"`
	// Source is the hub they came from; needed where they name several.
	Source string   `json:"source,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	// Since is a time, or how long ago.
	Since    string `json:"since,omitempty"`
	Redriven bool   `json:"redriven,omitempty"`
	Force    bool   `json:"force,omitempty"`
	Rate     int    `json:"rate,omitempty"`
	Max      int    `json:"max,omitempty"`
}

// Redriven is what came of it.
type Redriven struct {
	Redriven int `json:"redriven"`
	// Failed could not be redriven this time, those from before included.
	Failed int `json:"failed"`
	// Hub is where they went; empty: none did.
	Hub string `json:"hub,omitempty"`
	// More: there are more, ask again, with Hub as the source. Errors are the first few.
	More   bool     `json:"more"`
	Errors []string `json:"errors,omitempty"`
}
