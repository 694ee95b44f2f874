package grid

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// allowed are the methods of a webhook.
const allowed = "POST, OPTIONS"

// kind is what a POST is about.
type kind int

const (
	notification kind = iota // events
	validation               // the handshake of the Event Grid schema
	deletion                 // the subscription is no more
)

// validationType is the type of the event that asks for the handshake.
const validationType = "Microsoft.EventGrid.SubscriptionValidationEvent"

// kindOf knows it by the header. Where a proxy took that away, a validation is known by its
// event; but only then: anybody can publish an event of that type, which is one like others.
func kindOf(h http.Header, body []byte) kind {
	switch strings.ToLower(h.Get("aeg-event-type")) {
	case "subscriptionvalidation":
		return validation
	case "subscriptiondeletion", "unsubscribe":
		return deletion
	case "":
		if asked, ok := decodeValidation(body); ok && strings.EqualFold(asked.EventType, validationType) {
			return validation
		}
	}
	return notification
}

type validationEvent struct {
	EventType string
	Data      struct{ ValidationCode string }
}

func decodeValidation(body []byte) (validationEvent, bool) {
	var events []validationEvent
	if err := json.Unmarshal(body, &events); err != nil || len(events) != 1 {
		return validationEvent{}, false
	}
	return events[0], events[0].Data.ValidationCode != ""
}

// echo ends the handshake of the Event Grid schema: the status has to be 200, and the spelling
// this one. It gives the sender what it knows already, so no signature is needed.
func (h *Handler) echo(w http.ResponseWriter, body []byte) {
	asked, ok := decodeValidation(body)
	if !ok {
		h.answer(w, &fault{http.StatusBadRequest, errors.New("the validation event has no validationCode")})
		return
	}
	answer, err := marshal(map[string]string{"validationResponse": asked.Data.ValidationCode})
	if err != nil {
		h.answer(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // who hung up needs no answer
}

// consent is the handshake of CloudEvents: the headers are the consent, not the status.
func (h *Handler) consent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", allowed)
	origin := r.Header.Get("WebHook-Request-Origin")
	if origin == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if h.cfg.Origins != nil && !slices.ContainsFunc(h.cfg.Origins, func(welcome string) bool {
		return welcome == "*" || strings.EqualFold(welcome, origin)
	}) {
		h.answer(w, &fault{http.StatusForbidden, errors.New("deliveries of this origin are not taken here: add it to Origins of the handler")})
		return
	}
	w.Header().Set("WebHook-Allowed-Origin", origin)
	switch {
	case h.cfg.MaxPerMinute > 0:
		w.Header().Set("WebHook-Allowed-Rate", strconv.Itoa(h.cfg.MaxPerMinute))
	case r.Header.Get("WebHook-Request-Rate") != "":
		w.Header().Set("WebHook-Allowed-Rate", "*")
	}
	w.WriteHeader(http.StatusOK)
}
