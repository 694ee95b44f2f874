package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
)

// functionAnswers are the rows for what the runner and the poison box say.
var functionAnswers = []answer{
	{
		name: "runner.ErrInvalid", match: is(runner.ErrInvalid),
		status: http.StatusBadRequest, kind: "invalid-function",
		title: "A function cannot be defined so",
		next:  "all fields are described at /api/v1/openapi.json",
	},
	{
		name: "runner.ErrExists", match: is(runner.ErrExists),
		status: http.StatusConflict, kind: "function-exists",
		title: "A function of that name exists",
		next:  "use it, change it with PATCH, or choose another name",
	},
	{
		name: "runner.ErrNotFound", match: is(runner.ErrNotFound),
		status: http.StatusNotFound, kind: "function-not-found",
		title: "There is no such function",
		next:  "GET /api/v1/functions lists the functions",
	},
	{
		name: "runner.ErrNoCircuit", match: is(runner.ErrNoCircuit),
		status: http.StatusNotFound, kind: "circuit-not-found",
		title: "There is no such circuit",
		next:  "GET /api/v1/circuits lists the circuits",
	},
	{
		name: "runner.ErrAmbiguous", match: is(runner.ErrAmbiguous),
		status: http.StatusConflict, kind: "ambiguous-circuit",
		title: "Functions of several groups have that name",
		next:  "say which is meant: add hub=NAME and group=NAME to the query",
	},
	{
		name: "box.ErrNoPoisonEvent", match: is(box.ErrNoPoisonEvent),
		status: http.StatusNotFound, kind: "poison-not-found",
		title: "There is no such poison event",
		next:  "GET /api/v1/hubs/{hub}/poison lists them",
	},
	{
		name: "box.ErrLoop", match: is(box.ErrLoop),
		status: http.StatusConflict, kind: "redriven-too-often",
		title: "It was redriven too often",
		next:  "mend the function, then redrive with force",
	},
	{
		name: "box.ErrNotKept", match: is(box.ErrNotKept),
		status: http.StatusGone, kind: "event-not-kept",
		title: "The event was too large to be put away, and its hub does not keep it any more",
		next:  "send it again from where it came from",
	},
	{
		name: "box.SourcesError", match: as[*box.SourcesError],
		status: http.StatusConflict, kind: "several-source-hubs",
		title: "The poison events come from several hubs",
		next:  "name one as source",
	},
}
