package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// reporter passes what the server reports to the log of the process. The server's notices are about
// its own life, and for who looks closely; its errors are such that it goes on.
type reporter struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error  // the first reason why the server cannot run; guarded by mu
	stop  string // the first report that it has stopped storing something; guarded by mu
	limit limit  // guarded by mu
}

var _ server.Logger = (*reporter)(nil)

const reported = "the NATS server inside reports"

// hints say what to do about reports that have a text in them.
var hints = []struct{ in, do string }{
	{"Authorization Violation", "another process runs with this bundle: stop it, or use the bundle of this machine"},
	{"certificate signed by unknown authority", "see that all machines have bundles of one init; eventyard doctor says which have not"},
}

// waiting is said every two seconds while no other server is reached, of which who runs this one speaks
// as well.
const waiting = "Waiting for routing to be established"

// stops are in the reports of a server that will not store any more, or not all streams, until it is
// started again: its disk is full, or failed.
var stops = []string{"will be DISABLED", "ritical write error"}

func (r *reporter) Noticef(format string, args ...any) {
	r.log.Debug(reported, "what", text(format, args))
}
func (r *reporter) Warnf(format string, args ...any)  { r.warn(text(format, args)) }
func (r *reporter) Errorf(format string, args ...any) { r.warn(text(format, args)) }
func (r *reporter) Debugf(string, ...any)             {} // never asked for
func (r *reporter) Tracef(string, ...any)             {}

// warn reports what is to be looked at, but no more than a log bears: strangers can cause reports.
func (r *reporter) warn(what string) {
	if strings.HasPrefix(what, waiting) {
		r.log.Debug(reported, "what", what)
		return
	}
	r.mu.Lock()
	if r.stop == "" && slices.ContainsFunc(stops, func(in string) bool { return strings.Contains(what, in) }) {
		r.stop = what
	}
	said, omitted := r.limit.take(time.Now())
	r.mu.Unlock()
	if !said {
		return
	}
	more := []any{"what", what}
	for _, h := range hints {
		if strings.Contains(what, h.in) {
			more = append(more, "hint", h.do)
		}
	}
	if omitted > 0 {
		more = append(more, "omitted", omitted)
	}
	r.log.Warn(reported, more...)
}

// Fatalf is called before the server gives up starting. The process is not ended here.
func (r *reporter) Fatalf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal == nil {
		r.fatal = errors.New(text(format, args))
	}
}

func (r *reporter) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fatal
}

// stopped is the report that the server has stopped storing; empty: it stores.
func (r *reporter) stopped() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop
}

func text(format string, args []any) string { return strings.TrimSpace(fmt.Sprintf(format, args...)) }

const (
	// mostReports may come at once, and one more every reportGap.
	mostReports = 20
	reportGap   = 3 * time.Second
)

// limit bounds how many reports there are.
type limit struct {
	full    time.Time // when all of them may come at once again
	omitted int       // since the last one
}

// take tells whether a report may be made at a time, and how many were not since the last one.
func (l *limit) take(now time.Time) (may bool, omitted int) {
	if l.full.Before(now) {
		l.full = now
	}
	if next := l.full.Add(reportGap); next.Sub(now) <= mostReports*reportGap {
		omitted, l.full, l.omitted = l.omitted, next, 0
		return true, omitted
	}
	l.omitted++
	return false, 0
}
