// Package console is the yard's web console: pages that show what the HTTP API shows, and forms that do
// what it does. It is a client of that API, called inside the process with the grant of whoever is
// signed in (inside.go), so that rights are judged in one place.
//
// A page is a template over a view, which is made of the API's answers (page_*.go). The first answer is
// whole, and works without a script. What of it changes is sent afterwards over one stream a page, by
// the same templates (live.go). An action is a form (sheet.go); what it would do is said before it is
// done. Routes stand in one table (routes.go), and tests hold them to the API's.
package console

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// base is where the console is.
const base = "/console/"

// Streams that are open at once: those of one policy, and all.
const (
	maxStreamsOfOne = 64
	maxStreams      = 512
)

// Pages that are made at once, and not taken yet: those of one policy, and all. One may take some MiB.
const (
	maxVisitsOfOne = 16
	maxVisits      = 96
)

// Requests to the issuer of who signs in there: those of an address, and all.
const (
	maxIssuingOfOne = 4
	maxIssuing      = 32
)

// Access says who may sign in. All methods may be called by many goroutines at once.
type Access interface {
	frame.Access
	// Development: nobody beyond this machine can reach the yard, and the console is open.
	Development() bool
	// OnChange has f called after every change of the policies, until stop is called.
	OnChange(f func()) (stop func())
	// Refused is told of a key that was not good, and returns when its sender may be answered.
	Refused(ctx context.Context, from string, err error)
}

// Sessions keeps who is signed in; a *sessions.Sessions does.
type Sessions interface {
	Begin(ctx context.Context, g auth.Grant) (token string, err error)
	Find(ctx context.Context, token string) (sessions.Session, error)
	End(ctx context.Context, token string) error
}

// Config says what a console works with.
type Config struct {
	// API answers a request to the HTTP API of somebody who has a grant. Required.
	API func(w http.ResponseWriter, r *http.Request, as auth.Grant)
	// Access and Sessions let in. Required.
	Access   Access
	Sessions Sessions
	// Issuer signs people in by OpenID Connect; nil: by keys alone.
	Issuer Issuer
	// PublicURL is where browsers reach the console's listener, as by a proxy that ends TLS: links and the way back
	// from the issuer are to it. Empty: as they say.
	PublicURL string
	// Stopping ends when the yard begins to stop: streams end then. It is a field because it belongs
	// to the listener's life and to no request. nil means never.
	Stopping context.Context
	// Log takes what nobody else hears of. nil means slog.Default().
	Log *slog.Logger
}

// Console serves the pages. It starts no goroutine that outlives a request.
type Console struct {
	cfg     Config
	api     *admin.Client
	assets  *assets
	pages   map[string]*templates
	mux     *http.ServeMux // which finds routes and serves nothing
	missing *route         // answers where there is nothing
	streams *admission.Quota
	visits  *admission.Quota
	issuing *admission.Quota
	sights  *sights
	yards   keptAnswers                // how the yard is as a whole, by who may see it
	info    atomic.Pointer[admin.Info] // which yard it is; nil: not known yet
	now     func() time.Time
	// figuresTime is how long a page waits for figures that it can do without.
	figuresTime time.Duration
}

// New makes a console. Its templates are its own, so that it panics where one of them is wrong.
func New(cfg Config) *Console {
	if cfg.API == nil || cfg.Access == nil || cfg.Sessions == nil {
		panic("console: it needs an API, access and sessions")
	}
	if cfg.Stopping == nil {
		cfg.Stopping = context.Background()
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	c := &Console{
		cfg: cfg, assets: readAssets(), sights: newSights(), now: time.Now, figuresTime: figuresTime,
		streams: admission.NewQuota("live pages", maxStreamsOfOne, maxStreams),
		visits:  admission.NewQuota("pages at once", maxVisitsOfOne, maxVisits),
		issuing: admission.NewQuota("requests to the issuer", maxIssuingOfOne, maxIssuing),
	}
	api, err := admin.New(admin.Config{Server: "http://inside", Transport: inside{cfg.API}})
	if err != nil {
		panic("console: " + err.Error())
	}
	c.api, c.pages = api, parseTemplates(c.assets)
	c.register()
	return c
}

// API is the console as a part of the frame.
func (c *Console) API() frame.API {
	api := frame.API{
		Name: "console", Serves: serves,
		Begin: func(call *frame.Call) frame.Exchange { return &exchange{Call: call, console: c} },
	}
	for _, rt := range c.routes() {
		api.Routes = append(api.Routes, rt.row())
	}
	return api
}

// serves takes what is beneath the console's path, and browsers that come without one.
func serves(r *http.Request) bool {
	if r.URL.Path == "/" {
		return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
	}
	return r.URL.Path+"/" == base || strings.HasPrefix(r.URL.Path, base)
}
