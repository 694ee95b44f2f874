package frame

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

const (
	topicsNext        = "GET /topics lists the topics"
	subscriptionsNext = "GET /topics/NAME/eventSubscriptions lists them"
)

// gridRows are for what the services of the grid say.
var gridRows = []row{
	{match: is(topics.ErrInvalid), status: 400, kind: "invalid-definition", title: "That cannot be defined so",
		next: "all fields are described at /api/v1/openapi.json",
		grid: wording{code: "InvalidRequest"}},
	{match: is(topics.ErrTopicExists), status: 409, kind: "topic-exists", title: "A topic of that name exists",
		next: "use it, change it with PATCH, or choose another name; case makes no difference",
		grid: wording{code: "ResourceExists", next: "use it, change it with PUT, or choose another name; case makes no difference"}},
	{match: is(topics.ErrExists), status: 409, kind: "subscription-exists", title: "A subscription of that name exists",
		next: "use it, change it with PATCH, or choose another name; case makes no difference",
		grid: wording{code: "ResourceExists", next: "change it with PUT, or choose another name; case makes no difference"}},
	{match: is(topics.ErrTopicNotFound), status: 404, kind: "topic-not-found", title: "There is no such topic",
		next: "GET /api/v1/topics lists the topics",
		grid: wording{code: "ResourceNotFound", next: topicsNext}},
	{match: is(topics.ErrNotFound), status: 404, kind: "subscription-not-found", title: "There is no such subscription",
		next: "GET /api/v1/subscriptions lists the subscriptions",
		grid: wording{code: "ResourceNotFound", next: subscriptionsNext}},
	{match: is(topics.ErrAmbiguous), status: 409, kind: "ambiguous-subscription", title: "Several subscriptions have that name",
		next: "say whose is meant: add topic=NAME or hub=NAME to the query",
		grid: wording{code: "Ambiguous", next: "name the topic or the hub in the path"}},
	{match: is(topics.ErrReserved), status: 409, kind: "reserved-topic", title: "The topic is the yard's own",
		next: "leave it unused if it is not wanted",
		grid: wording{code: "ResourceReserved", next: "leave it as it is; nobody has to subscribe to it"}},
	{match: is(topics.ErrHandshake), status: 422, kind: "handshake-failed", title: "The endpoint did not agree to get events",
		next: "let it answer the validation event (Event Grid's schema) or the OPTIONS request (CloudEvents), " +
			"or create the subscription with skipValidation if the endpoint is your own",
		grid: wording{status: 400, code: "EndpointValidationFailed", next: "nothing was created or changed; let the endpoint answer the validation request, and send this again"}},
	{match: is(topics.ErrToken), status: 410, kind: "validation-link", title: "The validation link is not good any more",
		next: "eventyard subscription show shows the link that is good now, if one is waited for; change the subscription to get another",
		grid: wording{status: 403, code: "InvalidValidationLink", next: "eventyard subscription show shows the link that is good now, if one is waited for; to create or update the subscription again sends its endpoint another"}},
	{match: is(deadletter.ErrNotFound), status: 404, kind: "dead-letter-not-found", title: "There is no such dead letter",
		next: "GET /api/v1/subscriptions/{subscription}/dead lists them"},
	{match: is(delivery.ErrNotFound), status: 409, kind: "not-delivered", title: "Nothing is delivered to that subscription at present",
		next: "GET the subscription: its state says why, and validationUrl where to agree if it is pending",
		grid: wording{status: 503, code: "Busy", retryAfter: time.Second, next: "it was made or deleted a moment ago; ask again"}},
	{match: is(delivery.ErrNotPull), status: 409, kind: "not-pull", title: "The subscription is not one to receive from",
		next: "create one with pull",
		grid: wording{status: 400, code: "InvalidDeliveryMode", next: "its events are pushed to its endpoint: create another with deliveryMode Queue to receive them here"}},
	{match: is(delivery.ErrLockLost), status: 409, kind: "lock-lost", title: "The lock was lost",
		next: "the event comes again; receive it then",
		grid: wording{code: "TokenLost", next: "receive the event again"}},
	{match: is(delivery.ErrToken), status: 400, kind: "invalid-lock-token", title: "That is no lock token of this subscription",
		next: "use the tokens that receiving gave",
		grid: wording{code: "BadToken", next: "use the lockToken that receive gave for this subscription"}},
	{match: is(shards.ErrElsewhere), status: 503, kind: "subscription-moves", title: "The subscription moves from one node to another", retryAfter: time.Second,
		next: "ask again: another node delivers it in a few seconds",
		grid: wording{code: "Busy", next: "another node delivers it in a few seconds; ask again"}},
}
