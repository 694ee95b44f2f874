package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// sink is a webhook that answers at once and counts events.
type sink struct {
	server   *http.Server
	listener net.Listener
	total    int64
	consumed *consumed

	mu      sync.Mutex
	arrived map[int]time.Time // guarded by mu: by id; the first time counts
	noteIDs bool
}

func newSink(total int64) *sink { return newSinkAt("127.0.0.1:0", total) }

func newSinkAt(address string, total int64) *sink {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err) // this machine has no loopback, or somebody took the port meanwhile
	}
	s := &sink{listener: listener, total: total, consumed: newConsumed(total), arrived: map[int]time.Time{}, noteIDs: total <= 20_000}
	s.server = &http.Server{Handler: s}
	go s.server.Serve(listener)
	return s
}

func (s *sink) url() string { return "http://" + s.listener.Addr().String() + "/" }

func (s *sink) close() { _ = s.server.Close() }

var eventMark = []byte(`"eventType":`)

// ServeHTTP counts events by a word that each has once: parsing would cost more than delivering.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n := bytes.Count(body, eventMark)
	if s.noteIDs && n == 1 {
		s.note(body)
	}
	s.consumed.add(n)
}

func (s *sink) note(body []byte) {
	now := time.Now()
	_, rest, _ := bytes.Cut(body, []byte(`"id":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	id, err := strconv.Atoi(string(text))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.arrived[id]; !again {
		s.arrived[id] = now
	}
}

// since gives how long each event took.
func (s *sink) since(began []time.Time) (took []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range s.arrived {
		if id < len(began) {
			took = append(took, at.Sub(began[id]))
		}
	}
	return took
}

func (s *sink) await(ctx context.Context) error {
	select {
	case <-s.consumed.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Minute):
		return fmt.Errorf("only %d of %d events arrived within five minutes", s.consumed.count.Load(), s.total)
	}
}

func (s *sink) tally(bytes int64) tally {
	t := s.consumed.tally()
	t.bytes = t.events * bytes
	return t
}

// posterConfig is what a bare HTTP client is to do, in a process of its own.
type posterConfig struct {
	URL                   string
	Requests, Concurrency int
	Body                  string
	Bare                  bool // with no header but the content type
}

// posterCommand is the variable that makes this program a poster.
const posterCommand = "EVENTYARD_BENCH_POSTER"

func runPoster(ctx context.Context, cfg posterConfig) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), posterCommand+"=1")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bare client: %w: %s", err, out)
	}
	return nil
}

// deliveryHeaders are those that a receiver of Event Grid's gets: they cost it more than the body
// does.
var deliveryHeaders = http.Header{
	"Content-Type":          {"application/json; charset=utf-8"},
	"Accept":                {"*/*"},
	"Aeg-Event-Type":        {"Notification"},
	"Aeg-Subscription-Name": {"FAST"},
	"Aeg-Delivery-Count":    {"0"},
	"Aeg-Metadata-Version":  {"1"},
	"Aeg-Data-Version":      {"1"},
	"Aeg-Output-Event-Id":   {"7ad90178-d331-81ec-a5d1-d8c4ca7d7392"},
}

// bePoster is that process: as many requests as asked for, from as many goroutines.
func bePoster(ctx context.Context) error {
	var cfg posterConfig
	if err := json.NewDecoder(os.Stdin).Decode(&cfg); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: cfg.Concurrency}}
	headers := deliveryHeaders
	if cfg.Bare {
		headers = http.Header{"Content-Type": deliveryHeaders["Content-Type"]}
	}
	var sent atomic.Int64
	return each(cfg.Concurrency, func(int) error {
		for sent.Add(1) <= int64(cfg.Requests) {
			request, err := http.NewRequestWithContext(ctx, "POST", cfg.URL, bytes.NewReader([]byte(cfg.Body)))
			if err != nil {
				return err
			}
			request.Header = headers.Clone()
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		return nil
	})
}
