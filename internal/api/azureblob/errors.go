package azureblob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// fault is an error as clients are told it, by the service's codes.
type fault struct {
	status  int
	code    string
	message string
}

func (f *fault) Error() string { return f.code + ": " + f.message }

func refusal(status int, code, message string) error { return &fault{status, code, message} }

// notOffered is what is told of operations that the service has and this listener has not.
func notOffered(what string) error {
	return refusal(http.StatusNotImplemented, "NotImplemented", what+" is not offered by this yard")
}

func invalidHeader(name, value string) error {
	return refusal(http.StatusBadRequest, "InvalidHeaderValue", fmt.Sprintf("the value of header %s is not allowed: %.128q", name, value))
}

func invalidQuery(name, value string) error {
	return refusal(http.StatusBadRequest, "InvalidQueryParameterValue", fmt.Sprintf("the value of query parameter %s is not allowed: %.128q", name, value))
}

func missingHeader(name string) error {
	return refusal(http.StatusBadRequest, "MissingRequiredHeader", "the request lacks the header "+name)
}

// errBusy: as many uploads, or lists, as are allowed are under way.
var errBusy = errors.New("too many uploads or lists at once, try again")

// verdict is how an error of the store is told.
type verdict struct {
	err    error
	status int
	code   string
	// atContainer is the code where the request is about a container, if it is another.
	atContainer string
}

// verdicts has every error of the store.
var verdicts = []verdict{
	{blob.ErrContainerNotFound, http.StatusNotFound, "ContainerNotFound", ""},
	{blob.ErrContainerExists, http.StatusConflict, "ContainerAlreadyExists", ""},
	{blob.ErrBlobNotFound, http.StatusNotFound, "BlobNotFound", ""},
	{blob.ErrBlobExists, http.StatusConflict, "BlobAlreadyExists", ""},
	{blob.ErrOverwrite, http.StatusForbidden, "UnauthorizedBlobOverwrite", ""},
	{blob.ErrConditionNotMet, http.StatusPreconditionFailed, "ConditionNotMet", ""},
	{blob.ErrNotModified, http.StatusNotModified, "ConditionNotMet", ""},
	{blob.ErrName, http.StatusBadRequest, "InvalidResourceName", ""},
	{blob.ErrMetadata, http.StatusBadRequest, "InvalidMetadata", ""},
	{blob.ErrProperties, http.StatusBadRequest, "InvalidHeaderValue", ""},
	{blob.ErrTooLarge, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", ""},
	{blob.ErrCutShort, http.StatusBadRequest, "InvalidInput", ""},
	{blob.ErrRange, http.StatusRequestedRangeNotSatisfiable, "InvalidRange", ""},
	{blob.ErrBlockList, http.StatusBadRequest, "InvalidBlockList", ""},
	{blob.ErrTooMany, http.StatusBadRequest, "BlockListTooLong", ""},
	{blob.ErrMarker, http.StatusBadRequest, "InvalidQueryParameterValue", ""},
	{blob.ErrNoSpace, http.StatusServiceUnavailable, "ServerBusy", ""},

	{blob.ErrLeaseDuration, http.StatusBadRequest, "InvalidHeaderValue", ""},
	{blob.ErrLeasePresent, http.StatusConflict, "LeaseAlreadyPresent", ""},
	{blob.ErrLeaseMismatch, http.StatusConflict, "LeaseIdMismatchWithLeaseOperation", ""},
	{blob.ErrLeaseNotPresent, http.StatusConflict, "LeaseNotPresentWithLeaseOperation", ""},
	{blob.ErrLeaseBreaking, http.StatusConflict, "LeaseIsBreakingAndCannotBeAcquired", ""},
	{blob.ErrLeaseUnchangeable, http.StatusConflict, "LeaseIsBreakingAndCannotBeChanged", ""},
	{blob.ErrLeaseBroken, http.StatusConflict, "LeaseIsBrokenAndCannotBeRenewed", ""},

	{blob.ErrLeaseNeeded, http.StatusPreconditionFailed, "LeaseIdMissing", ""},
	{blob.ErrLeaseOther, http.StatusPreconditionFailed, "LeaseIdMismatchWithBlobOperation", "LeaseIdMismatchWithContainerOperation"},
	{blob.ErrLeaseAbsent, http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation", "LeaseNotPresentWithContainerOperation"},
	{blob.ErrLeaseLost, http.StatusPreconditionFailed, "LeaseLost", ""},

	{os.ErrDeadlineExceeded, http.StatusRequestTimeout, "OperationTimedOut", ""}, // the client's, of its body
	{errBusy, http.StatusServiceUnavailable, "ServerBusy", ""},
	{context.Canceled, http.StatusServiceUnavailable, "OperationTimedOut", ""},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "OperationTimedOut", ""},
}

// judge finds how an error is told. What is in no table is the yard's own trouble.
func (c *call) judge(err error) *fault {
	var reported *fault
	if errors.As(err, &reported) {
		return reported
	}
	for _, v := range verdicts {
		if !errors.Is(err, v.err) {
			continue
		}
		code := v.code
		if c.level == atContainer && v.atContainer != "" {
			code = v.atContainer
		}
		return &fault{v.status, code, err.Error()}
	}
	return &fault{http.StatusInternalServerError, "InternalError", "the yard could not do it; its log says more"}
}
