package frame

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
)

// StatusClientGone is what proxies write down for a client that left before its answer; it is
// never received by anyone.
const StatusClientGone = 499

// maxDrain is how much of a body is read that is not wanted.
const maxDrain = 16 << 20

// Call is one request on its way through the frame, and the writer of its answer, which it takes
// note of. Only the request's own goroutine uses it.
type Call struct {
	http.ResponseWriter
	R *http.Request
	// ID names the request to its client and in the log; empty where the API has none.
	ID string
	// Route is the one that was found, or one named "none".
	Route Route
	// Holder is whom the request is counted for, as Admit has found it: a policy, a topic whose key was
	// shown, or the subject of a token.
	Holder string
	// Admitted: the caller was let in.
	Admitted bool
	// Refused is what the client was told, or would have been if it had not left; nil: it was
	// served.
	Refused *Refusal

	status int
}

// Status is that of the answer, 0 before it has begun.
func (c *Call) Status() int { return c.status }

// WriteHeader begins the answer.
func (c *Call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *Call) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (c *Call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Drain reads what is left of the body of a client that was let in: one that is still sending when
// its connection is closed never sees the answer.
func (c *Call) Drain() {
	if c.Admitted && c.R.Body != nil && c.R.ContentLength <= maxDrain {
		_, _ = io.CopyN(io.Discard, c.R.Body, maxDrain)
	}
}

// about is what the log says of a call, and more.
func (c *Call) about(api *API, more ...any) []any {
	attrs := []any{"api", api.Name, "operation", c.Route.Label(), "method", c.R.Method, "path", c.R.URL.Path}
	if c.ID != "" {
		attrs = append(attrs, "request", c.ID)
	}
	return append(attrs, more...)
}

// Reply writes a whole answer; body may be nil. A failed write means that the client is gone, and
// there is nobody left to tell.
func Reply(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	if body != nil {
		h.Set("Content-Type", contentType)
	}
	h.Set("Cache-Control", "no-store")
	if status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// NewID is a random UUID.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := hex.AppendEncode(make([]byte, 0, 36), b[:4])
	for _, part := range [][]byte{b[4:6], b[6:8], b[8:10], b[10:]} {
		text = hex.AppendEncode(append(text, '-'), part)
	}
	return string(text)
}
