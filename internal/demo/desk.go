package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/grid"
)

// desk plays those whom the yard calls: the webhooks, the scorer and a mailbox. It can be told to
// play them badly.
type desk struct {
	broken atomic.Bool // brokenHook answers 503
	away   atomic.Bool // the scorer's store is away

	mu      sync.Mutex
	notices []Notice // the newest first
}

// routes adds what the yard calls to a mux.
func (d *desk) routes(mux *http.ServeMux) error {
	for _, h := range append(slices.Clone(hooksAtFirst), hookWithCarbon) {
		receiver, err := grid.NewHandler(func(context.Context, []grid.Delivery) error { return nil }, grid.HandlerConfig{OnError: func(error) {}})
		if err != nil {
			return err
		}
		mux.HandleFunc("/hooks/"+h.name, func(w http.ResponseWriter, r *http.Request) {
			if h.name == brokenHook && d.broken.Load() {
				http.Error(w, "the alarm company's computer is down", http.StatusServiceUnavailable)
				return
			}
			receiver.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc("POST /scorer", d.score)
	mux.HandleFunc("POST /mailbox", d.receive)
	return nil
}

// maxCall is the most that is read of a call.
const maxCall = 8 << 20

// score takes a batch of odd readings. One that is no reading fails the whole batch, as careless
// programs do: the yard then finds out which it is.
func (d *desk) score(w http.ResponseWriter, r *http.Request) {
	var batch []struct {
		ID   string          `json:"id"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCall)).Decode(&batch); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if d.away.Load() {
		http.Error(w, "the store of scores is away", http.StatusServiceUnavailable)
		return
	}
	for _, ev := range batch {
		var odd reading
		if err := json.Unmarshal(ev.Data, &odd); err != nil {
			http.Error(w, fmt.Sprintf("cannot score %s: %v", ev.ID, err), http.StatusInternalServerError)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// keptNotices is how many the mailbox holds.
const keptNotices = 20

// receive puts a notice into the mailbox.
func (d *desk) receive(w http.ResponseWriter, r *http.Request) {
	var posted struct {
		Text      string `json:"text"`
		ResumeURL string `json:"resumeUrl"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCall)).Decode(&posted); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notices = append([]Notice{{At: time.Now(), Text: posted.Text, Link: posted.ResumeURL}}, d.notices...)
	d.notices = d.notices[:min(len(d.notices), keptNotices)]
	w.WriteHeader(http.StatusNoContent)
}

// mail gives what is in the mailbox, the newest first.
func (d *desk) mail() []Notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.notices)
}

// serve answers until the listener is closed.
func serve(l net.Listener, h http.Handler) (stop func()) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // a listener that fails is nothing that a demo can go on without
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}
}
