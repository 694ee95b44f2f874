package frame

import (
	"os"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// blobRows are for what the blob store says.
var blobRows = []row{
	{match: is(blob.ErrContainerNotFound), blob: wording{status: 404, code: "ContainerNotFound"}},
	{match: is(blob.ErrContainerExists), blob: wording{status: 409, code: "ContainerAlreadyExists"}},
	{match: is(blob.ErrBlobNotFound), blob: wording{status: 404, code: "BlobNotFound"}},
	{match: is(blob.ErrBlobExists), blob: wording{status: 409, code: "BlobAlreadyExists"}},
	{match: is(blob.ErrOverwrite), blob: wording{status: 403, code: "UnauthorizedBlobOverwrite"}},
	{match: is(blob.ErrConditionNotMet), blob: wording{status: 412, code: "ConditionNotMet"}},
	{match: is(blob.ErrNotModified), blob: wording{status: 304, code: "ConditionNotMet"}},
	{match: is(blob.ErrName), blob: wording{status: 400, code: "InvalidResourceName"}},
	{match: is(blob.ErrMetadata), blob: wording{status: 400, code: "InvalidMetadata"}},
	{match: is(blob.ErrProperties), blob: wording{status: 400, code: "InvalidHeaderValue"}},
	{match: is(blob.ErrTooLarge), blob: wording{status: 413, code: "RequestBodyTooLarge"}},
	{match: is(blob.ErrCutShort), blob: wording{status: 400, code: "InvalidInput"}},
	{match: is(blob.ErrRange), blob: wording{status: 416, code: "InvalidRange"}},
	{match: is(blob.ErrBlockList), blob: wording{status: 400, code: "InvalidBlockList"}},
	{match: is(blob.ErrTooMany), blob: wording{status: 400, code: "BlockListTooLong"}},
	{match: is(blob.ErrMarker), blob: wording{status: 400, code: "InvalidQueryParameterValue"}},
	{match: is(blob.ErrNoSpace), blob: wording{status: 503, code: "ServerBusy"}},
	{match: is(blob.ErrLeaseDuration), blob: wording{status: 400, code: "InvalidHeaderValue"}},
	{match: is(blob.ErrLeasePresent), blob: wording{status: 409, code: "LeaseAlreadyPresent"}},
	{match: is(blob.ErrLeaseMismatch), blob: wording{status: 409, code: "LeaseIdMismatchWithLeaseOperation"}},
	{match: is(blob.ErrLeaseNotPresent), blob: wording{status: 409, code: "LeaseNotPresentWithLeaseOperation"}},
	{match: is(blob.ErrLeaseBreaking), blob: wording{status: 409, code: "LeaseIsBreakingAndCannotBeAcquired"}},
	{match: is(blob.ErrLeaseUnchangeable), blob: wording{status: 409, code: "LeaseIsBreakingAndCannotBeChanged"}},
	{match: is(blob.ErrLeaseBroken), blob: wording{status: 409, code: "LeaseIsBrokenAndCannotBeRenewed"}},
	{match: is(blob.ErrLeaseNeeded), blob: wording{status: 412, code: "LeaseIdMissing"}},
	{match: is(blob.ErrLeaseOther), blob: wording{status: 412, code: "LeaseIdMismatchWithBlobOperation"}},
	{match: is(blob.ErrLeaseAbsent), blob: wording{status: 412, code: "LeaseNotPresentWithBlobOperation"}},
	{match: is(blob.ErrLeaseLost), blob: wording{status: 412, code: "LeaseLost"}},

	{match: is(os.ErrDeadlineExceeded), blob: wording{status: 408, code: "OperationTimedOut"}}, // the client's, of its body
}
