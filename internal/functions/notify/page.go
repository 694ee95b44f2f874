package notify

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// linkUser is who resumes by a link. Who pressed the button nobody knows.
const linkUser = "the resume link"

// pageTime bounds what a page may wait for.
const pageTime = 15 * time.Second

// pages answer the links.
type pages struct{ *sender }

// Serves tells whether a request is for ServeHTTP.
func Serves(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, PathPrefix) }

// ServeHTTP shows what happened (GET, HEAD) and resumes (POST, by the page's button). It needs no
// other right than the link. GET and HEAD change nothing: programs that look at mails and chats
// follow every link they find.
func (s *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // or the token would go on with every step from here
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", pagePolicy)
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
		s.answer(w, r, s.page(ctx, r))
	default:
		h.Set("Allow", "GET, HEAD, POST")
		s.answer(w, r, pageView{Status: http.StatusMethodNotAllowed, Title: "This cannot be done", Text: "Open the link in a browser, and press the button there."})
	}
}

// page decides what is shown, and resumes if that is asked for.
func (s *pages) page(ctx context.Context, r *http.Request) pageView {
	g, err := readToken(s.secret, strings.TrimPrefix(r.URL.Path, PathPrefix))
	if err != nil {
		return pageView{Status: http.StatusNotFound, Title: "This link cannot be read",
			Text: "It is not whole, or not of this yard. Copy it from the notice once more: mail programs sometimes break long links."}
	}
	switch {
	case !time.Now().Before(g.Expires): // nothing of the circuit is shown: notices are kept for long
		return pageView{Status: http.StatusGone, Function: oneLine(g.Function, maxNameBytes), Title: "This link has expired", Command: notice{Function: g.Function}.command(),
			Text: "If the function is still stopped, the command below resumes it. Nothing is lost meanwhile."}
	case r.Method == http.MethodPost:
		return s.pressed(ctx, r, g)
	}
	return s.look(ctx, g)
}

// look shows the circuit as it is now.
func (s *pages) look(ctx context.Context, g grant) pageView {
	c, ok, err := s.cfg.Circuits.Circuit(ctx, g.Group, g.Function)
	if err != nil {
		return s.trouble(g, err)
	}
	return s.view(ctx, g, c, ok)
}

// pressed resumes. That the link is still good is decided by who closes the circuit, in one step
// with closing it.
func (s *pages) pressed(ctx context.Context, r *http.Request, g grant) pageView {
	if !s.fromOurPage(r) {
		return pageView{Status: http.StatusForbidden, Title: "Nothing was changed",
			Text: "The button was not pressed on this yard's own page. Open the link from the notice, and press it there."}
	}
	if v := s.look(ctx, g); !v.Resumable {
		return v
	}
	now, done, err := s.cfg.Circuits.Resume(ctx, g.Group, g.Function, g.Incident, linkUser)
	if err != nil {
		return s.trouble(g, err)
	}
	if !done { // somebody was faster
		return s.look(ctx, g)
	}
	s.cfg.Log.Info("a function was resumed by a link", "hub", g.Group.Hub, "group", g.Group.Group, "function", g.Function,
		"incident", g.Incident, "remote", r.RemoteAddr)
	v := s.shown(ctx, g, now)
	v.Status, v.Title = http.StatusOK, "Resumed"
	v.Text = "All instances go on from the checkpoint within seconds, and what had failed is tried anew. " +
		"If it fails again the function stops again, and there will be a new notice."
	v.Note = putAway
	return v
}

// fromOurPage tells whether the button was pressed on our page, as far as the browser says. The
// token is what protects: who does not have it cannot make anybody press; this is for those who
// have it and would have others press. Our pages send no referrer, for which browsers mostly give
// the origin as null. A proxy may have put another name into Host than the browser knows.
func (s *pages) fromOurPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin" || site == "none"
	}
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	public, err := url.Parse(s.cfg.Link())
	return strings.EqualFold(u.Host, r.Host) || err == nil && strings.EqualFold(u.Host, public.Host)
}

// trouble is shown when the yard itself cannot say.
func (s *pages) trouble(g grant, err error) pageView {
	if !errors.Is(err, context.Canceled) {
		s.cfg.Log.Warn("a resume link could not be answered", "hub", g.Group.Hub, "group", g.Group.Group, "function", g.Function, "error", err)
	}
	return pageView{Status: http.StatusServiceUnavailable, Title: "That did not work just now",
		Text: "The yard could not read or change the circuit. The link is still good: try again in a moment."}
}

// answer writes a page.
func (s *pages) answer(w http.ResponseWriter, r *http.Request, v pageView) {
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, v); err != nil {
		s.cfg.Log.Error("the page of a resume link cannot be written", "error", err)
		v.Status = http.StatusInternalServerError
	}
	if v.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(v.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Bytes())
	}
}
