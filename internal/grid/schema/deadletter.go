package schema

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// DeadLetter is what is added to an event that could not be delivered.
type DeadLetter struct {
	Reason      string
	Attempts    int
	LastOutcome string
	LastStatus  int // 0: left out
	Published   time.Time
	LastAttempt time.Time // zero: left out
}

// AppendDeadLetter writes an event for a dead-letter file in the delivery schema out, with
// the spelling of that schema (reference §15): custom in the Event Grid envelope with the
// original as data, CloudEvents in lower case without the last attempt's time.
func AppendDeadLetter(dst []byte, e *Envelope, out Kind, d DeadLetter) ([]byte, error) {
	switch out {
	case EventGrid, Custom:
		return appendEventGrid(dst, e, &d)
	case CloudEvents:
		return appendCloudEvent(dst, e, &d), nil
	default:
		return dst, errors.New("write dead letter: there is no schema " + strconv.Quote(string(out)) + ": use eventgrid, cloudevents or custom")
	}
}

// append writes what is added. CloudEvents have the names in lower case.
func (d *DeadLetter) append(dst []byte, cloudEvents bool) []byte {
	member := func(name string) []byte {
		if cloudEvents {
			name = strings.ToLower(name)
		}
		return appendMember(dst, name)
	}
	dst = appendQuoted(member("deadLetterReason"), d.Reason)
	dst = strconv.AppendInt(member("deliveryAttempts"), int64(d.Attempts), 10)
	dst = appendQuoted(member("lastDeliveryOutcome"), d.LastOutcome)
	if d.LastStatus != 0 {
		dst = strconv.AppendInt(member("lastHttpStatusCode"), int64(d.LastStatus), 10)
	}
	dst = append(appendTime(append(member("publishTime"), '"'), d.Published), '"')
	if !cloudEvents && !d.LastAttempt.IsZero() {
		dst = append(appendTime(append(member("lastDeliveryAttemptTime"), '"'), d.LastAttempt), '"')
	}
	return dst
}

// isDeadLetterAttribute knows the names that append writes for CloudEvents.
func isDeadLetterAttribute(name []byte) bool {
	switch string(name) {
	case "deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "lasthttpstatuscode", "publishtime":
		return true
	default:
		return false
	}
}
