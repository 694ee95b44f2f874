package eventgrid

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Handler is an http.Handler. It starts no goroutine.
type Handler struct {
	cfg         Config
	routes      []route // read only
	crossOrigin *http.CrossOriginProtection
	metrics     *metrics
}

// New makes a listener. It listens on nothing: put it before the HTTP listener for what it Serves.
func New(cfg Config) *Handler {
	if cfg.Topics == nil || cfg.Pull == nil || cfg.Access == nil {
		panic("gridapi: a listener needs topics, somebody to pull from, and access")
	}
	cfg = cfg.withDefaults()
	return &Handler{
		cfg: cfg, routes: routes(), crossOrigin: http.NewCrossOriginProtection(), metrics: newMetrics(cfg.Metrics),
	}
}

// ServeHTTP answers one request.
func (d *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := d.newCall(w, r)
	defer func() { d.observe(c, time.Since(began)) }()
	defer d.survive(c)
	if err := d.answer(c); err != nil {
		c.refuse(err)
	}
}

func (d *Handler) answer(c *call) error {
	if err := d.guard(c.r); err != nil {
		return err
	}
	if err := d.find(c); err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	c.admitted = true
	return c.route.serve(c)
}

// guard keeps web pages out, as that of the HTTP listener does: in development everybody knows the
// key, and a page of another name may be pointed at this machine (DNS rebinding).
func (d *Handler) guard(r *http.Request) error {
	if d.cfg.LoopbackOnly && !auth.IsLocalName(r.Host, d.cfg.Host) {
		return &fault{
			status: http.StatusForbidden, code: "ForeignHost",
			message: "this yard answers to local names only",
			next:    "use 127.0.0.1, localhost, or a name beneath it such as orders.localhost",
		}
	}
	if err := d.crossOrigin.Check(r); err != nil && !isDelivery(r) {
		return &fault{
			status: http.StatusForbidden, code: "CrossOrigin",
			message: "a page of another origin may not change anything here: " + err.Error(),
			next:    "send the request from a program, or from a page that this yard serves",
		}
	}
	return nil
}

// isDelivery tells a grid that delivers CloudEvents to a topic of ours: it names itself in Origin,
// as pages do, and in a header of its own (reference §9), which no page can send to another origin
// that does not agree to it beforehand (CORS). Browsers that say where a request comes from are
// believed.
func isDelivery(r *http.Request) bool {
	return r.Header.Get("WebHook-Request-Origin") != "" && r.Header.Get("Sec-Fetch-Site") == ""
}

// errPanicked is what a client is told of a panic; the log has the rest.
var errPanicked = errors.New("the yard made a mistake of its own in answering this request")

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
	d.cfg.Log.Error("a grid request made its handler panic", "operation", c.route.name, "request", c.id, "panic", reason, "stack", string(debug.Stack()))
	if c.status == 0 {
		c.report(judge(errPanicked))
		return
	}
	c.status = http.StatusInternalServerError
	panic(http.ErrAbortHandler)
}

// observe writes down what became of a request.
func (d *Handler) observe(c *call, took time.Duration) {
	d.metrics.observe(c, took)
	if d.cfg.Log.Enabled(c.r.Context(), slog.LevelDebug) {
		d.cfg.Log.Debug("grid request answered", "operation", c.route.name, "request", c.id, "method", c.r.Method,
			"topic", c.topic.Name, "subscription", c.names.subscription, "events", c.events, "status", c.status, "took", took)
	}
}
