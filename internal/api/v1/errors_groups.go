package v1

import (
	"net/http"

	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/processor"
)

// groupsAnswers are the rows for what the registry of leases and checkpoints says.
var groupsAnswers = []answer{
	{
		name: "groups.OwnedError", match: as[*groups.OwnedError],
		status: http.StatusConflict, kind: "owned",
		title: "The partition is owned",
		next:  `stop the processor that owns it, or send {"force":true}: the owner is told with its next checkpoint`,
	},
	{
		name: "groups.ErrOutOfRange", match: is(groups.ErrOutOfRange),
		status: http.StatusRequestedRangeNotSatisfiable, kind: "position-out-of-range",
		title: "The partition has no such position",
		next:  "GET /api/v1/hubs/{hub}/partitions shows the first and last numbers; earliest and latest always fit",
	},
	{
		name: "groups.ErrInvalid", match: is(groups.ErrInvalid),
		status: http.StatusBadRequest, kind: "invalid-record",
		title: "That cannot be recorded",
		next:  "all bodies are described at /api/v1/openapi.json",
	},
	{
		name: "groups.ErrTooManyEntries", match: is(groups.ErrTooManyEntries),
		status: http.StatusTooManyRequests, kind: "too-many-facts",
		title: "The group has too many entries",
		next:  "remove those of instances that are gone",
	},
	{
		name: "processor.ErrConflict", match: is(processor.ErrConflict),
		status: http.StatusConflict, kind: "changed-meanwhile",
		title: "Someone else changed it at the same time",
		next:  "nothing was changed by this request; read the present state and repeat it",
	},
	{
		name: "processor.ErrFenced", match: is(processor.ErrFenced),
		status: http.StatusConflict, kind: "fenced",
		title: "Another instance has taken the partition",
		next:  "leave the partition to it",
	},
}
