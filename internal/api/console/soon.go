package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// lookTime is how long a stream looks for something before it sends what it has so far: a browser takes one
	// that says nothing for longer than two beats for lost.
	lookTime = 8 * time.Second
	// lookedGood is how long a stream keeps what it has found, so that it need not search again.
	lookedGood = time.Hour
	// wholeMark ends the address for the stream of a page of which nothing was known in time: its first frame has
	// all of it, and not its parts alone. wholePart is where that goes.
	wholeMark = "#whole"
	wholePart = "part-whole"
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

// serve answers with the page: of one that is kept live with what is known of it in time, and if it cannot be
// shown without what is not, with one that its stream fills.
func (p *page) serve(v *visit) error {
	ctx, cancel := soon(v)
	defer cancel()
	unbounded := v.ctx
	if p.isLive(v, "") {
		v.ctx = ctx
	}
	s, err := p.load(v)
	switch {
	case tooLate(ctx, err):
		return v.show(http.StatusOK, "looking", looking(v))
	case err != nil:
		v.ctx = unbounded // that of the page that says so
		return err
	case p.isLive(v, s.template) && !s.still:
		s.Path = orWord(s.Path, v.r.URL.RequestURI())
	}
	return v.show(max(s.status, http.StatusOK), orWord(s.template, p.template), s)
}

// isLive tells whether a page has parts that a stream keeps, by its own template or by another.
func (p *page) isLive(v *visit, template string) bool {
	return len(v.console.pages[orWord(template, p.template)].parts) > 0
}

// looking is the page of what is not known yet, which its stream replaces. Its name is what its address says.
func looking(v *visit) *screen {
	var names []string
	for name := range strings.SplitSeq(strings.TrimPrefix(v.r.URL.EscapedPath(), base), "/") {
		name, _ = url.PathUnescape(name) // the mux has taken it
		names = append(names, name)
	}
	s := &screen{Title: names[len(names)-1], Section: sectionOf(v.r.URL.Path), Waits: waiting(v), Path: v.r.URL.RequestURI() + wholeMark, State: "It is still being looked how things are."}
	first := strings.ToUpper(names[0][:min(1, len(names[0]))]) + names[0][min(1, len(names[0])):]
	if s.Crumbs = []crumb{{first, at(names[0])}, {Name: s.Title}}; len(names) == 1 {
		s.Title, s.Crumbs = first, []crumb{{Name: first}}
	}
	return s
}
