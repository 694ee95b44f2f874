package retry

// Outcome is how an attempt ended, in the words of Event Grid's lastDeliveryOutcome.
type Outcome string

const (
	Delivered       Outcome = "Delivered"
	BadRequest      Outcome = "BadRequest"
	Unauthorized    Outcome = "Unauthorized"
	Forbidden       Outcome = "Forbidden"
	NotFound        Outcome = "NotFound"
	TimedOut        Outcome = "TimedOut"
	PayloadTooLarge Outcome = "PayloadTooLarge"
	Busy            Outcome = "Busy"
	GenericError    Outcome = "GenericError"
	ResolutionError Outcome = "ResolutionError"
	SocketError     Outcome = "SocketError"
	OnProbation     Outcome = "Probation"
	Canceled        Outcome = "Canceled"
	Aborted         Outcome = "Aborted"
	Full            Outcome = "Full"         // a hub whose storage has no room
	Disabled        Outcome = "Disabled"     // the endpoint said not to send any more
	LoopDetected    Outcome = "LoopDetected" // it was not sent: package hops
)

// Classify names the outcome of an HTTP status (reference §11). Only 200 to 204 are Delivered.
func Classify(status int) Outcome {
	switch status {
	case 200, 201, 202, 203, 204:
		return Delivered
	case 400:
		return BadRequest
	case 401:
		return Unauthorized
	case 403:
		return Forbidden
	case 404, 410:
		return NotFound
	case 408:
		return TimedOut
	case 413:
		return PayloadTooLarge
	case 429, 503:
		return Busy
	}
	return GenericError
}

// unambiguous gives the status of an outcome that has only one. NotFound stands for 410 as
// well, but where there was no HTTP it means that a hub is not there. A time-out of ours is
// no 408: nobody answered, so it has no floor but that of all others.
var unambiguous = map[Outcome]int{
	BadRequest: 400, Unauthorized: 401, Forbidden: 403, NotFound: 404, PayloadTooLarge: 413,
}

// Ill reports whether an outcome is a sign of illness: 400, 413 and success are not, nor what we
// did ourselves (Canceled, Aborted, Probation, LoopDetected).
func Ill(o Outcome) bool {
	switch o {
	case Delivered, BadRequest, PayloadTooLarge, OnProbation, Canceled, Aborted, LoopDetected:
		return false
	}
	return true
}
