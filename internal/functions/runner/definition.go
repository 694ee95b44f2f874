package runner

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/processor"
)

// Definition is a function as it is stored.
type Definition struct {
	// Name is 1 to 100 letters, digits, '-', '_' and '.'. Case matters, but no two names differ in
	// case alone.
	Name string `json:"name"`
	// Hub is required; Group empty: one of the function's name. Each function has a group to
	// itself, or two would share the events.
	Hub   string `json:"hub"`
	Group string `json:"group"`
	// Endpoint is the URL that is called, Format cloudevents (or empty) or eventhubs, Headers what
	// is sent with every call (secret).
	Endpoint string            `json:"endpoint"`
	Format   string            `json:"format,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	// Batch is the most events of a call (0: 100), MinBatch waited for at most MaxWait (0: 1, and 1
	// s).
	Batch    int           `json:"batch,omitempty"`
	MinBatch int           `json:"minBatch,omitempty"`
	MaxWait  time.Duration `json:"maxWait,omitempty"`
	// Lanes is the concurrency per partition by key (0: 1); Start is earliest (or empty), latest,
	// or an RFC 3339 time. Timeout 0: 60 s.
	Lanes   int           `json:"lanes,omitempty"`
	Start   string        `json:"start,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Since is when latest was said, which the registry notes: a partition without a checkpoint
	// begins there, whenever a host first reads it.
	Since time.Time `json:"since,omitzero"`
	// Retries after the first call, nil: 5, Exponential if RetryDelay is not given either;
	// negative: for ever. RetryDelay 0: 250 ms. Exponential doubles it each time up to RetryMax (0:
	// 1 min).
	Retries     *int          `json:"retries,omitempty"`
	RetryDelay  time.Duration `json:"retryDelay,omitempty"`
	RetryMax    time.Duration `json:"retryMax,omitempty"`
	Exponential bool          `json:"exponential,omitempty"`
	// Poison is a hub, topic:NAME, or none; empty: NAME-poison, which is made.
	Poison string `json:"poison,omitempty"`
	// Breaker; Failures negative: none.
	Breaker breaker.Policy `json:"breaker,omitzero"`
	// Notify are mailto: and http(s): URLs.
	Notify []string `json:"notify,omitempty"`
	// Target is how many waiting events are worth one instance; 0: Batch.
	Target  int       `json:"target,omitempty"`
	Created time.Time `json:"created,omitzero"`
}

// Values of Definition's fields.
const (
	FormatCloudEvents = "cloudevents"
	FormatEventHubs   = "eventhubs"
	StartEarliest     = "earliest"
	StartLatest       = "latest"
	PoisonNone        = "none"
	topicPrefix       = "topic:"
	poisonSuffix      = "-poison"
)

const (
	defaultBatch    = 100
	defaultMaxWait  = time.Second
	defaultTimeout  = time.Minute
	defaultRetryMax = time.Minute
	defaultFailures = 100
	defaultWithin   = 30 * time.Second
	// idleEvery is how often an idle partition sees whether a checkpoint had to wait for the
	// circuit. Most of a thousand functions are idle.
	idleEvery = 5 * time.Second
)

// withDefaults fills in what was not said, so that people see what holds.
func (d Definition) withDefaults() Definition {
	fill(&d.Group, d.Name)
	fill(&d.Format, FormatCloudEvents)
	fill(&d.Batch, defaultBatch)
	fill(&d.MinBatch, 1)
	fill(&d.MaxWait, defaultMaxWait)
	fill(&d.Lanes, 1)
	fill(&d.Start, StartEarliest)
	fill(&d.Timeout, defaultTimeout)
	if d.Retries == nil {
		d.Retries, d.Exponential = new(triage.DefaultRetries), d.Exponential || d.RetryDelay == 0
	}
	fill(&d.RetryDelay, triage.DefaultDelay)
	fill(&d.Poison, d.Name+poisonSuffix)
	if d.Breaker.Failures >= 0 {
		fill(&d.Breaker.Failures, defaultFailures)
		fill(&d.Breaker.Within, defaultWithin)
	}
	return d
}

// withDerived fills in what follows other settings too. It is not stored: where those change it
// does.
func (d Definition) withDerived() Definition {
	if d.Exponential {
		fill(&d.RetryMax, max(defaultRetryMax, d.RetryDelay))
	}
	fill(&d.Target, d.Batch)
	return d
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// group is whose records the function's are.
func (d Definition) group(namespace string) processor.Group {
	return processor.Group{Namespace: namespace, Hub: d.Hub, Group: d.Group}
}

// sameGroup tells whether two groups are one, however they are spelled.
func sameGroup(a, b processor.Group) bool {
	a, b = a.Canonical(), b.Canonical()
	return a.Hub == b.Hub && a.Group == b.Group
}

// poisonTopic is the topic that poison goes to; false: it goes to a hub, or nowhere.
func (d Definition) poisonTopic() (string, bool) { return strings.CutPrefix(d.Poison, topicPrefix) }

// PoisonHub is the hub that poison events go to, if it is one.
func (d Definition) PoisonHub() (string, bool) {
	_, topic := d.poisonTopic()
	return d.Poison, !topic && d.Poison != PoisonNone
}

// binding is the definition in the words of the host. d has its defaults and was checked.
func (d Definition) binding(sink functions.Sink) functions.Binding {
	d = d.withDerived()
	position, _ := d.position()
	b := functions.Binding{
		Hub: d.Hub, Group: d.Group, Start: func(string) hub.Position { return position },
		MaxBatch: d.Batch, MinBatch: d.MinBatch, MaxWait: d.MaxWait, Lanes: d.Lanes, Timeout: d.Timeout,
		Retry:   functions.Retry{Retries: *d.Retries, Delay: d.RetryDelay, Max: d.RetryMax, Exponential: d.Exponential},
		Poison:  d.Poison,
		Breaker: functions.Breaker{Failures: d.Breaker.Failures, Within: d.Breaker.Within, Attempts: d.Breaker.Attempts},
		Target:  d.Target,
	}
	b.Breaker.Probe, b.Breaker.ProbeMax = d.Breaker.Probe, d.Breaker.ProbeMax
	if d.MinBatch == 1 { // no batch is to fill
		b.MaxWait = idleEvery
	}
	if *d.Retries == 0 {
		b.Retry = functions.None()
	}
	if d.Breaker.Failures < 0 {
		b.Breaker.Failures, b.Breaker.Within, b.Breaker.Off = 0, 0, true
	}
	if _, topic := d.poisonTopic(); topic {
		b.Poison, b.PoisonTo = "", sink
	}
	return b
}

func (d Definition) header() http.Header {
	header := make(http.Header, len(d.Headers))
	for name, value := range d.Headers {
		header.Set(name, value)
	}
	return header
}

// position is where partitions begin that have no checkpoint.
func (d Definition) position() (hub.Position, error) {
	switch strings.ToLower(d.Start) {
	case "", StartEarliest:
		return hub.Earliest, nil
	case StartLatest:
		if d.Since.IsZero() {
			return hub.Latest, nil
		}
		return hub.Since(d.Since.Add(-time.Millisecond)), nil // what came in the same millisecond may have come behind
	}
	t, err := time.Parse(time.RFC3339, d.Start)
	if err != nil {
		return hub.Position{}, fmt.Errorf("start %.64q: use earliest, latest or a time like 2026-11-15T12:00:00Z", d.Start)
	}
	return hub.Since(t), nil
}
