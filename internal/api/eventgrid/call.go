package eventgrid

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
)

// maxDrain is how much of a body is read that is not wanted: a client that is still sending
// when its connection is closed never sees the answer.
const maxDrain = 16 << 20

// maxManageBytes bounds bodies that are not publications.
const maxManageBytes = 1 << 20

// call is one request on its way through the listener.
type call struct {
	handler *Handler
	w       http.ResponseWriter
	r       *http.Request

	id    string
	route route
	names names
	// topic is the one that is published to or pulled from, once the call is let in.
	topic    topics.Topic
	admitted bool
	events   int // of a publication, once they are counted
	status   int // 0 until it is answered
}

func (d *Handler) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := &call{handler: d, w: w, r: r, id: newID(), route: route{name: "none"}}
	w.Header().Set("X-Ms-Request-Id", c.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return c
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := hex.AppendEncode(make([]byte, 0, 36), b[:4])
	for _, part := range [][]byte{b[4:6], b[6:8], b[8:10], b[10:]} {
		text = hex.AppendEncode(append(text, '-'), part)
	}
	return string(text)
}

// parameter gives a value of the query, whose names clients write in any case.
func (c *call) parameter(name string) (string, bool) {
	for given, values := range c.r.URL.Query() {
		if strings.EqualFold(given, name) && len(values) > 0 {
			return values[0], true
		}
	}
	return "", false
}

// number gives a number of the query within its bounds.
func (c *call) number(name string, least, most, otherwise int) (int, error) {
	text, ok := c.parameter(name)
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, &fault{
			status: http.StatusBadRequest, code: "InvalidQueryParameterValue",
			message: fmt.Sprintf("%s is %.32q", name, text),
			next:    fmt.Sprintf("give a number from %d to %d", least, most),
		}
	}
	return n, nil
}

// body reads all of a request's body, at most so many bytes.
func (c *call) body(most int) ([]byte, error) {
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &fault{
			status: http.StatusUnsupportedMediaType, code: "InvalidContentEncoding",
			message: fmt.Sprintf("the body is encoded as %.32q", coding), next: "send it as it is, without Content-Encoding",
		}
	}
	if c.r.ContentLength > int64(most) {
		return nil, c.tooLarge(most)
	}
	var text bytes.Buffer
	if c.r.ContentLength > 0 {
		text.Grow(int(c.r.ContentLength) + bytes.MinRead) // or the end is found by doubling it
	}
	if _, err := text.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, int64(most))); err != nil {
		if as[*http.MaxBytesError](err) {
			return nil, c.tooLarge(most)
		}
		return nil, cutShort(err)
	}
	return text.Bytes(), nil
}

// tooLarge says how much a body may have. What is taken beyond the limit is no promise.
func (c *call) tooLarge(most int) error {
	f := &fault{
		status: http.StatusRequestEntityTooLarge, code: codeTooLarge,
		message: fmt.Sprintf("the body is too large, it may have at most %d bytes", most), next: "make it smaller",
	}
	if c.route.need == toPublish {
		limit := c.handler.cfg.MaxBytes
		f.message = fmt.Sprintf("the body is too large, a publication may have at most %d bytes (%.1f MiB) and %d events", limit, float64(limit)/(1<<20), maxEvents)
		f.next = "split it into several smaller requests; an event that is too large alone has to become smaller"
	}
	return f
}

// cutShort tells a body that did not come whole from one that did not come in time.
func cutShort(err error) error {
	status := http.StatusBadRequest
	if errors.Is(err, os.ErrDeadlineExceeded) {
		status = http.StatusRequestTimeout // which clients try again by themselves
	}
	return &fault{
		status: status, code: "RequestBodyIncomplete",
		message: "the body did not come whole: " + err.Error(), next: "send the request again; nothing was stored",
	}
}

// takeUntil lets the answer take longer than the server allows by itself.
func (c *call) takeUntil(at time.Time) {
	connection := http.NewResponseController(c.w)
	_ = connection.SetReadDeadline(at) // a connection that is not read ends the request, too
	_ = connection.SetWriteDeadline(at)
}

// reply ends a call with a whole answer; body may be nil.
func (c *call) reply(status int, contentType string, body []byte) error {
	h := c.w.Header()
	if body != nil {
		h.Set("Content-Type", contentType)
	}
	h.Set("Cache-Control", "no-store")
	if status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	c.status = status
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body) // a failed write means that nobody is left to tell
	}
	return nil
}

// replyJSON ends a call with a document.
func (c *call) replyJSON(status int, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // URLs are read by people, too
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return c.reply(status, "application/json", text.Bytes())
}

// statusClientGone is what proxies write down for a client that left before its answer; it is
// never received by anyone.
const statusClientGone = 499

// refuse answers with an error, unless nobody is left to hear it.
func (c *call) refuse(err error) {
	f := judge(err)
	if f.status == http.StatusInternalServerError {
		c.handler.cfg.Log.Error("a grid request could not be served", "operation", c.route.name, "request", c.id, "topic", c.names.topic, "error", err)
	}
	c.handler.metrics.refused(c, f)
	if c.r.Context().Err() != nil && c.handler.cfg.Stopping.Err() == nil {
		c.status = statusClientGone
		c.w.WriteHeader(statusClientGone)
		return
	}
	if c.admitted && c.r.Body != nil && c.r.ContentLength <= maxDrain {
		_, _ = io.CopyN(io.Discard, c.r.Body, maxDrain)
	}
	if f.status == http.StatusUnauthorized {
		f.next += c.handler.howToEnter()
	}
	c.report(f)
}

// report writes a fault in the form that the route speaks.
func (c *call) report(f *fault) {
	h := c.w.Header()
	h.Set("x-ms-error-code", f.word())
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(f.retryAfter.Seconds())))
	}
	if f.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = challenges
	}
	if c.route.name == "Validate" && wantsPage(c.r) {
		c.page(f.status, "The endpoint was not confirmed", f.text())
		return
	}
	_ = c.replyJSON(f.status, f.document())
}

// shorten keeps what a client wrote from filling an answer.
func shorten(text string) string { return fmt.Sprintf("%.128q", text) }
