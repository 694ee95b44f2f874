package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// visit is one request of somebody, and all that is done for it. Only the request's goroutine uses it.
type visit struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	who     identity
	now     time.Time
	// ctx is that of calls of the API, which are made for this visit.
	ctx context.Context
	api *admin.Client
	// sight is what the visit's stream shares with others; nil: it has none.
	sight *sight
	// until is when it stops waiting for other nodes; zero: it waits for as long as they may take. silent
	// are those that it waited for in vain.
	until  time.Time
	silent *silent
	// known is how the yard is as a whole; nil: that is not known. asked: the page has asked for it already.
	known *admin.Overview
	asked bool
}

func (c *Console) visit(w http.ResponseWriter, r *http.Request, who identity) *visit {
	v := &visit{console: c, w: w, r: r, who: who, now: c.now(), api: c.api}
	v.ctx = context.WithValue(r.Context(), visitKey{}, v)
	v.begin()
	return v
}

// name is a name in the path.
func (v *visit) name(of string) string { return v.r.PathValue(of) }

// screen is what the templates of a page are given. View is the page's own.
type screen struct {
	Title  string
	Crumbs []crumb
	Tabs   []tab
	// Section is which of the main pages it belongs to.
	Section string
	// Guide is whose guide it has; empty: that of its section.
	Guide string
	// State is how things are in a sentence, which is read aloud when it changes.
	State string
	// Done is what an action before it has done.
	Done string
	View any

	// What every page shows.
	Yard        admin.Info
	Who         string
	Ends        time.Time
	Development bool
	Path        string // where it is, for its stream; empty: it has none
	Counts      map[string]*navCount
	Full        string // which disk is, in a sentence; empty: none is known to be
	Silent      string // which nodes do not answer, in a sentence; empty: all do
	Address     string // that of the yard, for links that are given to others
	Waits       string // the same page when all of it is known, where a browser without a script goes at once; empty: it is whole
	Now         time.Time
	*cells

	// grant is what whoever looks may do.
	grant auth.Grant
	// still: nothing of it will change.
	still bool
	// template and status are others than those of its page; empty: they are not.
	template string
	status   int
	// secret: it shows a key, and is not compressed: how well that goes would say something of it.
	secret bool
}

// crumb is a step of the way to a page; the last has no link.
type crumb struct{ Name, Link string }

// tab is one of the pages of a thing.
type tab struct {
	Name, Link string
	Count      int // -1: it has none
	Here       bool
}

// fill adds what every page shows. Without it a page is shown all the same.
func (v *visit) fill(s *screen) {
	s.Now, s.grant, s.Who, s.Ends = v.now, v.who.Grant, v.who.Grant.Holder, v.who.Ends
	s.Development = v.console.cfg.Access.Development() && v.who.Ends.IsZero()
	s.Done, s.Address = doneSentence(v.r), v.address()
	if s.cells == nil {
		s.cells = &cells{}
	}
	if v.who.Grant.Holder != "" {
		s.Yard = infoOf(v)
		s.frame(v.overview())
	}
	s.Silent = v.silent.sentence()
}

// infoOf is which yard this is, or was when that was last known.
func infoOf(v *visit) admin.Info {
	info, err := v.api.Info(v.ctx)
	if err == nil {
		v.console.info.Store(&info)
	} else if known := v.console.info.Load(); known != nil {
		return *known
	}
	return info
}

// show answers with a page.
func (v *visit) show(status int, page string, s *screen) error {
	v.fill(s)
	var body bytes.Buffer
	if err := v.console.pages[page].set.ExecuteTemplate(&body, "layout", s); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Encoding")
	if s.secret || v.who.Grant.Holder == "" || !takesGzip(v.r) {
		v.w.WriteHeader(status)
		_, _ = v.w.Write(body.Bytes())
		return nil
	}
	h.Set("Content-Encoding", "gzip")
	v.w.WriteHeader(status)
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(v.w)
	_, _ = w.Write(body.Bytes())
	_ = w.Close()
	return nil
}

// compressors are used again, because a new one takes 800 KiB. Strangers have none: they may ask for as
// many pages as they like, and take none of it.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// problemView is the page of an error.
type problemView struct {
	frame.Refusal
	// Refused: a right is missing.
	Refused bool
	SignIn  string
}

// fail answers with the page of an error, in the words of the API.
func (v *visit) fail(said frame.Refusal) {
	if v.who.Grant.Holder == "" {
		failStranger(v.w, v.r, v.console.assets, said)
		return
	}
	view := problemView{Refusal: said, Refused: said.Status == http.StatusForbidden}
	if said.Status == http.StatusUnauthorized {
		view.SignIn = signInPath
	}
	s := &screen{Title: said.Title, Section: sectionOf(v.r.URL.Path), View: view, Crumbs: []crumb{{Name: "Not shown"}}}
	if err := v.show(said.Status, "problem", s); err != nil {
		http.Error(v.w, said.Detail, said.Status)
	}
}

// failStranger is the page of an error for who is not signed in. It is written out without a template,
// because everybody can ask for it as often as they like: a template takes ten times as long.
func failStranger(w http.ResponseWriter, r *http.Request, a *assets, said frame.Refusal) {
	text := func(s string) string { return template.HTMLEscapeString(pictures(s)) }
	var page strings.Builder
	page.WriteString(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">` +
		`<meta name="color-scheme" content="light dark"><link rel="stylesheet" href="` + a.path + `/console.css">` +
		`<title>` + text(said.Title) + ` – Eventyard</title></head><body><main class="home signin" id="main">` +
		`<h1>` + text(said.Title) + `</h1><div class="note bad" role="alert"><div class="grow"><p>` + text(said.Detail) + `</p>`)
	if said.Next != "" {
		page.WriteString(`<p class="soft">` + text(said.Next) + `</p>`)
	}
	to, name := base, "Overview"
	if said.Status == http.StatusUnauthorized {
		to, name = signInFrom(r), "Sign in"
	}
	page.WriteString(`<p class="soft small mono">` + text(said.Code) + `, ` + strconv.Itoa(said.Status) + `</p></div></div>` +
		`<p><a class="btn main big" href="` + text(to) + `">` + name + `</a></p></main></body></html>` + "\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(said.Status)
	_, _ = io.WriteString(w, page.String())
}

// signInFrom is where one signs in who has sent a form, and is led back to its page.
func signInFrom(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return signInPath
	}
	return signInPath + "?" + url.Values{"to": {localPath(from.RequestURI())}}.Encode()
}

// sectionOf is which of the main pages a path belongs to.
func sectionOf(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, base), "/")
	switch first {
	case "circuits":
		return "functions"
	case "policies":
		return "access"
	case "new":
		return map[string]string{"hub": "hubs", "topic": "topics", "subscription": "topics", "function": "functions", "policy": "access"}[rest]
	}
	return first
}

// notHere says that there is no such page.
func notHere(r *http.Request) error {
	return &frame.Refusal{
		Status: http.StatusNotFound, Code: "no-such-page", Title: "There is no such page",
		Detail: "the console has nothing at " + cutText(r.URL.Path, 100), Next: "begin at the overview",
	}
}

// lacksRight tells whether the API refused a call for want of a right: the page then says so in the
// place of what it would show.
func lacksRight(err error) bool {
	p, ok := errors.AsType[*admin.Problem](err)
	return ok && p.Status == http.StatusForbidden
}
