package console

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
)

// policy is the content security policy of every answer: nothing from elsewhere, nothing inline, and
// text becomes elements by our one policy of trusted types alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types eventyard"

// exchange is one request to the console.
type exchange struct {
	*frame.Call
	console *Console
	route   *route // nil before it is found
	who     identity
}

// Find looks for the route, of which there is always one.
func (x *exchange) Find() error {
	h := x.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	x.route = x.console.find(x, x.R)
	if x.route != x.console.missing {
		x.Route = x.route.row()
	}
	return nil
}

// find asks the mux, which takes note of the names in the path, too.
func (c *Console) find(w http.ResponseWriter, r *http.Request) *route {
	escaped := r.URL.EscapedPath()
	if escaped != "/" && path.Clean(escaped) != strings.TrimSuffix(escaped, "/") {
		return c.missing // or the mux would send browsers on
	}
	found := &finder{ResponseWriter: w, route: c.missing}
	c.mux.ServeHTTP(found, r)
	return found.route
}

// finder takes note of what a mux has found.
type finder struct {
	http.ResponseWriter
	route *route
}

func finds(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.(*finder).route = rt })
}

// Admit finds out who asks. What they may do is judged by the API.
func (x *exchange) Admit() error {
	if x.route.need.Reach == frame.Nobody {
		return nil
	}
	who, err := x.console.identify(x.R)
	if err != nil {
		return err
	}
	x.who, x.Holder = who, who.Grant.Account()
	return x.route.need.Check(who.Grant, entity, time.Now())
}

func (x *exchange) Serve() error {
	if x.Holder != "" && !x.route.long {
		giveBack, err := x.console.visits.Take(x.Holder, 1)
		if err != nil {
			return err
		}
		defer giveBack()
	}
	x.R.Body = http.MaxBytesReader(x, x.R.Body, x.Route.MaxBody)
	return x.route.serve(x.console.visit(x.Call, x.R, x.who))
}

// Judge takes what the API has said as it is.
func (x *exchange) Judge(err error) frame.Refusal {
	if said, ok := errors.AsType[*frame.Refusal](err); ok {
		return *said
	}
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		return frame.Refusal{Status: p.Status, Code: p.Kind(), Title: p.Title, Detail: p.Detail, Next: p.Next, RetryAfter: p.RetryAfter}
	}
	return frame.Judge(frame.Problem, err)
}

// Refuse answers with a page, or leads to where one signs in.
func (x *exchange) Refuse(said frame.Refusal) {
	if said.Code == noSession.Code && x.R.Method == http.MethodGet && x.Route.Path != livePath {
		http.Redirect(x, x.R, signInPath+"?"+url.Values{"to": {x.R.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return
	}
	if said.RetryAfter > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(int(said.RetryAfter.Seconds())))
	}
	x.console.visit(x.Call, x.R, x.who).fail(said)
}

func (x *exchange) Ended(time.Duration) {}
