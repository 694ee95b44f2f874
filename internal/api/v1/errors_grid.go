package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// gridAnswers are the rows for what the services of the grid say.
var gridAnswers = []answer{
	{
		name: "topics.ErrInvalid", match: is(topics.ErrInvalid),
		status: http.StatusBadRequest, kind: "invalid-definition",
		title: "That cannot be defined so",
		next:  "all fields are described at /api/v1/openapi.json",
	},
	{
		name: "topics.ErrTopicExists", match: is(topics.ErrTopicExists),
		status: http.StatusConflict, kind: "topic-exists",
		title: "A topic of that name exists",
		next:  "use it, change it with PATCH, or choose another name; case makes no difference",
	},
	{
		name: "topics.ErrExists", match: is(topics.ErrExists),
		status: http.StatusConflict, kind: "subscription-exists",
		title: "A subscription of that name exists",
		next:  "use it, change it with PATCH, or choose another name; case makes no difference",
	},
	{
		name: "topics.ErrTopicNotFound", match: is(topics.ErrTopicNotFound),
		status: http.StatusNotFound, kind: "topic-not-found",
		title: "There is no such topic",
		next:  "GET /api/v1/topics lists the topics",
	},
	{
		name: "topics.ErrNotFound", match: is(topics.ErrNotFound),
		status: http.StatusNotFound, kind: "subscription-not-found",
		title: "There is no such subscription",
		next:  "GET /api/v1/subscriptions lists the subscriptions",
	},
	{
		name: "topics.ErrAmbiguous", match: is(topics.ErrAmbiguous),
		status: http.StatusConflict, kind: "ambiguous-subscription",
		title: "Several subscriptions have that name",
		next:  "say whose is meant: add topic=NAME or hub=NAME to the query",
	},
	{
		name: "topics.ErrReserved", match: is(topics.ErrReserved),
		status: http.StatusConflict, kind: "reserved-topic",
		title: "The topic is the yard's own",
		next:  "leave it unused if it is not wanted",
	},
	{
		name: "topics.ErrHandshake", match: is(topics.ErrHandshake),
		status: http.StatusUnprocessableEntity, kind: "handshake-failed",
		title: "The endpoint did not agree to get events",
		next: "let it answer the validation event (Event Grid's schema) or the OPTIONS request (CloudEvents), " +
			"or create the subscription with skipValidation if the endpoint is your own",
	},
	{
		name: "topics.ErrToken", match: is(topics.ErrToken),
		status: http.StatusGone, kind: "validation-link",
		title: "The validation link is not good any more",
		next:  "change the subscription to get another",
	},
	{
		name: "deadletter.ErrNotFound", match: is(deadletter.ErrNotFound),
		status: http.StatusNotFound, kind: "dead-letter-not-found",
		title: "There is no such dead letter",
		next:  "GET /api/v1/subscriptions/{subscription}/dead lists them",
	},
	{
		name: "delivery.ErrNotFound", match: is(delivery.ErrNotFound),
		status: http.StatusConflict, kind: "not-delivered",
		title: "Nothing is delivered to that subscription at present",
		next:  "GET the subscription: its state says why",
	},
	{
		name: "delivery.ErrNotPull", match: is(delivery.ErrNotPull),
		status: http.StatusConflict, kind: "not-pull",
		title: "The subscription is not one to receive from",
		next:  "create one with pull",
	},
	{
		name: "delivery.ErrLockLost", match: is(delivery.ErrLockLost),
		status: http.StatusConflict, kind: "lock-lost",
		title: "The lock was lost",
		next:  "the event comes again; receive it then",
	},
	{
		name: "delivery.ErrToken", match: is(delivery.ErrToken),
		status: http.StatusBadRequest, kind: "invalid-lock-token",
		title: "That is no lock token of this subscription",
		next:  "use the tokens that receiving gave",
	},
}
