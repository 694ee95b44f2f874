package v1

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// problemOf puts a refusal into the form of RFC 9457. Of damage it says which events are lost.
func problemOf(said frame.Refusal) *admin.Problem {
	p := &admin.Problem{Type: problemPrefix + said.Code, Title: said.Title, Status: said.Status, Detail: said.Detail, Next: said.Next}
	if damage, ok := errors.AsType[*eventlog.CorruptError](said.Cause); ok {
		p.LostFirst = new(int64(damage.First))
		if damage.Next != eventlog.NoSequence {
			p.Resume = new(int64(damage.Next))
		}
	}
	return p
}

// judge says how an error is told.
func judge(err error) frame.Refusal { return frame.Judge(frame.Problem, err) }

// problemPrefix begins the type of every problem. It names and does not resolve.
const problemPrefix = "urn:eventyard:problem:"

// badRequest refuses what the client has to change before it asks again.
func badRequest(next, format string, args ...any) error {
	return &frame.Refusal{
		Status: http.StatusBadRequest,
		Code:   "bad-request",
		Title:  "The request cannot be understood",
		Detail: fmt.Sprintf(format, args...),
		Next:   next,
	}
}

// logOurs writes down an error that only an operator can mend. Others are told to the
// client, who can do something about them.
func (d *Handler) logOurs(msg string, err error, details ...any) {
	if judge(err).Status == http.StatusInternalServerError {
		d.cfg.Log.Error(msg, append(details, "error", err)...)
	}
}

// writeXMLError gives an error as the Event Hubs REST API does (wire reference §7).
func writeXMLError(w http.ResponseWriter, said frame.Refusal) {
	detail := said.Detail
	if said.Next != "" {
		detail += ". " + said.Next
	}
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    int
		Detail  string
	}{Code: said.Status, Detail: detail})
	if err != nil { // it holds text and a number only
		panic(err)
	}
	frame.Reply(w, said.Status, "application/xml; charset=utf-8", body)
}

// answer ends a handler: with what it shows, or with its error.
func answer(w http.ResponseWriter, shown any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, shown)
}

// answerList shows each of a list, the only member of the answer.
func answerList[T, S any](w http.ResponseWriter, name string, all []T, show func(T) S, err error) error {
	shown := make([]S, len(all))
	for i, one := range all {
		shown[i] = show(one)
	}
	return answer(w, map[string][]S{name: shown}, err)
}

// done ends a handler that has nothing to show.
func done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// created answers with what was made, and where it is.
func created(w http.ResponseWriter, location string, shown any) error {
	w.Header().Set("Location", "/api/v1/"+location)
	return writeJSON(w, http.StatusCreated, shown)
}

// writeJSON answers with a value of ours.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	return writeAs(w, status, "application/json", v)
}

func writeAs(w http.ResponseWriter, status int, contentType string, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // people read it, and no browser takes it for a page
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	frame.Reply(w, status, contentType, body.Bytes())
	return nil
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
