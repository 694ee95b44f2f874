package spec

import (
	"reflect"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/functions/triage"
)

// Function is a program that the yard calls with the events of a hub.
var Function = Definition{
	Name: "function", Type: reflect.TypeFor[admin.FunctionRequest](),
	Fields: []Field{
		{Name: "name", Value: "name", Required: true, Help: "its name, 1 to 100 letters, digits, '-', '_' and '.'", Not: Create | Update, Because: nameIsAnArgument},
		{Name: "hub", Value: "name", Help: "name of the hub whose events it gets", Required: true, Not: Update, Because: isIdentity},
		{Name: "group", Value: "name", Help: "consumer group that it reads as, created if missing", Default: "one of the function's name", Not: Update, Because: isIdentity},
		{Name: "endpoint", Value: "URL", Help: "URL that is called with batches of events", Required: true},
		{Name: "format", Value: "format", Help: "what is sent", OneOf: []string{"cloudevents", "eventhubs"}, Default: "cloudevents"},
		{Name: "headers", Flag: "header", Value: "NAME=VALUE", Help: "header sent with every call, like 'Authorization=Bearer abc'; they replace all that there were", Secret: true},
		{Name: "batch", Flag: "max-events", Was: "batch", Value: "events", Help: "the most events of a call", Min: 1, Max: 10000, Default: "100"},
		{Name: "minBatch", Flag: "min-events", Was: "min-batch", Value: "events", Help: "wait for this many events, for at most maxWait", Min: 1, Max: 10000, Default: "1"},
		{Name: "maxWait", Value: "duration", Help: "how long to wait for minBatch events, a duration", Most: longest, Default: "1s", check: isDuration},
		{Name: "lanes", Value: "calls", Help: "this many calls at once for each partition, events of one key in order", Min: 1, Max: 1024, Default: "1"},
		{Name: "start", Value: "position", Help: "where partitions without checkpoint begin: earliest, latest or a time", Default: "earliest"},
		{Name: "timeout", Value: "duration", Help: "how long a call may take, a duration", Least: time.Millisecond, Most: longest, Default: "60s", check: isDuration},
		{Name: "retries", Value: "number", Help: "calls after the first, or forever", Default: strconv.Itoa(triage.DefaultRetries) + ", doubling, if no retry field is set"},
		{Name: "retryDelay", Value: "duration", Help: "wait before each retry, a duration", Most: longest, Default: triage.DefaultDelay.String(), check: isDuration},
		{Name: "retryMaxDelay", Value: "duration", Help: "the longest wait where the delay doubles, a duration", Most: longest, Default: "1m", check: isDuration},
		{Name: "exponential", Help: "double the delay each time, with jitter"},
		{Name: "poison", Value: "hub", Help: "where events go that used up their retries: a hub, topic:NAME or none", Default: "the hub NAME-poison, which is created"},
		{Name: "breaker", Value: "100/30s", Help: "more than so many failures in that time open the circuit; or off", Default: "100/30s", check: isBreaker},
		{Name: "probe", Value: "duration", Help: "how long an open circuit waits before it tries an event, a duration", Most: longest, Zero: "until somebody resumes it", Default: "0", check: isDuration},
		{Name: "probeMax", Value: "duration", Help: "the longest such wait, as it doubles each time, a duration", Most: longest, Default: "5m", check: isDuration},
		{Name: "countAttempts", Help: "count failed attempts for the breaker, not only events that used up their retries"},
		{Name: "notify", Value: "target", Help: "who is notified when the circuit opens: mailto:ops@example.com, or the URL of a webhook"},
		{Name: "target", Value: "events", Help: "how many waiting events are worth one instance", Min: 1, Default: "the batch"},
	},
}

// longest is the most that any time of a function may be.
const longest = 24 * time.Hour

const isIdentity = "checkpoints and circuit belong to the group: create another function"
