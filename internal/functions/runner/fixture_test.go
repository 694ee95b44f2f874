package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is the parts of a yard that functions see, without sockets: it works inside a synctest
// bubble and outside.
type yard struct {
	t       *testing.T
	meta    *metatest.Faulty
	broker  *broker.Broker
	groups  *groups.Registry
	topics  *topics.Registry
	box     *box.Box
	program *program
	log     *slog.Logger
}

func newYard(t *testing.T) *yard {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	hubs := hubstest.Open(t, storagetest.Config{SegmentBytes: 1 << 20, Sync: disk.OS, Log: log})
	y := &yard{t: t, meta: hubs.Meta, broker: hubs.Broker, program: newProgram(), log: log}
	var err error
	y.groups, err = groups.New(groups.Config{Meta: y.meta, Broker: y.broker, Log: y.log})
	testkit.Must(t, err)
	y.topics, err = topics.Open(t.Context(), topics.Config{Engine: hubs.Engine, Meta: y.meta, Broker: y.broker, Log: y.log})
	testkit.Must(t, err)
	y.box = box.New(box.Config{Broker: y.broker, Meta: y.meta, Log: y.log})
	y.hub("orders", 2)
	return y
}

func (y *yard) hub(name string, partitions int) {
	y.t.Helper()
	_, err := y.broker.EnsureHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions}, nil)
	testkit.Must(y.t, err)
}

// open opens a registry on what is there, as another node, or one after a start.
func (y *yard) open(change ...func(*Config)) *Registry {
	y.t.Helper()
	cfg := Config{
		Meta: y.meta, Broker: y.broker, Groups: y.groups, HTTP: &http.Client{Transport: y.program}, Topics: y.topics, Box: y.box,
		CheckEndpoint: func(url string) error {
			if strings.Contains(url, "forbidden") {
				return errors.New("it may not be called")
			}
			return nil
		},
		CheckTarget: func(target string) error {
			if !strings.HasPrefix(target, "mailto:") {
				return errors.New("use mailto:")
			}
			return nil
		},
		CheckTopic: func(topic string) error { _, err := y.topics.Topic(topic); return err },
		Targets:    []string{"mailto:all@example.test"}, Instance: NewInstance("node one"), Log: y.log,
	}
	for _, c := range change {
		c(&cfg)
	}
	k, err := Open(y.t.Context(), cfg)
	testkit.Must(y.t, err)
	return k
}

// run runs a registry until the test says stop, or ends.
func (y *yard) run(k *Registry) (stop func()) {
	y.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			y.t.Errorf("run ended with %v", err)
		}
	})
	y.t.Cleanup(stop)
	return stop
}

// resize is a definition with little in it.
func resize(change ...func(*Definition)) Definition {
	d := Definition{Name: "resize", Hub: "orders", Group: "resizer", Endpoint: "http://program.test/resize"}
	for _, c := range change {
		c(&d)
	}
	return d
}

func (y *yard) create(k *Registry, d Definition) Function {
	y.t.Helper()
	f, err := k.Create(y.t.Context(), d)
	testkit.Must(y.t, err)
	return f
}

func (y *yard) send(hub, partition string, bodies ...string) {
	y.t.Helper()
	for _, body := range bodies {
		encoded, err := message.Append(nil, event.Event{Body: []byte(body), ContentType: "application/json"})
		testkit.Must(y.t, err)
		_, err = y.broker.Publish(y.t.Context(), hub, broker.Target{Partition: partition}, []eventlog.Event{{Message: encoded}})
		testkit.Must(y.t, err)
	}
}

// trip opens the circuit of a function as a host does.
func (y *yard) trip(g processor.Group, function string) breaker.Record {
	y.t.Helper()
	r, err := circuit.Change(y.t.Context(), y.groups, g, function, func(r breaker.Record) (breaker.Record, bool) {
		return breaker.Record{
			State: breaker.Open, Term: r.Term + 1, Incident: fmt.Sprintf("incident-%s-%d", function, r.Term), Since: time.Now().UTC(), By: "host", Failures: 101,
		}, true
	})
	testkit.Must(y.t, err)
	return r
}

func (y *yard) entries(g processor.Group) (keys []string) {
	y.t.Helper()
	all, err := y.groups.Entries(y.t.Context(), g, "")
	testkit.Must(y.t, err)
	for _, f := range all {
		if !strings.HasPrefix(f.Key, "presence/") {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// loseWatches ends all watches of definitions and groups.
func (y *yard) loseWatches() {
	y.meta.LoseWatches(keyPrefix)
	y.meta.LoseWatches(broker.RecordsPrefix)
}

// program is what functions call, over HTTP without a network.
type program struct {
	mu sync.Mutex
	// handled are the bodies of events by path of the URL, in order; guarded by mu.
	handled map[string][]string
	headers []http.Header // guarded by mu
	// answer gives the status for a call; guarded by mu.
	answer func(path string, bodies []string) int
	// hold, where it is set, is waited for by each call; guarded by mu.
	hold  chan struct{}
	under atomic.Int64
}

func newProgram() *program {
	return &program{handled: map[string][]string{}, answer: func(string, []string) int { return http.StatusNoContent }}
}

func (p *program) RoundTrip(r *http.Request) (*http.Response, error) {
	p.under.Add(1)
	defer p.under.Add(-1)
	var events []struct {
		Data any `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
		return nil, err
	}
	bodies := make([]string, len(events))
	for i, e := range events {
		bodies[i] = fmt.Sprint(e.Data)
	}
	p.mu.Lock()
	hold, answer := p.hold, p.answer
	p.headers = append(p.headers, r.Header.Clone())
	p.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	status := answer(r.URL.Path, bodies)
	if status < 300 {
		p.mu.Lock()
		p.handled[r.URL.Path] = append(p.handled[r.URL.Path], bodies...)
		p.mu.Unlock()
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func (p *program) set(change func(*program)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *program) got(path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.handled[path], " ")
}

func topicConfig(name string) topics.TopicConfig {
	return topics.TopicConfig{Topic: topics.Topic{Name: name}}
}
