package frame

import (
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
)

// functionRows are for what the runner and the poison box say.
var functionRows = []row{
	{match: is(runner.ErrInvalid), status: 400, kind: "invalid-function", title: "A function cannot be defined so",
		next: "all fields are described at /api/v1/openapi.json"},
	{match: is(runner.ErrExists), status: 409, kind: "function-exists", title: "A function of that name exists",
		next: "use it, change it with PATCH, or choose another name"},
	{match: is(runner.ErrNotFound), status: 404, kind: "function-not-found", title: "There is no such function",
		next: "GET /api/v1/functions lists the functions"},
	{match: is(runner.ErrNoCircuit), status: 404, kind: "circuit-not-found", title: "There is no such circuit",
		next: "GET /api/v1/circuits lists the circuits"},
	{match: is(runner.ErrAmbiguous), status: 409, kind: "ambiguous-circuit", title: "Functions of several groups have that name",
		next: "say which is meant: add hub=NAME and group=NAME to the query"},
	{match: is(box.ErrNoPoisonEvent), status: 404, kind: "poison-not-found", title: "There is no such poison event",
		next: "GET /api/v1/hubs/{hub}/poison lists them"},
	{match: is(box.ErrLoop), status: 409, kind: "redriven-too-often", title: "It was redriven too often",
		next: "mend the function, then redrive with force"},
	{match: is(box.ErrNotKept), status: 410, kind: "event-not-kept", title: "The event was too large to be put away, and its hub does not keep it any more",
		next: "send it again from where it came from"},
	{match: as[*box.SourcesError], status: 409, kind: "several-source-hubs", title: "The poison events come from several hubs",
		next: "name one as source"},
}
