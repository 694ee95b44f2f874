package retry

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Reference §11: the names of all statuses.
func TestClassify(t *testing.T) {
	want := map[int]Outcome{
		200: Delivered, 201: Delivered, 202: Delivered, 203: Delivered, 204: Delivered,
		400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 410: NotFound,
		408: TimedOut, 413: PayloadTooLarge, 429: Busy, 503: Busy,
	}
	for status := range statuses {
		named, ok := want[status]
		if !ok {
			named = GenericError
		}
		testkit.Equal(t, Classify(status), named, "%d", status)
	}
}

// G7: what is a sign of illness.
func TestIll(t *testing.T) {
	tests := map[Outcome]bool{
		Delivered: false, BadRequest: false, PayloadTooLarge: false, OnProbation: false, Canceled: false, Aborted: false,
		Unauthorized: true, Forbidden: true, NotFound: true, TimedOut: true, Busy: true, GenericError: true,
		ResolutionError: true, SocketError: true, Full: true, Disabled: true,
	}
	for outcome, want := range tests {
		testkit.Equal(t, Ill(outcome), want, "%s: %v", outcome, !want)
	}
}
