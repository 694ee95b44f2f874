// Package azureblob is the part of the Azure Blob REST API that checkpoint stores and other small
// users of it need, under /blob/ACCOUNT/CONTAINER/BLOB, at a host ACCOUNT.blob.DOMAIN, or under
// /ACCOUNT/CONTAINER/BLOB in the storage emulator's place. It translates and keeps no state: every
// call ends in a blob.Service, and a 2xx answer to a write means that it is stored.
//
// A request is found in one table (operations.go), let in by a shared key, a shared-access
// signature or a bearer token (admit.go), and served by a frame; errors have the service's form
// (errors.go).
package azureblob

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/prometheus/client_golang/prometheus"
)

// Prefix is that of all paths of this listener.
const Prefix = "/blob/"

// HostPrefix and a dot stand before the yard's name in a host that is the account's.
const HostPrefix = Account + ".blob"

// Access is what the listener asks of who keeps the keys.
type Access interface {
	Account() access.Account
	AccountQuota() *quota.Meter
	Policy(hub, name string) (access.Policy, error)
	Token(ctx context.Context, token, audience string) (auth.Grant, error)
	Development() bool
}

var _ Access = (*access.Registry)(nil)

// Config says what a listener serves and how.
type Config struct {
	// Blobs does the work. Required.
	Blobs *blob.Service
	// Access has the account's keys and knows bearer tokens. Required.
	Access Access

	// MaxUploads is how many bodies that are not small may come in at once; more wait a
	// while and are refused then. 0 means 64.
	MaxUploads int
	// Patience is how long a client may leave a read or write of a body waiting, and how
	// long an upload, or a list, waits for its turn. 0 means 30 s.
	Patience time.Duration

	// Log takes what the listener cannot tell its client. nil means slog.Default().
	Log *slog.Logger
	// Metrics takes the listener's counts; nil means nobody.
	Metrics prometheus.Registerer
}

// Handler is the API. It starts no goroutine.
type Handler struct {
	cfg        Config
	blobs      *blob.Service
	operations map[selector]operation // read only, like routes
	routes     map[selector]frame.Route
	uploads    chan struct{} // has a place for each upload under way
	lists      chan struct{} // and for each list that is being made
	metrics    *frame.Metrics
}

// New makes the API. It listens on nothing: give what API returns to a frame.
func New(cfg Config) *Handler {
	if cfg.Blobs == nil || cfg.Access == nil {
		panic("azureblob: the API needs both blobs and access")
	}
	cfg.MaxUploads = cmp.Or(cfg.MaxUploads, 64)
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	d := &Handler{
		cfg: cfg, blobs: cfg.Blobs, operations: operations(), routes: map[selector]frame.Route{},
		uploads: make(chan struct{}, cfg.MaxUploads), lists: make(chan struct{}, maxLists),
		metrics: frame.NewMetrics(cfg.Metrics, frame.MetricNames{
			Requests: "eventyard_blob_requests_total", RequestsHelp: "Requests to the blob endpoint, by operation and status.",
			Seconds: "eventyard_blob_request_duration_seconds", SecondsHelp: "How long requests to the blob endpoint took, by operation.",
		}, false),
	}
	for at, op := range d.operations {
		d.routes[at] = routeOf(at, op)
	}
	return d
}

// API is what a frame serves.
func (d *Handler) API() frame.API {
	api := frame.API{Name: "azureblob", Serves: Serves, Beneath: []string{HostPrefix, DevelopmentAccount + ".blob"}}
	api.Begin = func(c *frame.Call) frame.Exchange { return d.newCall(c) }
	for _, rt := range d.routes {
		api.Routes = append(api.Routes, rt)
	}
	return api
}

// Emulator is the same for a listener in the place of the official storage emulator, where a path
// begins with the account: what UseDevelopmentStorage=true leads to.
func (d *Handler) Emulator() frame.API {
	api := d.API()
	api.Serves = nil
	api.Begin = func(c *frame.Call) frame.Exchange {
		call := d.newCall(c)
		call.emulator = true
		return call
	}
	return api
}

// Serves reports whether a request is one for this API, by its path or by its host.
func Serves(r *http.Request) bool {
	_, ok := accountOfHost(r.Host)
	return ok || strings.HasPrefix(r.URL.Path+"/", Prefix)
}
