package grid

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Reject is what a handler's function returns for events that it will never be able to take:
// they are not sent again, but dead-lettered at once, or dropped where the subscription has no target
// for dead letters. The error's text is sent to the sender. It decides for the whole batch.
func Reject(err error) error {
	if err == nil {
		err = errors.New("rejected")
	}
	return &fault{http.StatusBadRequest, err}
}

// RetryAfter is what a handler's function returns to be asked again later, not before d has
// passed. Grids cap it (a yard at an hour, if nothing else was said) and never wait less than
// their own schedule says. err, which may be nil, is for OnError.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to come again later")
	}
	return &later{after: d, err: err}
}

// fault is an error with its own status, whose text is fit for the sender.
type fault struct {
	status int
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

type later struct {
	after time.Duration
	err   error
}

func (l *later) Error() string { return fmt.Sprintf("%v (again after %v)", l.err, l.after) }
func (l *later) Unwrap() error { return l.err }

// answer reports to the sender what became of its request. The text of an error that is not meant
// for the sender stays here.
func (h *Handler) answer(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	h.cfg.OnError(err)
	status, text := http.StatusInternalServerError, "the receiver could not take the events"
	if f := (*fault)(nil); errors.As(err, &f) {
		status, text = f.status, f.Error()
	}
	if l := (*later)(nil); errors.As(err, &l) {
		status, text = http.StatusServiceUnavailable, "the receiver asks to come again later"
		if l.after > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64((l.after-1)/time.Second)+1, 10))
		}
	}
	http.Error(w, text, status)
}
