package demo

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

const (
	// watchBack is how much of the past a watcher reads when it gets a partition.
	watchBack = time.Hour
	// sampleEvery is of how many batches one says how long it took to come here. The first does.
	sampleEvery = 20
	// freshFor is how new an event is that says something about now.
	freshFor = 30 * time.Second
)

// watcher remembers the newest of every home, in memory. It has no checkpoints: whoever gets a
// partition reads the last hour again.
type watcher struct {
	settings
	out *mouth

	mu      sync.Mutex
	homes   map[string]*homeState
	batches int
}

// Watcher is the process `demo watcher`.
func Watcher(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, s, _, err := listen(ctx, in)
	if err != nil {
		return err
	}
	client, err := hub.Dial(ctx, s.Connection, hub.Config{Name: s.Name})
	if err != nil {
		return err
	}
	defer client.Close()
	w := &watcher{settings: s, out: &mouth{w: out}, homes: map[string]*homeState{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /homes/{home}", w.show)
	defer serve(l, mux)()
	w.out.say(account{Serving: "http://" + l.Addr().String()})
	p := processor.New(client.Hub(sensorsHub), processor.Config{
		Group: liveGroup, ID: s.Name, Lease: s.Lease, MaxBatch: 500, Prefetch: 1500,
		Start:   func(string) hub.Position { return hub.Since(time.Now().Add(-watchBack)) },
		OnError: w.out.trouble,
	})
	w.out.say(account{Ready: true})
	return p.Run(ctx, w.take)
}

// take remembers a batch.
func (w *watcher) take(_ context.Context, b *processor.Batch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var newest time.Time
	for _, ev := range b.Events {
		var r reading
		if json.Unmarshal(ev.Body, &r) != nil {
			continue // somebody else sends to this hub, too
		}
		s, known := sensorOf(r.Sensor)
		if !known {
			continue
		}
		h := w.homes[r.Home]
		if h == nil {
			h = &homeState{Home: r.Home}
			w.homes[r.Home] = h
		}
		h.Partition = ev.Partition
		h.take(s, r, w.Every)
		newest = r.At
	}
	w.batches++
	if age := time.Since(newest); w.batches%sampleEvery == 1 && age < freshFor {
		w.out.say(account{Seen: max(age, 1)})
	}
	return nil
}

// show answers with what is known of a home.
func (w *watcher) show(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	h := w.homes[r.PathValue("home")]
	var text []byte
	if h != nil {
		text, _ = json.Marshal(h) // of plain fields
	}
	w.mu.Unlock()
	if h == nil {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(text)
}
