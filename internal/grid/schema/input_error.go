package schema

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// InputError refuses a publication, in the words that Event Grid's users know.
type InputError struct {
	// Status is the HTTP status: 400, 413 or 415.
	Status int
	// Code is the finer one: InputJsonInvalid, InvalidContentType, PayloadTooLarge,
	// InvalidCloudEventHeader.
	Code    string
	Message string
}

func (e *InputError) Error() string { return e.Message }

// The codes of refusals.
const (
	codeJSON        = "InputJsonInvalid"
	codeContentType = "InvalidContentType"
	codeTooLarge    = "PayloadTooLarge"
	codeHeader      = "InvalidCloudEventHeader"
)

func refuse(format string, args ...any) error {
	return &InputError{http.StatusBadRequest, codeJSON, fmt.Sprintf(format, args...)}
}

func refuseHeader(format string, args ...any) error {
	return &InputError{http.StatusBadRequest, codeHeader, fmt.Sprintf(format, args...)}
}

func refuseContentType(format string, args ...any) error {
	return &InputError{http.StatusUnsupportedMediaType, codeContentType, fmt.Sprintf(format, args...)}
}

func refuseSize(format string, args ...any) error {
	return &InputError{http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf(format, args...)}
}

// brief is a stranger's text as far as it helps him to find it.
func brief(t []byte) string {
	const most = 64
	if len(t) <= most {
		return string(t)
	}
	return strings.ToValidUTF8(string(t[:most]), "") + "…"
}

// inputError makes what the reader has to say a refusal.
func inputError(err error) error {
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		return refuse("the body is not valid JSON %v: correct it and send it again", syntax)
	}
	return err
}

// atIndex makes a refusal say which event of an array it is about.
func atIndex(err error, index int) error {
	err = inputError(err)
	var input *InputError
	if errors.As(err, &input) {
		input.Message = fmt.Sprintf("events[%d]: %s", index, input.Message)
	}
	return err
}
