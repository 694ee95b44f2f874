package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

const (
	// pageEvery is how often a page is looked at, frameGap how far apart frames are at least.
	pageEvery = time.Second
	frameGap  = 250 * time.Millisecond
	// pageAge is how old a page may be that others have looked at, and wakeAge after something happened.
	pageAge = pageEvery * 3 / 4
	wakeAge = 50 * time.Millisecond
	// maxFrame is how much one event may carry of a page, which leaves room for how it is written:
	// what is larger is sent in pieces.
	maxFrame = 24 << 10
	// writeTime is how long a browser may leave a frame waiting, beatEvery how long a stream is silent: the
	// script takes one that is silent for longer than two beats for lost (live.js).
	writeTime = 30 * time.Second
	beatEvery = 5 * time.Second
	// sayAfter is how long a state has to stand before it is read aloud.
	sayAfter = 3 * time.Second
)

// page is what is shown at a path, and kept live.
type page struct {
	template string
	load     func(v *visit) (*screen, error)
	// watch calls wake when there is something new, until ctx ends; nil: the clock alone does.
	watch func(ctx context.Context, v *visit, wake func())
	// every is how often it is looked at; zero: each second.
	every time.Duration
}

// live is the stream of a page: what has changed of it, in the order of its parts, newest state only.
// Nothing queues: a slow browser gets fewer frames.
func (c *Console) live(v *visit) error {
	p, at, err := c.pageAt(v)
	if err != nil {
		return err
	}
	s := newStream(v)
	s.whole = strings.HasSuffix(v.r.URL.Query().Get("at"), wholeMark)
	giveBack, err := c.streams.Take(v.who.Grant.Account(), 1)
	if err != nil {
		s.end(err)
		return nil
	}
	defer giveBack()
	ctx, cancel := c.untilOver(v)
	defer cancel()
	at.ctx = context.WithValue(ctx, visitKey{}, at)
	wake := make(chan struct{}, 1)
	if p.watch != nil {
		watching, watcher := make(chan struct{}), c.visit(v.w, at.r, v.who)
		watcher.until = time.Time{} // it waits for what comes, and for nobody's answer
		watcher.ctx = context.WithValue(ctx, visitKey{}, watcher)
		go func() {
			defer close(watching)
			p.watch(watcher.ctx, watcher, func() {
				select {
				case wake <- struct{}{}:
				default:
				}
			})
		}()
		defer func() { cancel(); <-watching }()
	}
	l, leave := c.sights.join(p, at)
	defer leave()
	s.end(s.follow(ctx, l, at, wake))
	return nil
}

// pageAt finds the page that a stream is for.
func (c *Console) pageAt(v *visit) (*page, *visit, error) {
	target, err := url.ParseRequestURI(strings.TrimSuffix(v.r.URL.Query().Get("at"), wholeMark))
	if err != nil || target.Host != "" || !strings.HasPrefix(target.Path, base) {
		return nil, nil, notHere(v.r)
	}
	r := v.r.Clone(v.r.Context())
	r.URL, r.RequestURI, r.Form = target, target.RequestURI(), nil
	rt := c.find(v.w, r)
	if rt.page == nil {
		return nil, nil, notHere(r)
	}
	return rt.page, c.visit(v.w, r, v.who), nil
}

// errSignedOut ends streams of a session that has.
var errSignedOut = errors.New("the session has ended")

// untilOver gives the context of a stream, which ends with the request, when the yard begins to stop,
// and when what the grant stands on is gone. Its cause says which.
func (c *Console) untilOver(v *visit) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(v.r.Context())
	release := context.AfterFunc(c.cfg.Stopping, func() { cancel(frame.ErrStopping) })
	forget := c.cfg.Access.OnChange(func() {
		if !v.who.Grant.Stands() {
			cancel(errSignedOut)
		}
	})
	return ctx, func() {
		release()
		forget()
		cancel(nil)
	}
}

// stream writes the events of one page, and knows what the browser has.
type stream struct {
	v       *visit
	control *http.ResponseController
	bare    map[string]string // by part, without its cells
	cells   map[string]string
	lines   map[string]line
	feeds   map[string]fed
	written time.Time
	// state is that of the page, since when it stands, and said the one that its reader knows.
	state, said string
	since       time.Time
	first       bool
	// whole: the page has nothing yet, and is sent more than its parts at first.
	whole bool
}

func newStream(v *visit) *stream {
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(http.StatusOK)
	return &stream{v: v, control: http.NewResponseController(v.w), bare: map[string]string{}, cells: map[string]string{}, lines: map[string]line{}, feeds: map[string]fed{}, first: true}
}

// follow sends what changes until ctx ends or the page cannot be had any more, and says why.
func (s *stream) follow(ctx context.Context, l *sight, at *visit, wake <-chan struct{}) error {
	clock := time.NewTicker(cmp.Or(l.page.every, pageEvery))
	defer clock.Stop()
	for oldest := pageAge; ; {
		if err := s.turn(l, at, oldest); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		select { // however much there is to say, a frame has its time
		case <-time.After(frameGap):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		if oldest, err = s.idle(ctx, clock.C, wake); err != nil {
			return err
		}
	}
}

// idle waits until there is to be looked at the page, says how old it may be by then, and that the stream is
// there, if nothing else does.
func (s *stream) idle(ctx context.Context, clock <-chan time.Time, wake <-chan struct{}) (oldest time.Duration, err error) {
	for {
		select {
		case <-wake:
			return wakeAge, nil
		case <-clock:
			return pageAge, nil
		case <-time.After(time.Until(s.written.Add(beatEvery))):
			s.event("beat", nil)
			if err := s.flush(); err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// turn looks at the page once more, as whoever is signed in by now.
func (s *stream) turn(l *sight, at *visit, oldest time.Duration) error {
	if at.who.token != "" {
		if _, err := at.console.identify(at.r); err != nil {
			return errSignedOut
		}
	}
	shown, err := l.see(at, oldest)
	if err != nil {
		return err
	}
	return s.send(shown)
}

// send writes the difference between a page and what the browser has of it.
func (s *stream) send(shown *snapshot) error {
	if s.whole {
		html, err := shown.whole("main")
		if err != nil {
			return err
		}
		s.part(wholePart, html)
		s.whole, s.first = false, false // how things are was not said yet
	}
	cells, points := map[string]string{}, map[string][]any{}
	for _, part := range shown.parts {
		if known, sent := s.bare[part.name]; !sent || known != part.bare { // what is empty by now may not have been when the page was made
			s.bare[part.name] = part.bare
			html, err := shown.whole("part-" + part.name)
			if err != nil {
				return err
			}
			s.part("part-"+part.name, html)
			s.feedWhole(part)
		} else {
			s.compare(part, cells, points)
			s.feed(part)
		}
		maps.Copy(s.cells, part.cells)
		maps.Copy(s.lines, part.lines)
	}
	s.several("cells", cells)
	if len(points) > 0 {
		s.event("points", points)
	}
	s.say(shown.state, time.Now())
	return s.flush()
}

// say says a state that stands for a while, and is another than what was said last: the steps on the way from one
// to the next, such as those of partitions whose owner is gone, would be read out one over the other.
func (s *stream) say(state string, now time.Time) {
	if state != s.state {
		s.state, s.since = state, now
	}
	if s.first {
		s.first, s.said = false, state
	}
	if state != s.said && state != "" && now.Sub(s.since) >= sayAfter {
		s.said = state
		s.event("say", state)
	}
}

// compare adds what has changed of a part that is the same but for its cells and points.
func (s *stream) compare(part renderedPart, cells map[string]string, points map[string][]any) {
	for id, text := range part.cells {
		if known, ok := s.cells[id]; !ok || known != text {
			cells[id] = text
		}
	}
	for id, l := range part.lines {
		if news := l.since(s.lines[id]); news != nil {
			points[id] = news
		}
	}
}

// part sends a part whole, in pieces if it is long: the script waits for the last of them.
func (s *stream) part(id, html string) {
	for len(html) > maxFrame {
		end := maxFrame
		for !utf8.RuneStart(html[end]) {
			end--
		}
		s.event("part", map[string]any{"id": id, "html": html[:end], "more": true})
		html = html[end:]
	}
	s.event("part", map[string]any{"id": id, "html": html})
}

// several sends texts in as many events as they need.
func (s *stream) several(event string, cells map[string]string) {
	some, size := map[string]string{}, 0
	for _, id := range sorted(cells) {
		if size += len(id) + len(cells[id]) + 6; size > maxFrame && len(some) > 0 {
			s.event(event, some)
			some, size = map[string]string{}, 0
		}
		some[id] = cells[id]
	}
	if len(some) > 0 {
		s.event(event, some)
	}
}

// event writes one event. Its data is one line of JSON.
func (s *stream) event(name string, data any) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false) // it is read by a script, and half of it is brackets
	_ = lines.Encode(data)     // texts only
	s.write(fmt.Sprintf("event: %s\ndata: %s\n", name, text.Bytes()))
}

func (s *stream) write(text string) {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = s.v.w.Write([]byte(text)) // flush says what went wrong
	s.written = time.Now()
}

func (s *stream) flush() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	return s.control.Flush()
}

// end says why a stream ends: the browser comes back by itself, or asks to sign in, or says that the
// thing is gone.
func (s *stream) end(why error) {
	reason, detail := "lost", ""
	if x := (&exchange{}); why != nil {
		said := x.Judge(why)
		switch {
		case errors.Is(why, errSignedOut), errors.Is(why, auth.ErrRevoked), said.Status == http.StatusUnauthorized:
			reason, detail = "signed-out", "Your session has ended."
		case said.Status == http.StatusNotFound || said.Status == http.StatusGone:
			reason, detail = "gone", said.Detail
		case errors.Is(why, frame.ErrStopping):
			reason, detail = "stopping", "The yard is stopping."
		case isQuota(why):
			reason, detail = "full", said.Detail
		}
	}
	s.event("end", map[string]string{"reason": reason, "detail": detail})
	_ = s.flush()
}

func isQuota(err error) bool {
	_, ok := errors.AsType[*admission.QuotaError](err)
	return ok
}

// sorted gives the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
