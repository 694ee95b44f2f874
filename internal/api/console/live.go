package console

import (
	"bytes"
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

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

const (
	// pageEvery is how often a page is looked at, frameGap how far apart frames are at least.
	pageEvery = time.Second
	frameGap  = 250 * time.Millisecond
	// maxFrame is how much one part of a page may measure to be sent anew: larger ones stay as they are.
	maxFrame = 256 << 10
	// writeTime is how long a browser may leave a frame waiting, beatEvery how long a stream is silent.
	writeTime = 30 * time.Second
	beatEvery = 15 * time.Second
)

// page is what is shown at a path, and kept live.
type page struct {
	template string
	load     func(v *visit) (*screen, error)
	// watch calls wake when there is something new, until ctx ends; nil: the clock alone does.
	watch func(ctx context.Context, v *visit, wake func())
}

// serve answers with the page.
func (p *page) serve(v *visit) error {
	s, err := p.load(v)
	if err != nil {
		return err
	}
	if len(v.console.pages[p.template].parts) > 0 {
		s.Path = v.r.URL.RequestURI()
	}
	return v.show(http.StatusOK, p.template, s)
}

// live is the stream of a page: what has changed of it, in the order of its parts, newest state only.
// Nothing queues: a slow browser gets fewer frames.
func (c *Console) live(v *visit) error {
	p, at, err := c.pageAt(v)
	if err != nil {
		return err
	}
	s := newStream(v)
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
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			p.watch(at.ctx, at, func() {
				select {
				case wake <- struct{}{}:
				default:
				}
			})
		}()
		defer func() { cancel(); <-watching }()
	}
	s.end(s.follow(ctx, p, at, wake))
	return nil
}

// pageAt finds the page that a stream is for.
func (c *Console) pageAt(v *visit) (*page, *visit, error) {
	target, err := url.ParseRequestURI(v.r.URL.Query().Get("at"))
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
	state   string
	first   bool
	written time.Time
}

func newStream(v *visit) *stream {
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(http.StatusOK)
	return &stream{v: v, control: http.NewResponseController(v.w), bare: map[string]string{}, cells: map[string]string{}, first: true}
}

// follow sends what changes until ctx ends or the page cannot be had any more, and says why.
func (s *stream) follow(ctx context.Context, p *page, at *visit, wake <-chan struct{}) error {
	clock := time.NewTicker(pageEvery)
	defer clock.Stop()
	for {
		if err := s.turn(p, at); err != nil {
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
		select {
		case <-wake:
		case <-clock.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// turn looks at the page once more, as whoever is signed in by now.
func (s *stream) turn(p *page, at *visit) error {
	if at.who.token != "" {
		if _, err := at.console.identify(at.r); err != nil {
			return errSignedOut
		}
	}
	at.now = at.console.now()
	screen, err := p.load(at)
	if err != nil {
		return err
	}
	screen.Now = at.now
	return s.send(at.console.pages[p.template], screen)
}

// send writes the difference between a page and what the browser has of it.
func (s *stream) send(page *templates, of *screen) error {
	changed := map[string]string{}
	for _, part := range page.parts {
		bare, values, err := page.bare(part, of)
		if err != nil {
			return err
		}
		same := s.bare[part] == bare
		for id, text := range values {
			if known, ok := s.cells[id]; same && (!ok || known != text) {
				changed[id] = text
			}
		}
		maps.Copy(s.cells, values)
		if same {
			continue
		}
		s.bare[part] = bare
		html, err := page.whole(part, of)
		if err != nil {
			return err
		}
		if len(html) <= maxFrame {
			s.event("part", map[string]string{"id": "part-" + part, "html": html})
		}
	}
	if len(changed) > 0 {
		s.event("cells", changed)
	}
	if !s.first && of.State != s.state && of.State != "" {
		s.event("say", of.State)
	}
	s.first, s.state = false, of.State
	if time.Since(s.written) >= beatEvery {
		s.write(": still here\n\n")
	}
	return s.flush()
}

// bare renders a part without its cells, whole with them.
func (t *templates) bare(part string, of *screen) (string, map[string]string, error) {
	of.cells = &cells{values: map[string]string{}, bare: true}
	html, err := t.render(part, of)
	return html, of.values, err
}

func (t *templates) whole(part string, of *screen) (string, error) {
	of.cells = &cells{}
	return t.render(part, of)
}

func (t *templates) render(part string, of *screen) (string, error) {
	var html bytes.Buffer
	err := t.set.ExecuteTemplate(&html, "part-"+part, of)
	return html.String(), err
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
