package schema

import (
	"errors"
	"strconv"
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

func (d *DeadLetter) appendEventGrid(dst []byte) []byte {
	dst = appendTextMember(dst, "deadLetterReason", d.Reason)
	dst = strconv.AppendInt(appendMember(dst, "deliveryAttempts"), int64(d.Attempts), 10)
	dst = appendTextMember(dst, "lastDeliveryOutcome", d.LastOutcome)
	if d.LastStatus != 0 {
		dst = strconv.AppendInt(appendMember(dst, "lastHttpStatusCode"), int64(d.LastStatus), 10)
	}
	dst = appendTimeMember(dst, "publishTime", d.Published)
	if !d.LastAttempt.IsZero() {
		dst = appendTimeMember(dst, "lastDeliveryAttemptTime", d.LastAttempt)
	}
	return dst
}

func (d *DeadLetter) appendCloudEvent(dst []byte) []byte {
	dst = appendTextMember(dst, "deadletterreason", d.Reason)
	dst = strconv.AppendInt(appendMember(dst, "deliveryattempts"), int64(d.Attempts), 10)
	dst = appendTextMember(dst, "lastdeliveryoutcome", d.LastOutcome)
	if d.LastStatus != 0 {
		dst = strconv.AppendInt(appendMember(dst, "lasthttpstatuscode"), int64(d.LastStatus), 10)
	}
	return appendTimeMember(dst, "publishtime", d.Published)
}

func appendTimeMember(dst []byte, name string, t time.Time) []byte {
	dst = append(appendMember(dst, name), '"')
	return append(appendTime(dst, t), '"')
}

// isDeadLetterAttribute knows the names that appendCloudEvent writes.
func isDeadLetterAttribute(name []byte) bool {
	switch string(name) {
	case "deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "lasthttpstatuscode", "publishtime":
		return true
	default:
		return false
	}
}
