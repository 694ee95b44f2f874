package grid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/tracing"
)

// HandlerConfig says what a Handler takes. The zero value works.
type HandlerConfig struct {
	// Keys check the signatures of deliveries (Standard Webhooks): whsec_… or whpk_…, one of
	// them has to fit. None: signatures are not looked at.
	Keys []string
	// Tolerance is how far the sender's clock may be off; zero: 5 minutes.
	Tolerance time.Duration
	// MaxBytes of a request; zero: 4 MiB. More is answered 413.
	MaxBytes int64
	// Origins are the grids that may deliver CloudEvents here, such as eventgrid.azure.net; nil:
	// all.
	Origins []string
	// MaxPerMinute is how many requests a grid of CloudEvents may send, which the handshake says;
	// zero: as many as it likes. It is not enforced here.
	MaxPerMinute int
	// Custom says that events are in a schema of the application's own: Event.Data is the whole
	// of each. Without it an event is taken for such a one only where it is clear that it is of
	// no other schema.
	Custom bool
	// OnError gets each error that a delivery was answered with; nil: they go to slog.Default().
	OnError func(error)
}

// Delivery is an event that was delivered.
type Delivery struct {
	Event Event
	// Attempt counts the attempts before this one: 0 is the first.
	Attempt int
	// Subscription is the name of the subscription, in capitals.
	Subscription string
	// Header is the request's, with the headers that the subscription adds.
	Header http.Header
}

// Handler receives what a grid delivers by webhook, a yard's or Azure's. It answers both
// handshakes (the validation event of the Event Grid schema, and OPTIONS of CloudEvents), reads
// events however they are written, and hands each request's to a function.
//
// What the function returns decides for all events of the request: nil says that they are done
// (200). Reject says never to send them again (400), RetryAfter when to (503), and any other
// error, and a panic, that they are to come again as the subscription's schedule has it (500).
//
// A signature that does not fit is answered 412 and not 401, after which a grid would give the
// event up: keys that were changed in the wrong order cost a delay, but no events.
type Handler struct {
	handle   func(context.Context, []Delivery) error
	verifier *signature.Verifier // nil: signatures are not looked at
	cfg      HandlerConfig
}

// NewHandler makes a handler. The function is called by many goroutines at once; its context
// ends when the sender hangs up, and carries the trace of the request (tracing.Of).
func NewHandler(handle func(ctx context.Context, batch []Delivery) error, cfg HandlerConfig) (*Handler, error) {
	if handle == nil {
		return nil, errors.New("grid handler: no function: give one that takes deliveries")
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 4 << 20
	}
	if cfg.OnError == nil {
		cfg.OnError = func(err error) { slog.Default().Warn("delivery was not taken", "error", err) }
	}
	h := &Handler{handle: handle, cfg: cfg}
	if len(cfg.Keys) == 0 {
		return h, nil
	}
	var err error
	if h.verifier, err = signature.NewVerifier(cfg.Keys); err != nil {
		return nil, fmt.Errorf("grid handler: %w", err)
	}
	return h, nil
}

// ServeHTTP takes a delivery, or a part of a handshake.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		h.receive(w, r)
	case http.MethodOptions:
		h.consent(w, r)
	default:
		w.Header().Set("Allow", allowed)
		http.Error(w, "this is a webhook: events come by POST", http.StatusMethodNotAllowed)
	}
}

func (h *Handler) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBytes))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		h.answer(w, &fault{http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", h.cfg.MaxBytes)})
		return
	}
	if err != nil {
		h.answer(w, &fault{http.StatusRequestTimeout, fmt.Errorf("read the request: %w", err)})
		return
	}
	switch kindOf(r.Header, body) {
	case validation:
		h.echo(w, body)
	case deletion:
		w.WriteHeader(http.StatusOK)
	default:
		h.answer(w, h.deliver(r, body))
	}
}

func (h *Handler) deliver(r *http.Request, body []byte) error {
	if h.verifier != nil {
		if err := h.verifier.Verify(r.Header, body, time.Now(), h.cfg.Tolerance); err != nil {
			return &fault{http.StatusPreconditionFailed, err}
		}
	}
	events, err := decodeRequest(r.Header, body, h.cfg.Custom)
	if err != nil || len(events) == 0 {
		return err
	}
	attempt, _ := strconv.Atoi(r.Header.Get("aeg-delivery-count"))
	batch := make([]Delivery, len(events))
	for i, e := range events {
		batch[i] = Delivery{Event: e, Attempt: max(attempt, 0), Subscription: r.Header.Get("aeg-subscription-name"), Header: r.Header}
	}
	return h.call(tracing.With(r.Context(), tracing.OfHeader(r.Header)), batch)
}

// call makes an error of a panic, but for the one by which a handler ends a connection.
func (h *Handler) call(ctx context.Context, batch []Delivery) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return h.handle(ctx, batch)
}

// decodeRequest reads the events of a request, in whichever shape they come.
func decodeRequest(header http.Header, body []byte, custom bool) ([]Event, error) {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if header.Get("Content-Encoding") != "" {
		return nil, &fault{http.StatusUnsupportedMediaType, errors.New("the request is compressed, which is not understood here")}
	}
	var events []Event
	structured := strings.HasPrefix(media, "application/cloudevents")
	switch {
	case header.Get(attributeHeader+"Specversion") != "" && !structured: // binary mode
		events = make([]Event, 1)
		events[0], err = decodeBinary(header, body)
	case err != nil || !isJSON(media):
		return nil, &fault{http.StatusUnsupportedMediaType, fmt.Errorf("content type %.64q is none of events", header.Get("Content-Type"))}
	default:
		events, err = decodeBody(body, custom && !structured)
	}
	if err != nil {
		return nil, &fault{http.StatusBadRequest, err}
	}
	return events, nil
}

// Reject is what a handler's function returns for events that it will never be able to take: they
// are not sent again, but dead-lettered at once, or dropped where the subscription has no target
// for dead letters. The error's text is sent to the sender. It decides for the whole batch.
func Reject(err error) error {
	if err == nil {
		err = errors.New("rejected")
	}
	return &fault{http.StatusBadRequest, err}
}

// RetryAfter is what a handler's function returns to be asked again later, not before d has
// passed. Grids cap it (a yard at an hour, if nothing else was said) and never wait less than
// their own schedule says. err, which may be nil, is for OnError.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to come again later")
	}
	return &later{after: d, err: err}
}

// fault is an error with its own status, whose text is fit for the sender.
type fault struct {
	status int
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

type later struct {
	after time.Duration
	err   error
}

func (l *later) Error() string { return fmt.Sprintf("%v (again after %v)", l.err, l.after) }
func (l *later) Unwrap() error { return l.err }

// answer reports to the sender what became of its request. The text of an error that is not meant
// for the sender stays here.
func (h *Handler) answer(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	h.cfg.OnError(err)
	status, text := http.StatusInternalServerError, "the receiver could not take the events"
	if f := (*fault)(nil); errors.As(err, &f) {
		status, text = f.status, f.Error()
	}
	if l := (*later)(nil); errors.As(err, &l) {
		status, text = http.StatusServiceUnavailable, "the receiver asks to come again later"
		if l.after > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64((l.after-1)/time.Second)+1, 10))
		}
	}
	http.Error(w, text, status)
}
