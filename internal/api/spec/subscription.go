package spec

import (
	"reflect"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/signature"
)

// Subscription says who gets which events of a topic or a hub.
var Subscription = Definition{
	Name: "subscription", Type: reflect.TypeFor[admin.SubscriptionRequest](),
	Fields: []Field{
		{Name: "name", Value: "name", Required: true, Help: "its name, " + gridName(MaxSubscriptionName), Not: Create | Update, Because: nameIsAnArgument, check: CheckSubscriptionName},
		{Name: "topic", Value: "name", Help: "name of the topic that the events come from"},
		{Name: "sourceHub", Value: "name", Help: "name of the hub that they come from instead"},
		{Name: "domainTopic", Value: "name", Help: "name of the one topic that they come from where the topic is a domain", Needs: "topic", check: CheckDomainTopic},

		{Name: "endpoint", Value: "URL", Help: "URL of the webhook that gets them"},
		{Name: "hub", Value: "name", Help: "name of the hub that gets them instead"},
		{Name: "pull", Help: "let clients receive them instead"},
		{Name: "pull.lock", Flag: "lock", Value: "duration", Help: "how long received events belong to their receiver, a duration", Least: time.Second, Most: 24 * time.Hour, Default: "60s", Needs: "pull", check: isWait},
		{Name: "pull.maxDeliveries", Flag: "max-deliveries", Value: "number", Help: "how often an event is given to a receiver", Min: 1, Max: 10, Default: "10", Needs: "pull"},

		{Name: "types", Flag: "type", Value: "type", Help: "only events of this type"},
		{Name: "subjectBeginsWith", Value: "text", Help: "only subjects that begin with this"},
		{Name: "subjectEndsWith", Value: "text", Help: "only subjects that end with this"},
		{Name: "subjectCaseSensitive", Help: "compare subjects case-sensitively"},
		{Name: "filters", Flag: "filter", Value: "filter", Help: "only events that pass this filter, like 'data.k NumberGreaterThan 5'"},
		{Name: "arrays", Flag: "filter-arrays", Help: "let filters look into arrays"},

		{Name: "schema", Value: "schema", Help: "what is delivered: eventgrid, cloudevents or custom",
			Default: "cloudevents for topics of CloudEvents, for hubs and with pull; else eventgrid, also for custom topics", check: isSchema},
		{Name: "binary", Help: "CloudEvents in binary mode"},
		{Name: "maxEvents", Value: "number", Help: "events in one request", Min: 1, Max: 5000, Default: "1"},
		{Name: "preferredKib", Value: "number", Help: "preferred KiB of a request", Min: 1, Max: 1024, Default: "64"},

		{Name: "attempts", Value: "number", Help: "attempts for each event", Min: 1, Max: retry.DefaultAttempts, Default: "30"},
		{Name: "ttl", Value: "duration", Help: "how long an event may be tried, a duration", Least: retry.MinTimeToLive, Most: retry.DefaultTimeToLive, Default: "24h", check: isWait},
		{Name: "retrySchedule", Value: "durations", Default: "10s,30s,1m,5m,10m,30m,1h,3h,6h,12h",
			Help: "waits between attempts, like 1s,2s,5s, the last repeated; it also sets the least waits by status to zero"},
		{Name: "retryFloors", Flag: "retry-floor", Value: "status", Help: "least wait after a status, like 503=5s or other=1s"},
		{Name: "noRetry", Value: "statuses", Help: "statuses that are given up at once, like 400,413, or none", Default: "400,401,403,404,413"},
		{Name: "maxRetryAfter", Value: "duration", Default: "1h", Most: retry.MaxWait, check: isWait,
			Help: "the longest wait that a receiver may ask for by Retry-After, a duration, negative to ignore Retry-After"},
		{Name: "deadLetter", Value: "target", Help: "where undeliverable events go: yard, folder:DIR, blob:URL, blob:ACCOUNT/CONTAINER or hub:NAME", Default: "none, they are dropped"},
		{Name: "deadLetterKey", Value: "text", Help: "key of the storage account, where the URL has no signature", Secret: true},

		{Name: "headers", Flag: "header", Value: "NAME=VALUE", Help: "header of each request, NAME=VALUE, or NAME={data.path} from the event"},
		{Name: "headers", Flag: "secret-header", Value: "NAME=VALUE", Help: "the same, hidden unless secrets are asked for, and never sent to another receiver", set: setSecretHeader,
			Not: API | File, Because: "there a header says itself that it is secret"},
		{Name: "sign", Value: "algorithm", Help: "make a key and sign requests (Standard Webhooks)", OneOf: []string{signature.HMAC, signature.Ed25519, "none"}},
		{Name: "signingKeys", Flag: "signing-key", Value: "key", Help: "sign with this key, whsec_… or whsk_…", Secret: true},
		{Name: "ca", Flag: "endpoint-ca", Value: "file", Help: "CA certificates that verify the endpoint, as PEM"},
		{Name: "cert", Flag: "endpoint-cert", Value: "file", Help: "client certificate to show to the endpoint, as PEM"},
		{Name: "key", Flag: "endpoint-key", Value: "file", Help: "private key of the client certificate, as PEM"},
		{Name: "skipVerify", Flag: "endpoint-skip-verify", Help: "do not verify the endpoint's certificate"},
		{Name: "minTls", Flag: "endpoint-min-tls", Value: "version", Help: "least TLS version to the endpoint", OneOf: []string{"1.2", "1.3"}},
		{Name: "oauth.tokenUrl", Flag: "oauth-token-url", Value: "URL", Help: "URL to get a bearer token from, by client credentials"},
		{Name: "oauth.clientId", Flag: "oauth-client", Value: "id", Help: "client id for it", Needs: "oauth.tokenUrl"},
		{Name: "oauth.secret", Flag: "oauth-secret", Value: "text", Help: "client secret for it", Secret: true, Needs: "oauth.tokenUrl"},
		{Name: "oauth.scope", Flag: "oauth-scope", Value: "scope", Help: "scope to ask for", Needs: "oauth.tokenUrl"},
		{Name: "oauth.audience", Flag: "oauth-audience", Value: "audience", Help: "audience to ask for", Needs: "oauth.tokenUrl"},

		{Name: "timeout", Value: "duration", Help: "how long an answer may take, a duration", Least: 100 * time.Millisecond, Most: 30 * time.Minute, Default: "30s", check: isWait},
		{Name: "concurrency", Value: "number", Help: "requests in progress at once", Min: 1, Max: 1000, Default: "16"},
		{Name: "rate", Value: "number", Help: "requests a second at most", Min: 0.00001, Max: 1e6, Zero: "any", Default: "0"},
		{Name: "orderBy", Value: "path", Help: "deliver events with the same value of this path, like subject or data.id, one after another"},
		{Name: "expires", Value: "time", Help: "when the subscription ends, a time like 2027-01-31T18:00:00Z"},
		{Name: "skipValidation", Help: "trust the endpoint without asking it"},
		{Name: "disableOnGone", Help: "stop for good when the endpoint answers 410"},
		{Name: "description", Value: "text", Help: "what it is for, and whom to ask about it", Length: 256},
		{Name: "labels", Flag: "label", Value: "label", Help: "label of the subscription", Length: 256},
		{Name: "fromStart", Help: "deliver also what the source holds already", Not: Update, Because: "it counts when the subscription becomes active for the first time"},
		{Name: "paused", Help: "let events wait; their time to live runs on", Not: Create | Update, Because: "the commands pause and resume say it"},
		{Name: "properties", Value: "JSON", Help: "Event Grid's own management shape; the other fields override it", Not: Create | Update, Because: "it is an object"},
	},
}

const nameIsAnArgument = "the command has it as its argument"

func setSecretHeader(definition any, text string) error {
	header, err := ParseHeader(text)
	header.Secret = true
	r := definition.(*admin.SubscriptionRequest)
	r.Headers = append(r.Headers, header)
	return err
}
