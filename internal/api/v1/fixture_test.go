package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity/journal"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	kafkagroups "github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/series"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/pipe"
)

// yard is a real broker on a real engine, that of files in memory unless storagetest is told otherwise,
// behind a real HTTP server on connections in memory. It works inside a synctest bubble and outside.
type yard struct {
	*storagetest.Storage
	t        testing.TB
	log      *slog.Logger
	broker   *broker.Broker
	registry *access.Registry
	groups   *groups.Registry
	kafka    *kafkagroups.Coordinator
	figures  *fakeFigures
	handler  *Handler
	frame    *frame.Frame
	client   *http.Client
	// stopping makes the listener drain.
	stopping context.CancelFunc
	// errors is the log, in which errors are counted.
	errors *testkit.ErrorLog
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
	return openYardOn(t, nil)
}

// openYardOn is openYard on files, unless fs is nil.
func openYardOn(t testing.TB, fs vfs.FS) *yard {
	t.Helper()
	y := &yard{t: t, errors: testkit.NewErrorLog(t, slog.LevelInfo), authorization: basic(auth.RootPolicy, auth.DevelopmentKey)}
	y.log = y.errors.Logger
	y.Storage = storagetest.Open(t, storagetest.Config{FS: fs, SegmentBytes: 1 << 20, Log: y.log})
	var err error
	y.broker, err = broker.Open(t.Context(), broker.Config{Engine: y.Engine, Meta: y.Meta, Translators: record.Translators(), Log: y.log})
	testkit.Must(t, err)
	y.registry, err = access.Open(t.Context(), access.Config{Meta: y.Meta, Hub: y.hubCreated, Development: true, Log: y.log})
	testkit.Must(t, err)
	y.groups, err = groups.New(groups.Config{Meta: y.Meta, Broker: y.broker, Log: y.log})
	testkit.Must(t, err)
	y.kafka = testkit.Value(kafkagroups.New(kafkagroups.Config{Meta: y.Meta, Broker: y.broker, Node: "here", Log: y.log}))(t)
	y.figures = &fakeFigures{store: series.NewStore(100)}
	return y
}

// certificate stands for that of the yard's authority.
const certificate = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"

// openHandler makes the listener and serves it.
func (y *yard) openHandler(change ...func(*Config)) {
	stopping, stop := context.WithCancel(context.Background())
	y.stopping = stop
	cfg := Config{Broker: y.broker, Access: y.registry, Groups: y.groups, Version: "1.2.3", Engine: "disk", Log: y.log, Stopping: stopping,
		CA: func() ([]byte, error) { return []byte(certificate), nil }}
	cfg.KafkaGroups = kafkagroups.Operator{Coordinator: y.kafka}
	cfg.Maintenance, cfg.Figures = fakeMaintenance{}, y.figures
	kept, err := journal.New(journal.Config{Engine: y.Engine, Node: "here", Log: y.log})
	testkit.Must(y.t, err)
	cfg.Activity, cfg.Storage = kept, fakeStorage{}
	cfg.Backup = func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "a backup"); return err }
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
	listener := pipe.NewListener("yard")
	server := &http.Server{Handler: y.frame, ErrorLog: slog.NewLogLogger(y.log.Handler(), slog.LevelDebug)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.Dial(ctx) }
	transport := &http.Transport{DialContext: dial, DisableCompression: true}
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
	testkit.Must(y.t, err)
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

// read gives the JSON of an answer.
func read[T any](t testing.TB, r reply) (v T) {
	t.Helper()
	r.json(t, &v)
	return v
}

// do sends a request and reads the whole answer. body is a string, or a value to be
// sent as JSON, or nil.
func (y *yard) do(method, path string, body any, header ...string) reply {
	y.t.Helper()
	resp := y.open(y.t.Context(), method, path, body, header...)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	testkit.Must(y.t, err)
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
		testkit.Must(y.t, err)
		reader, kind = bytes.NewReader(data), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, reader)
	testkit.Must(y.t, err)
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
	testkit.Must(y.t, err)
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
	p := read[shownPage](y.t, y.want(http.StatusOK, "GET", "/api/v1/hubs/"+hub+"/partitions/"+partition+"/events?"+query, nil))
	return p
}

func texts(events []shown) string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.text()
	}
	return strings.Join(list, " ")
}

// fakeStorage is well.
type fakeStorage struct{}

func (fakeStorage) Storage(context.Context) (admin.Storage, error) {
	return admin.Storage{Nodes: []admin.NodeStorage{{Node: "here", Engine: "disk"}}}, nil
}

func (fakeStorage) Certificates(context.Context) (admin.Certificates, error) {
	return admin.Certificates{Nodes: []admin.NodeCertificate{{Node: "here"}}}, nil
}

func (fakeStorage) Check(context.Context, admin.StorageCheckRequest) (admin.StorageCheck, error) {
	return admin.StorageCheck{Problems: []string{}}, nil
}
