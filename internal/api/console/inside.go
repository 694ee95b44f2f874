package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// inside carries the requests of the API's client to the API in this process. They are made as
// whoever the console's own request is from, by its connection: addresses in answers are those by
// which the browser came.
type inside struct {
	api func(w http.ResponseWriter, r *http.Request, as auth.Grant)
}

// visitKey is where a context has the visit that a call is made for.
type visitKey struct{}

// errNobody is a mistake of ours: a call that is not made for a visit.
var errNobody = errors.New("a call of the API is for nobody")

// errCut: the API has cut an answer off.
var errCut = errors.New("the answer broke off")

// RoundTrip begins the call and gives its answer as soon as that has begun. The call ends with the
// request's context, or when its answer is whole or closed.
func (t inside) RoundTrip(out *http.Request) (*http.Response, error) {
	v, ok := out.Context().Value(visitKey{}).(*visit)
	if !ok {
		return nil, errNobody
	}
	reader, writer := io.Pipe()
	a := &answer{header: http.Header{}, began: make(chan struct{}), body: writer}
	go t.serve(a, v.incoming(out), v.who.Grant)
	select {
	case <-a.began:
	case <-out.Context().Done():
		_ = reader.Close()
		return nil, context.Cause(out.Context())
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: reader, ContentLength: -1, Request: out,
	}, nil
}

func (t inside) serve(a *answer, r *http.Request, as auth.Grant) {
	defer func() {
		err := error(nil)
		if recover() != nil { // the frame has logged it, and means to cut the connection
			err = cmp.Or(context.Cause(r.Context()), errCut)
		}
		a.WriteHeader(http.StatusOK)
		_ = a.body.CloseWithError(err)
	}()
	t.api(a, r, as)
}

// incoming is a request of a client as a server sees it.
func (v *visit) incoming(out *http.Request) *http.Request {
	ctx := out.Context()
	if !v.until.IsZero() {
		ctx = cluster.WithPatience(ctx, v.until)
	}
	in := out.Clone(ctx)
	in.Header.Del("Authorization")
	in.URL = &url.URL{Path: out.URL.Path, RawPath: out.URL.RawPath, RawQuery: out.URL.RawQuery}
	in.RequestURI, in.Host, in.RemoteAddr, in.TLS = in.URL.RequestURI(), v.r.Host, v.r.RemoteAddr, v.r.TLS
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// answer is the writer of one answer, used by the goroutine that serves it.
type answer struct {
	header http.Header
	began  chan struct{}
	once   sync.Once
	status int         // read after began
	sent   http.Header // likewise
	body   *io.PipeWriter
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if status < http.StatusOK {
		return // what comes before an answer
	}
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.began)
	})
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush and the deadlines are for streams. Nothing waits to be flushed, and who reads is this process.
func (a *answer) Flush()                           { a.WriteHeader(http.StatusOK) }
func (a *answer) SetWriteDeadline(time.Time) error { return nil }
func (a *answer) SetReadDeadline(time.Time) error  { return nil }
