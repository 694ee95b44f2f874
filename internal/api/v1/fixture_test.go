package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is a real broker on the real disk engine in memory, behind a real HTTP server
// on connections in memory. It works inside a synctest bubble and outside.
type yard struct {
	t        testing.TB
	fs       *vfs.Mem
	engine   *disk.Engine
	store    *bolt.Store
	log      *slog.Logger
	broker   *broker.Broker
	registry *access.Registry
	groups   *groups.Registry
	handler  *Handler
	frame    *frame.Frame
	client   *http.Client
	// stopping makes the listener drain.
	stopping context.CancelFunc
	// errors is what was logged as an error.
	errors *errorLog
	// ops collects the operations of openapi.json that were used.
	ops *checker
	// authorization is what requests show that say nothing else.
	authorization string
}

// newYard opens a yard without a grid; change may alter the listener's configuration.
func newYard(t testing.TB, change ...func(*Config)) *yard {
	t.Helper()
	y := openYard(t)
	y.openHandler(change...)
	return y
}

// openYard opens what is behind the listener.
func openYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{t: t, fs: vfs.NewMem(), errors: &errorLog{}, authorization: basic(auth.RootPolicy, auth.DevelopmentKey)}
	y.log = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), y.errors), nil))
	t.Cleanup(y.errors.check(t))
	var err error
	y.engine, err = disk.Open(disk.Config{FS: y.fs, SegmentBytes: 1 << 20, Log: y.log})
	must(t, err)
	t.Cleanup(func() { must(t, y.engine.Close()) })
	y.store, err = bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "meta.db"), NoSync: true, Log: y.log})
	must(t, err)
	t.Cleanup(func() { must(t, y.store.Close()) })
	y.broker, err = broker.Open(t.Context(), broker.Config{Engine: y.engine, Meta: y.store, Log: y.log})
	must(t, err)
	y.registry, err = access.Open(t.Context(), access.Config{Meta: y.store, Hub: y.hubCreated, Development: true, Log: y.log})
	must(t, err)
	y.groups, err = groups.New(groups.Config{Meta: y.store, Broker: y.broker, Log: y.log})
	must(t, err)
	return y
}

// openHandler makes the listener and serves it.
func (y *yard) openHandler(change ...func(*Config)) {
	stopping, stop := context.WithCancel(context.Background())
	y.stopping = stop
	cfg := Config{Broker: y.broker, Access: y.registry, Groups: y.groups, Version: "1.2.3", Engine: "disk", Log: y.log, Stopping: stopping}
	for _, c := range change {
		c(&cfg)
	}
	y.handler = New(cfg)
	y.frame = frame.New(frame.Config{Stopping: stopping, Log: y.log}, y.handler.APIs()...)
	y.serve()
}

func (y *yard) hubCreated(name string) (time.Time, bool) {
	hub, err := y.broker.Hub(name)
	return hub.Created, err == nil
}

// as is the same yard for a client that shows something else; empty means nothing.
func (y *yard) as(authorization string) *yard {
	other := *y
	other.authorization = authorization
	return &other
}

// serve runs the listener behind a listener in memory. Every exchange with it is held
// against openapi.json.
func (y *yard) serve() {
	listener := newMemoryListener()
	server := &http.Server{Handler: y.frame, ErrorLog: slog.NewLogLogger(y.log.Handler(), slog.LevelDebug)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	transport := &http.Transport{DialContext: listener.dial, DisableCompression: true}
	y.ops = newChecker(y.t, transport)
	y.client = &http.Client{Transport: y.ops}
	y.t.Cleanup(func() {
		y.stopping()
		transport.CloseIdleConnections()
		_ = server.Close()
		<-done
	})
}

// in is the same yard for a subtest.
func (y *yard) in(t testing.TB) *yard {
	sub := *y
	sub.t = t
	return &sub
}

// hub creates a hub.
func (y *yard) hub(name string, partitions int) {
	y.t.Helper()
	_, err := y.broker.CreateHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions})
	must(y.t, err)
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) json(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("answer %d is not the JSON that was expected: %v\n%s", r.status, err, r.body)
	}
}

// do sends a request and reads the whole answer. body is a string, or a value to be
// sent as JSON, or nil.
func (y *yard) do(method, path string, body any, header ...string) reply {
	y.t.Helper()
	resp := y.open(y.t.Context(), method, path, body, header...)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(y.t, err)
	return reply{status: resp.StatusCode, header: resp.Header, body: data}
}

// open sends a request and leaves the answer's body to be read.
func (y *yard) open(ctx context.Context, method, path string, body any, header ...string) *http.Response {
	y.t.Helper()
	var reader io.Reader
	kind := ""
	switch b := body.(type) {
	case nil:
	case string:
		reader, kind = strings.NewReader(b), "application/json"
	default:
		data, err := json.Marshal(b)
		must(y.t, err)
		reader, kind = bytes.NewReader(data), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, reader)
	must(y.t, err)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if y.authorization != "" {
		req.Header.Set("Authorization", y.authorization)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := y.client.Do(req)
	must(y.t, err)
	return resp
}

// want sends a request and insists on its status.
func (y *yard) want(status int, method, path string, body any, header ...string) reply {
	y.t.Helper()
	got := y.do(method, path, body, header...)
	if got.status != status {
		y.t.Fatalf("%s %s answered %d, want %d\n%s", method, path, got.status, status, got.body)
	}
	return got
}

// refused sends a request and insists on a problem of this kind that says what next.
func (y *yard) refused(status int, kind, method, path string, body any, header ...string) admin.Problem {
	y.t.Helper()
	got := y.want(status, method, path, body, header...)
	var p admin.Problem
	got.json(y.t, &p)
	if !bytes.HasSuffix([]byte(got.body), []byte("}\n")) {
		y.t.Errorf("the problem does not end its line: %q", got.body)
	}
	testkit.Equal(y.t, got.header.Get("Content-Type"), "application/problem+json", "content type")
	if p.Type != problemPrefix+kind || p.Status != status || p.Title == "" || p.Detail == "" || p.Next == "" {
		y.t.Errorf("problem is %+v, want kind %q and all of its fields", p, kind)
	}
	return p
}

// send stores text events in a partition.
func (y *yard) send(hub, partition string, bodies ...string) {
	y.t.Helper()
	events := make([]map[string]any, len(bodies))
	for i, body := range bodies {
		events[i] = map[string]any{"body": body}
	}
	y.want(http.StatusCreated, "POST", "/api/v1/hubs/"+hub+"/events", map[string]any{"events": events, "partition": partition})
}

// shown is an event as it is read.
type shown struct {
	Partition     string          `json:"partition"`
	Sequence      int64           `json:"sequence"`
	Offset        string          `json:"offset"`
	Enqueued      string          `json:"enqueued"`
	Key           string          `json:"key"`
	Body          json.RawMessage `json:"body"`
	BodyBase64    *string         `json:"bodyBase64"`
	Value         json.RawMessage `json:"value"`
	ContentType   string          `json:"contentType"`
	MessageID     string          `json:"messageId"`
	CorrelationID string          `json:"correlationId"`
	Subject       string          `json:"subject"`
	Properties    map[string]any  `json:"properties"`
	System        map[string]any  `json:"system"`
	Unreadable    string          `json:"unreadable"`
	StoredBase64  string          `json:"storedBase64"`
}

// text is the body, which is expected to be text.
func (s shown) text() string {
	var text string
	if json.Unmarshal(s.Body, &text) != nil {
		return "not text: " + string(s.Body)
	}
	return text
}

type shownPage struct {
	Events []shown `json:"events"`
	Next   int64   `json:"next"`
}

// page reads one.
func (y *yard) page(hub, partition, query string) shownPage {
	y.t.Helper()
	var p shownPage
	y.want(http.StatusOK, "GET", "/api/v1/hubs/"+hub+"/partitions/"+partition+"/events?"+query, nil).json(y.t, &p)
	return p
}

func texts(events []shown) string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.text()
	}
	return strings.Join(list, " ")
}

func must(t testing.TB, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// errorLog counts the lines of a log that say that something promised was not kept.
// A test that provokes such says how many.
type errorLog struct{ logged, want atomic.Int64 }

func (l *errorLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("level=ERROR")) {
		l.logged.Add(1)
	}
	return len(line), nil
}

func (l *errorLog) check(t testing.TB) func() {
	return func() {
		if logged, want := l.logged.Load(), l.want.Load(); logged != want {
			t.Errorf("%d errors were logged, want %d", logged, want)
		}
	}
}

// memoryListener accepts connections that are pipes in memory.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
