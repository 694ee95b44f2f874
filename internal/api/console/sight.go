package console

import (
	"bytes"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// sights are the pages that streams are about. All who look at the same page with the same rights share
// one sight of it, so that the API is asked, and the page rendered, once for all of them.
type sights struct {
	mu   sync.Mutex
	open map[string]*sight // guarded by mu
}

func newSights() *sights { return &sights{open: map[string]*sight{}} }

// sight is one page as somebody may see it.
type sight struct {
	page  *page
	users int // guarded by sights.mu
	kept  keptAnswers

	mu    sync.Mutex
	taken time.Time // guarded by mu, as all that follows
	last  *snapshot
	known *admin.Overview // how the yard was when that was last known; nil: it never was
}

// keptAnswers are those of the API that a page need not ask for again yet.
type keptAnswers struct {
	mu  sync.Mutex
	all map[string]keptAnswer // guarded by mu
}

// keptAnswer is an answer of the API that is good for a while.
type keptAnswer struct {
	value any
	until time.Time
}

// join gives the sight of a visit. Leave has to be called once.
func (l *sights) join(p *page, at *visit) (*sight, func()) {
	// Addresses in answers are those by which a browser came, so that these count.
	key := fmt.Sprintf("%s %s %t %s %v", at.r.URL.RequestURI(), at.r.Host, at.r.TLS != nil, at.who.Grant.Holder, at.who.Grant.Scopes)
	l.mu.Lock()
	defer l.mu.Unlock()
	shared, ok := l.open[key]
	if !ok {
		shared = &sight{page: p}
		l.open[key] = shared
	}
	shared.users++
	return shared, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if shared.users--; shared.users == 0 {
			delete(l.open, key)
		}
	}
}

// see gives the page as it was at most so long ago. What one cannot have because it leaves, the next one
// asks for anew.
func (l *sight) see(at *visit, oldest time.Duration) (*snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && time.Since(l.taken) < oldest {
		return l.last, nil
	}
	began := time.Now()
	at.now, at.sight, at.known, at.asked = at.console.now(), l, nil, false
	at.begin()
	defer func() { at.sight = nil }()
	s, err := l.page.load(at)
	if err != nil {
		return nil, err
	}
	at.overview()
	s.frame(l.known)
	s.Now, s.grant, s.Silent = at.now, at.who.Grant, at.silent.sentence()
	shown, err := at.console.pages[l.page.template].snapshot(s)
	if err != nil {
		return nil, err
	}
	l.taken, l.last = began, shown
	return shown, nil
}

// remembered asks for something, unless there is one that is still good. A page that is not live remembers
// nothing.
func remembered[T any](v *visit, key string, good time.Duration, ask func() (T, error)) (T, error) {
	if v.sight == nil {
		return ask()
	}
	if value, ok := v.sight.kept.find(key, v.now); ok {
		return value.(T), nil
	}
	value, err := ask()
	if err == nil {
		v.sight.kept.keep(key, keptAnswer{value, v.now.Add(good)}, v.now)
	}
	return value, err
}

// find gives an answer that is good still, and forgets those that are not.
func (k *keptAnswers) find(key string, now time.Time) (any, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(now)
	found, ok := k.all[key]
	return found.value, ok
}

func (k *keptAnswers) keep(key string, a keptAnswer, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(now)
	if k.all == nil {
		k.all = map[string]keptAnswer{}
	}
	k.all[key] = a
}

// forgetLocked drops what is not good any more.
func (k *keptAnswers) forgetLocked(now time.Time) {
	maps.DeleteFunc(k.all, func(_ string, a keptAnswer) bool { return !now.Before(a.until) })
}

// snapshot is what a page shows at one moment, without what is whole until somebody needs it.
type snapshot struct {
	state string
	parts []renderedPart

	mu   sync.Mutex
	page *templates        // guarded by mu, as all that follows
	of   *screen           // its cells are set by who renders it
	html map[string]string // by template, those that were needed
}

// renderedPart is a part without its cells, and what these are.
type renderedPart struct {
	name, bare string
	cells      map[string]string
	lines      map[string]line
	feeds      map[string]feed
}

func (t *templates) snapshot(of *screen) (*snapshot, error) {
	s := &snapshot{state: of.State, page: t, of: of, html: map[string]string{}}
	for _, part := range t.parts {
		of.cells = &cells{values: map[string]string{}, lines: map[string]line{}, feeds: map[string]feed{}, bare: true}
		bare, err := t.render("part-"+part, of)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, renderedPart{part, bare, of.values, of.lines, of.feeds})
	}
	return s, nil
}

// whole is a template of the page with its cells.
func (s *snapshot) whole(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if html, ok := s.html[name]; ok {
		return html, nil
	}
	s.of.cells = &cells{}
	html, err := s.page.render(name, s.of)
	if err == nil {
		s.html[name] = html
	}
	return html, err
}

func (t *templates) render(name string, of *screen) (string, error) {
	var html bytes.Buffer
	err := t.set.ExecuteTemplate(&html, name, of)
	return html.String(), err
}
