package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var (
	gridEvents = flag.Int("grid.events", 50_000, "how many events are published to the topic")
	gridKills  = flag.Int("grid.kills", 8, "how many times the yard is killed meanwhile")
)

// TestKillNineInMidDelivery publishes to a topic whose subscribers fail at random, kills the yard
// with SIGKILL again and again, and in the end finds each event that was accepted at each of its
// subscribers, or in the dead letters of the one that refused it. // G1, G5, G8
func TestKillNineInMidDelivery(t *testing.T) {
	y := &yard{t: t, binary: parts.Eventyard(t, true), data: t.TempDir(), flags: []string{
		"--grid-probation-cap", "300ms", "--grid-dead-delay", "200ms", "--sync", "always",
	}}
	g := &gridLoad{yard: y, accepted: map[string]bool{}}
	y.start()
	g.define()
	published := make(chan struct{})
	go func() {
		defer close(published)
		g.publish(*gridEvents)
	}()
	for kill := range *gridKills {
		g.waitFor((kill + 1) * *gridEvents / (*gridKills + 1))
		g.kill()
	}
	<-published
	g.settle()
	y.stop()
}

// gridLoad is a topic, its receivers, and what each is owed.
type gridLoad struct {
	yard      *yard
	key       string
	receivers []*receiver
	published atomic.Int64
	// upward is held for writing while the yard is being killed and started.
	upward sync.RWMutex

	mu       sync.Mutex
	accepted map[string]bool // guarded by mu: ids of events that were accepted
}

// receiver is a webhook that fails at random.
type receiver struct {
	name   string
	fail   func(w http.ResponseWriter, r *http.Request, roll int) bool
	server *httptest.Server

	mu  sync.Mutex
	got map[string]int // guarded by mu
}

func (v *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var events []struct {
		ID   string
		Data struct{ ValidationCode string }
	}
	if err := json.Unmarshal(body, &events); err != nil || len(events) == 0 {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if r.Header.Get("aeg-event-type") == "SubscriptionValidation" {
		fmt.Fprintf(w, `{"validationResponse":%q}`, events[0].Data.ValidationCode)
		return
	}
	if v.fail(w, r, rand.IntN(100)) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range events {
		v.got[e.ID]++
	}
}

// flaky answers badly one time in four, each time in another way.
func flaky(w http.ResponseWriter, r *http.Request, roll int) bool {
	switch {
	case roll < 10:
		w.WriteHeader(http.StatusServiceUnavailable)
	case roll < 18:
		w.WriteHeader(http.StatusInternalServerError)
	case roll < 22:
		panic(http.ErrAbortHandler) // the connection is reset
	case roll < 25:
		w.WriteHeader(http.StatusMovedPermanently)
	default:
		return false
	}
	return true
}

// refusing also says now and then that it never wants these events.
func refusing(w http.ResponseWriter, r *http.Request, roll int) bool {
	if roll >= 25 && roll < 35 {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	return flaky(w, r, roll)
}

func (g *gridLoad) define() {
	y := g.yard
	topic := struct{ Keys struct{ Key1 string } }{}
	testkit.Must(y.t, json.Unmarshal(y.post("/api/v1/topics", `{"name":"orders"}`, http.StatusCreated), &topic))
	g.key = topic.Keys.Key1
	y.post("/api/v1/hubs", `{"name":"copies","partitions":2}`, http.StatusCreated)
	g.subscribe("single", flaky, `"subjectEndsWith":"0"`)
	g.subscribe("batches", flaky, `"maxEvents":100,"preferredKib":64`)
	g.subscribe("refusing", refusing, `"maxEvents":50,"deadLetter":"folder:dead"`)
	y.post("/api/v1/subscriptions", `{"name":"to-hub","topic":"orders","hub":"copies"}`, http.StatusCreated)
}

func (g *gridLoad) subscribe(name string, fail func(http.ResponseWriter, *http.Request, int) bool, more string) {
	v := &receiver{name: name, fail: fail, got: map[string]int{}}
	v.server = httptest.NewServer(v)
	g.yard.t.Cleanup(v.server.Close)
	g.receivers = append(g.receivers, v)
	g.yard.post("/api/v1/subscriptions", fmt.Sprintf(`{"name":%q,"topic":"orders","endpoint":%q,"retrySchedule":"100ms,200ms,500ms,1s",%s}`,
		name, v.server.URL, more), http.StatusCreated)
}

// publish posts batches until n events were accepted. What was not acknowledged is published
// again under other ids: it may have been stored or not.
func (g *gridLoad) publish(n int) {
	const size = 100
	for batch := 0; g.published.Load() < int64(n) && g.yard.t.Context().Err() == nil; batch++ {
		g.upward.RLock()
		ids, body := gridBatch(batch, size)
		if g.post(body) {
			g.mu.Lock()
			for _, id := range ids {
				g.accepted[id] = true
			}
			g.mu.Unlock()
			g.published.Add(size)
		}
		g.upward.RUnlock()
	}
}

func gridBatch(batch, size int) (ids []string, body []byte) {
	var b bytes.Buffer
	for i := range size {
		id := fmt.Sprintf("%d-%d", batch, i)
		ids = append(ids, id)
		fmt.Fprintf(&b, `,{"id":%q,"subject":"/orders/%d","eventType":"order","eventTime":"2026-01-02T15:04:05Z","data":{"n":%d,"pad":%q}}`,
			id, i%10, i, strings.Repeat("x", 100))
	}
	text := b.Bytes()
	text[0] = '['
	return ids, append(text, ']')
}

func (g *gridLoad) post(body []byte) bool {
	request, err := http.NewRequest(http.MethodPost, g.yard.url+"/topics/orders/api/events?api-version=2018-01-01", bytes.NewReader(body))
	if err != nil {
		g.yard.t.Error(err)
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("aeg-sas-key", g.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		g.yard.t.Errorf("publishing answered %s", response.Status)
	}
	return response.StatusCode == http.StatusOK
}

func (g *gridLoad) waitFor(n int) {
	for g.published.Load() < int64(n) && !g.yard.t.Failed() {
		time.Sleep(5 * time.Millisecond) // the yard is a process: there is nothing else to wait for
	}
}

// kill ends the yard in the middle of whatever it does; a publication under way fails.
func (g *gridLoad) kill() {
	g.yard.process.Process.Kill()
	g.upward.Lock()
	defer g.upward.Unlock()
	g.yard.process.Wait()
	g.yard.start()
}

// settle waits until nothing is owed any more, and says what is if that takes too long.
func (g *gridLoad) settle() {
	t := g.yard.t
	deadline := time.Now().Add(4 * time.Minute)
	for {
		missing := g.missing()
		if len(missing) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events of %d never arrived, among them %v", len(missing), len(g.accepted), missing[:min(20, len(missing))])
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, v := range g.receivers {
		total := 0
		for _, n := range v.got {
			total += n
		}
		t.Logf("%s got %d events, %d of them repeats", v.name, len(v.got), total-len(v.got))
	}
	t.Logf("%d dead letters were written", len(g.deadLetters()))
}

func (g *gridLoad) missing() (all []string) {
	dead, copies := g.deadLetters(), g.copies()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.receivers {
		v.mu.Lock()
		for id := range g.accepted {
			owed := v.name != "single" || strings.HasSuffix(id, "0")
			if owed && v.got[id] == 0 && !(v.name == "refusing" && dead[id]) {
				all = append(all, v.name+":"+id)
			}
		}
		v.mu.Unlock()
	}
	for id := range g.accepted {
		if !copies[id] {
			all = append(all, "hub:"+id)
		}
	}
	return all
}

// deadLetters reads the files that the yard wrote.
func (g *gridLoad) deadLetters() map[string]bool {
	found := map[string]bool{}
	_ = filepath.WalkDir(filepath.Join(g.yard.data, "dead"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		var letters []struct {
			ID               string
			DeadLetterReason string
		}
		if err := json.Unmarshal(content, &letters); err != nil {
			g.yard.t.Errorf("%s: %v", path, err)
			return nil
		}
		for _, l := range letters {
			if l.DeadLetterReason == "" {
				g.yard.t.Errorf("%s has a letter without a reason", path)
			}
			found[l.ID] = true
		}
		return nil
	})
	return found
}

// copies reads the hub that one subscription delivers into.
func (g *gridLoad) copies() map[string]bool {
	y := g.yard
	response, err := y.do(y.t.Context(), http.MethodGet, "/api/v1/hubs/copies/events?from=earliest", "")
	testkit.Must(y.t, err)
	defer response.Body.Close()
	found := map[string]bool{}
	lines := json.NewDecoder(response.Body)
	for {
		var event struct{ Body json.RawMessage }
		if err := lines.Decode(&event); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			y.t.Fatal(err)
		}
		var inner struct{ ID string }
		if err := json.Unmarshal(event.Body, &inner); err != nil {
			y.t.Fatalf("the hub has an event that is none of the topic's: %.200s", event.Body)
		}
		found[inner.ID] = true
	}
}
