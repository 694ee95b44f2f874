package azureblob

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/eventyard/eventyard/internal/api/frame"
)

func refusal(status int, code, detail string) error {
	return &frame.Refusal{Status: status, Code: code, Detail: detail}
}

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
var errBusy = refusal(http.StatusServiceUnavailable, "ServerBusy", "too many uploads or lists at once, try again")

// ofContainers are the codes that are others where a request is about a container.
var ofContainers = map[string]string{
	"LeaseIdMismatchWithBlobOperation": "LeaseIdMismatchWithContainerOperation",
	"LeaseNotPresentWithBlobOperation": "LeaseNotPresentWithContainerOperation",
}

// Judge says how an error is told.
func (c *call) Judge(err error) frame.Refusal {
	said := frame.Judge(frame.Blob, err)
	if c.level == atContainer {
		said.Code = cmp.Or(ofContainers[said.Code], said.Code)
	}
	return said
}
