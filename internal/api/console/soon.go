package console

import (
	"context"
	"errors"
	"time"
)

const (
	// lookTime is how long a stream looks for something before it sends what it has so far: a browser takes one
	// that says nothing for longer than two beats for lost.
	lookTime = 8 * time.Second
	// lookedGood is how long a stream keeps what it has found, so that it need not search again.
	lookedGood = time.Hour
)

// soon is the context of what may take longer than a page has time for, which is then sent without it, and filled
// by its stream. Who asks to wait, as without a script, waits.
func soon(v *visit) (context.Context, context.CancelFunc) {
	switch {
	case v.sight != nil:
		return context.WithTimeout(v.ctx, lookTime)
	case v.r.URL.Query().Get("wait") != "":
		return context.WithCancel(v.ctx)
	}
	return context.WithDeadline(v.ctx, v.until.Add(v.console.figuresTime-othersTime))
}

// tooLate tells whether a call has failed because the time of soon is over.
func tooLate(ctx context.Context, err error) bool {
	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// waiting is the page that waits until all of it is known.
func waiting(v *visit) string { return more(v.r.URL.RequestURI(), "wait", "yes") }
