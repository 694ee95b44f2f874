// Package azureblob is the blob listener: the part of the Azure Blob REST API that checkpoint
// stores and other small users of it need, under /blob/ACCOUNT/CONTAINER/BLOB or at a host
// ACCOUNT.blob.DOMAIN. It translates and keeps no state: every call ends in a
// blob.Service, and a 2xx answer to a write means that it is stored.
//
// A request is found in one table (operations.go), let in by a shared key, a shared-access
// signature or a bearer token (admit.go), and served. Errors of the store and of this listener
// have their answers in another table (errors.go).
package azureblob

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/prometheus/client_golang/prometheus"
)

// Prefix is that of all paths of this listener.
const Prefix = "/blob/"

// Access is what the listener asks of who keeps the keys.
type Access interface {
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

	// LoopbackOnly refuses requests whose Host is neither an IP address nor a name of this
	// machine, as the HTTP listener does.
	LoopbackOnly bool
	// Host is a name that the operator has given the yard, as good as one of this
	// machine's; empty if none.
	Host string
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

func (c Config) withDefaults() Config {
	if c.MaxUploads == 0 {
		c.MaxUploads = 64
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	return c
}

// Handler serves the API. It starts no goroutine.
type Handler struct {
	cfg         Config
	blobs       *blob.Service
	operations  map[selector]operation // read only
	crossOrigin *http.CrossOriginProtection
	uploads     chan struct{} // has a place for each upload under way
	lists       chan struct{} // and for each list that is being made
	metrics     *metrics
}

// New makes a listener. It listens on nothing: mount it in an http.Server at Prefix.
func New(cfg Config) *Handler {
	if cfg.Blobs == nil || cfg.Access == nil {
		panic("blobapi: a listener needs both blobs and access")
	}
	cfg = cfg.withDefaults()
	return &Handler{
		cfg: cfg, blobs: cfg.Blobs, operations: operations(), crossOrigin: http.NewCrossOriginProtection(),
		uploads: make(chan struct{}, cfg.MaxUploads), lists: make(chan struct{}, maxLists), metrics: newMetrics(cfg.Metrics),
	}
}

// Serves tells whether a request is one for this listener, by its path or by its host.
func Serves(r *http.Request) bool {
	if _, ok := accountOfHost(r.Host); ok {
		return true
	}
	return strings.HasPrefix(r.URL.Path+"/", Prefix)
}

// ServeHTTP answers one request.
func (d *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := d.newCall(w, r)
	defer func() { d.metrics.observe(c, time.Since(began)) }()
	defer d.survive(c)
	if err := d.answer(c); err != nil {
		c.refuse(err)
	}
}

func (d *Handler) answer(c *call) error {
	if err := d.guard(c.r); err != nil {
		return err
	}
	if err := c.locate(); err != nil {
		return err
	}
	op, err := d.find(c)
	if err != nil {
		return err
	}
	c.operation = op.name
	if c.grant, err = d.admit(c); err != nil {
		return err
	}
	c.admitted = true
	if err := c.grant.allow(c, op); err != nil {
		return err
	}
	if err := c.refuseUnsupported(); err != nil {
		return err
	}
	return op.serve(c)
}

// guard keeps web pages out, as that of the HTTP listener does: everybody knows the key of the
// development account, and a page of another name may be pointed at this machine.
func (d *Handler) guard(r *http.Request) error {
	if d.cfg.LoopbackOnly && !auth.IsLocalName(r.Host, d.cfg.Host) {
		return refusal(http.StatusForbidden, "AuthorizationFailure",
			"this yard answers to local names only: use 127.0.0.1 or localhost")
	}
	if err := d.crossOrigin.Check(r); err != nil {
		return refusal(http.StatusForbidden, "AuthorizationFailure", "a page of another origin may not change anything here: "+err.Error())
	}
	return nil
}

// survive keeps a panic of one request from the others. Where the answer has begun the
// connection is cut, so that no client takes the half for the whole.
func (d *Handler) survive(c *call) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler {
		panic(reason)
	}
	d.cfg.Log.Error("a blob request made its handler panic", "operation", c.operation, "panic", reason, "stack", string(debug.Stack()))
	if c.status == 0 {
		c.refuse(refusal(http.StatusInternalServerError, "InternalError", "the yard made a mistake of its own in answering this request"))
		return
	}
	panic(http.ErrAbortHandler)
}
