// Package frame is what every HTTP request to a yard passes through, whichever API it is for: the
// check of its host, the guard against web pages, the search for its route, admission, recovery
// from panics, the answer to an error, and observation.
//
// An API brings its routes, each with what it needs of a caller (route.go, need.go), and the form
// in which it speaks. What an error of the services means is the same everywhere and stands in one
// table (errors*.go); an API only renders what the table says.
package frame

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Config says how a frame serves.
type Config struct {
	// LoopbackOnly refuses requests whose Host is neither an IP address nor a name of this machine,
	// so that no web page reaches the yard by rebinding its own name. It is for a yard on loopback,
	// whose key everybody knows.
	LoopbackOnly bool
	// Host is a name that the operator has given the yard, as good as one of this machine's; empty
	// if none.
	Host string
	// Visitors keeps account of the connections that requests come by; nil: nobody does.
	Visitors Visitors
	// Refused is told of requests whose key or token is not good, and returns when they may be
	// answered; nil: at once.
	Refused func(ctx context.Context, from string, err error)
	// Long bounds how many requests of readers to long routes are served at once, by holder and in
	// all. nil means MaxLongOfOne and MaxLong.
	Long *admission.Quota
	// Bodies bounds the bodies of requests that are not answered yet, by holder and in all; OpenBodies those of
	// who needs no right, by address. nil means one with the limits above them in body.go.
	Bodies, OpenBodies *admission.Memory
	// Stopping ends when the yard begins to stop. It is a field because it belongs to the frame's
	// life and to no request. nil means never.
	Stopping context.Context
	// Log takes what a client cannot be told. nil means slog.Default().
	Log *slog.Logger
}

// How many requests of readers may wait or stream at once: those of one policy or token, and all.
const (
	MaxLongOfOne = 2048
	MaxLong      = 8192
)

// Visitors tells clients from strangers, who have shown no right yet. Both methods are called once the
// head of a request has been judged, and may be called by many goroutines at once.
type Visitors interface {
	// Know is told that the sender of a request has shown a right. Its error says why the request is
	// not served all the same.
	Know(c *Call) error
	// Bear allows an answer to a request that has shown none, until done is called, when the answer
	// has been written or cut off; not ok: the connection has too many of these already, and the
	// request is cut off.
	Bear(c *Call) (done func(), ok bool)
}

// API is one set of routes and the form in which they speak.
type API struct {
	// Name is what the log calls it.
	Name string
	// Serves tells whether a request is for this API. nil: it serves whatever no API before it
	// does.
	Serves func(*http.Request) bool
	// Routes are all operations. Begin's exchanges find their route among them.
	Routes []Route
	// Begin makes the exchange of one request.
	Begin func(*Call) Exchange
	// Beneath are names of its own beneath the yard's: a Host of one of them, a dot and the yard's
	// name is as good as the yard's name.
	Beneath []string
	// Deliveries: other grids deliver to it, which name themselves as pages of other origins do.
	Deliveries bool
	// Unguarded: it keeps web pages out by itself.
	Unguarded bool
}

// Exchange is one request as its API sees it. The frame calls the methods in this order, on the
// request's own goroutine, and each of Find, Admit and Serve only if nothing has failed before.
type Exchange interface {
	// Find sets the call's Route. Its error says that there is none.
	Find() error
	// Admit lets the caller in or says why not. It looks at nothing but the request's head.
	Admit() error
	// Serve answers or says why not. After the first byte of an answer it returns nil: what goes
	// wrong then is the stream's own affair.
	Serve() error
	// Judge says what a client is told of an error; mostly what the function Judge says.
	Judge(error) Refusal
	// Refuse writes a refusal in the API's form.
	Refuse(Refusal)
	// Ended counts the request, after it was answered or cut off.
	Ended(took time.Duration)
}

// Frame serves APIs. It starts no goroutine.
type Frame struct {
	cfg   Config
	apis  []API
	guard guard
}

// New makes a frame around APIs, of which the first that serves a request gets it. A route that
// does not say what it needs would let everybody in, so that it panics.
func New(cfg Config, apis ...API) *Frame {
	if cfg.Stopping == nil {
		cfg.Stopping = context.Background()
	}
	if cfg.Long == nil {
		cfg.Long = admission.NewQuota("waiting or streaming requests", MaxLongOfOne, MaxLong)
	}
	if cfg.Bodies == nil {
		cfg.Bodies = admission.NewMemory(MaxBodyBytesOfOne, MaxBodyBytes, admission.DefaultPatience)
	}
	if cfg.OpenBodies == nil {
		cfg.OpenBodies = admission.NewMemory(MaxOpenBodyBytesOfOne, MaxOpenBodyBytes, admission.DefaultPatience)
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	f := &Frame{cfg: cfg, apis: apis, guard: newGuard(cfg)}
	for _, route := range f.Routes() {
		if err := route.check(); err != nil {
			panic("frame: " + err.Error())
		}
	}
	return f
}

// Routes are those of all APIs.
func (f *Frame) Routes() []Route {
	var all []Route
	for _, api := range f.apis {
		for _, route := range api.Routes {
			route.API = api.Name
			all = append(all, route)
		}
	}
	return all
}

// ServeHTTP answers one request.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i := range f.apis {
		if api := &f.apis[i]; api.Serves == nil || api.Serves(r) {
			f.serve(api, w, r)
			return
		}
	}
	http.NotFound(w, r)
}

func (f *Frame) serve(api *API, w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := &Call{ResponseWriter: w, R: r, Route: unrouted}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	x := api.Begin(c)
	defer func() {
		took := time.Since(began)
		x.Ended(took)
		if f.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
			f.cfg.Log.Debug("request answered", c.about(api, "status", c.status, "took", took)...)
		}
	}()
	done := func() {}
	defer func() { done() }() // when the answer is whole, also one that says that the handler has panicked
	defer f.survive(api, c, x)
	shown, err := f.admit(api, c, x)
	if !shown && f.cfg.Visitors != nil {
		end, ok := f.cfg.Visitors.Bear(c)
		if !ok {
			panic(http.ErrAbortHandler)
		}
		done = end
	}
	if err == nil {
		c.Admitted = true
		err = f.answer(c, x)
	}
	if err != nil {
		f.refuse(api, c, x, err)
	}
}

// answer serves a request that was let in. A reader that may take its time is counted meanwhile; what
// operators do is not, so that no reader keeps them out.
func (f *Frame) answer(c *Call, x Exchange) error {
	if c.Route.Long && slices.ContainsFunc(c.Route.Need.OneOf, func(r auth.Rights) bool { return r != auth.Manage }) {
		giveBack, err := f.cfg.Long.Take(c.Holder, 1)
		if err != nil {
			return err
		}
		defer giveBack()
	}
	b := f.count(c)
	defer func() { _ = b.answered(nil) }() // also where the handler panics
	return b.answered(x.Serve())
}

// admit finds the route and lets the caller in, or says why not. Shown: the caller has shown a right,
// which an open route does not ask for.
func (f *Frame) admit(api *API, c *Call, x Exchange) (shown bool, err error) {
	if err := f.enter(api, c, x); err != nil || c.Route.Need.Reach <= Nobody {
		return false, err
	}
	if f.cfg.Visitors == nil {
		return true, nil
	}
	err = f.cfg.Visitors.Know(c)
	return err == nil, err
}

func (f *Frame) enter(api *API, c *Call, x Exchange) error {
	if err := checkFields(c.R.Header); err != nil {
		return err
	}
	if err := checkHost(c.R.Host); err != nil {
		return err
	}
	if err := f.guard.check(api, c.R); err != nil {
		return err
	}
	if err := x.Find(); err != nil {
		return err
	}
	return x.Admit()
}

// refuse answers with an error, unless nobody is left to hear it. What only an operator can mend
// is logged; everything else is told to the client, who can do something about it.
func (f *Frame) refuse(api *API, c *Call, x Exchange, err error) {
	said := x.Judge(err)
	c.Refused = &said
	if f.cfg.Refused != nil && !c.Admitted && failedLogin(c.R, said) {
		reason := err
		if errors.Is(err, topickey.ErrExpired) {
			reason = fmt.Errorf("%w: %w", auth.ErrExpired, err) // a token like any other
		}
		f.cfg.Refused(c.R.Context(), c.R.RemoteAddr, reason)
	}
	if said.Status == http.StatusInternalServerError {
		f.cfg.Log.Error("request could not be served", c.about(api, "error", err)...)
	}
	if c.R.Context().Err() != nil && f.cfg.Stopping.Err() == nil && said.Status != http.StatusRequestTimeout {
		// The client is gone; the status is for the metrics alone. While the yard is stopping it
		// may be the yard that gave up, and the client waits for a word. So does one whose body
		// did not come in time, which ends the request's context, too.
		c.WriteHeader(StatusClientGone)
		return
	}
	x.Refuse(said)
}

// errPanicked is what a client is told of a panic; the log has the rest.
var errPanicked = errors.New("the yard made a mistake of its own in answering this request")

// survive keeps a panic of one request from the others. Where the answer has begun the connection
// is cut, so that no client takes the half for the whole.
func (f *Frame) survive(api *API, c *Call, x Exchange) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler {
		panic(reason)
	}
	f.cfg.Log.Error("a request made its handler panic", c.about(api, "panic", reason, "stack", string(debug.Stack()))...)
	if c.status == 0 {
		x.Refuse(x.Judge(errPanicked))
		return
	}
	c.status = http.StatusInternalServerError
	panic(http.ErrAbortHandler)
}
