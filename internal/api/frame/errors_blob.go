package frame

import (
	"os"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// blobRows are for what the blob store says.
var blobRows = []row{
	{match: is(blob.ErrContainerNotFound), blob: told{status: 404, code: "ContainerNotFound"}},
	{match: is(blob.ErrContainerExists), blob: told{status: 409, code: "ContainerAlreadyExists"}},
	{match: is(blob.ErrBlobNotFound), blob: told{status: 404, code: "BlobNotFound"}},
	{match: is(blob.ErrBlobExists), blob: told{status: 409, code: "BlobAlreadyExists"}},
	{match: is(blob.ErrOverwrite), blob: told{status: 403, code: "UnauthorizedBlobOverwrite"}},
	{match: is(blob.ErrConditionNotMet), blob: told{status: 412, code: "ConditionNotMet"}},
	{match: is(blob.ErrNotModified), blob: told{status: 304, code: "ConditionNotMet"}},
	{match: is(blob.ErrName), blob: told{status: 400, code: "InvalidResourceName"}},
	{match: is(blob.ErrMetadata), blob: told{status: 400, code: "InvalidMetadata"}},
	{match: is(blob.ErrProperties), blob: told{status: 400, code: "InvalidHeaderValue"}},
	{match: is(blob.ErrTooLarge), blob: told{status: 413, code: "RequestBodyTooLarge"}},
	{match: is(blob.ErrCutShort), blob: told{status: 400, code: "InvalidInput"}},
	{match: is(blob.ErrRange), blob: told{status: 416, code: "InvalidRange"}},
	{match: is(blob.ErrBlockList), blob: told{status: 400, code: "InvalidBlockList"}},
	{match: is(blob.ErrTooMany), blob: told{status: 400, code: "BlockListTooLong"}},
	{match: is(blob.ErrMarker), blob: told{status: 400, code: "InvalidQueryParameterValue"}},
	{match: is(blob.ErrNoSpace), blob: told{status: 503, code: "ServerBusy"}},
	{match: is(blob.ErrLeaseDuration), blob: told{status: 400, code: "InvalidHeaderValue"}},
	{match: is(blob.ErrLeasePresent), blob: told{status: 409, code: "LeaseAlreadyPresent"}},
	{match: is(blob.ErrLeaseMismatch), blob: told{status: 409, code: "LeaseIdMismatchWithLeaseOperation"}},
	{match: is(blob.ErrLeaseNotPresent), blob: told{status: 409, code: "LeaseNotPresentWithLeaseOperation"}},
	{match: is(blob.ErrLeaseBreaking), blob: told{status: 409, code: "LeaseIsBreakingAndCannotBeAcquired"}},
	{match: is(blob.ErrLeaseUnchangeable), blob: told{status: 409, code: "LeaseIsBreakingAndCannotBeChanged"}},
	{match: is(blob.ErrLeaseBroken), blob: told{status: 409, code: "LeaseIsBrokenAndCannotBeRenewed"}},
	{match: is(blob.ErrLeaseNeeded), blob: told{status: 412, code: "LeaseIdMissing"}},
	{match: is(blob.ErrLeaseOther), blob: told{status: 412, code: "LeaseIdMismatchWithBlobOperation"}},
	{match: is(blob.ErrLeaseAbsent), blob: told{status: 412, code: "LeaseNotPresentWithBlobOperation"}},
	{match: is(blob.ErrLeaseLost), blob: told{status: 412, code: "LeaseLost"}},

	{match: is(os.ErrDeadlineExceeded), blob: told{status: 408, code: "OperationTimedOut"}}, // the client's, of its body
}
