package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"golang.org/x/sync/errgroup"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/test/upgrade"
)

// endpoint is where webhooks and functions are called. Nobody else is likely to listen there when
// an archive is opened again, in which case its retries would be taken for delivered.
const endpoint = "127.83.7.1:9117"

// world is everything around the yard: who sends to it, and the endpoints that it calls, at /STATUS
// for the status that they answer.
type world struct {
	ctx    context.Context
	m      *upgrade.Manifest
	server *httptest.Server
	// leave ends what is connected to the yard when the yard has ended.
	leave func()

	mu    sync.Mutex
	calls map[string]int // guarded by mu; by path
}

func newWorld(ctx context.Context, m *upgrade.Manifest) (*world, error) {
	w := &world{ctx: ctx, m: m, calls: map[string]int{}, leave: func() {}}
	listener, err := net.Listen("tcp", endpoint)
	if err != nil {
		return nil, err
	}
	w.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: w}}
	w.server.Start()
	m.Topic, m.Container, m.Folder, m.PullFrom = "shop", "things", "dead", "pulled"
	if m.OnServer {
		m.Folder = "" // nodes share no data folder
	}
	m.Owed = map[string]map[string]json.RawMessage{}
	return w, nil
}

func (w *world) close() {
	w.leave()
	w.server.Close()
}

// ServeHTTP answers with the status that the path begins with; /poison with 500 where the request
// has that word.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	status, err := strconv.Atoi(first)
	if err != nil {
		status = http.StatusOK
		if bytes.Contains(body, []byte("poison")) {
			status = http.StatusInternalServerError
		}
	}
	rw.WriteHeader(status)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[r.URL.Path]++
}

func (w *world) called(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[path]
}

// first makes all that there is, and the history of dead letters and poison events.
func (w *world) first(y upgrade.Yard) error {
	for _, step := range []func(upgrade.Yard) error{w.hubs, w.policies, w.producers, w.blobs, w.topics, w.functions} {
		if err := step(y); err != nil {
			return err
		}
	}
	return nil
}

// second leaves things under way: retries wait and are parked, dead letters gather, a group owns
// its partitions.
func (w *world) second(y upgrade.Yard) error {
	for _, step := range []func(upgrade.Yard) error{w.moreProducers, w.group, w.retries, w.moreFunctions, w.load} {
		if err := step(y); err != nil {
			return err
		}
	}
	return nil
}

type object = map[string]any

// make creates things by the HTTP API: pairs of path and body.
func (w *world) make(y upgrade.Yard, pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if _, err := post(w.ctx, y, "/api/v1/"+pairs[i].(string), pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// until waits for a condition; the yard is another process, so there is nothing else to wait for.
func (w *world) until(what string, met func() (bool, error)) error {
	for {
		ok, err := met()
		switch {
		case err != nil:
			return fmt.Errorf("wait for %s: %w", what, err)
		case ok:
			return nil
		case w.ctx.Err() != nil:
			return fmt.Errorf("wait for %s: %w", what, w.ctx.Err())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) dial(y upgrade.Yard) (*hub.Client, error) {
	return hub.Dial(w.ctx, y.ConnectionString(), hub.Config{Log: slog.New(slog.DiscardHandler)})
}

// hubs have events of every kind, in several segments and through the shared journal. One has lost
// its oldest to retention.
func (w *world) hubs(y upgrade.Yard) error {
	forever := object{"age": "0s"}
	if err := w.make(y,
		"hubs", object{"name": "orders", "partitions": 8, "retention": forever},
		"hubs", object{"name": "trimmed", "partitions": 1, "retention": object{"age": "0s", "bytes": 128 << 10}},
		"hubs", object{"name": "copies", "partitions": 2, "retention": forever},
		"hubs", object{"name": "work", "partitions": 1, "retention": forever},
		"hubs", object{"name": "gone", "partitions": 1},
		"hubs/gone/events", object{"events": []object{{"body": "forgotten"}}},
		"hubs/orders/groups", object{"name": "billing"},
		"hubs/orders/groups", object{"name": "audit"},
		"hubs/orders/groups", object{"name": "closed"},
		"hubs/orders/events", object{"key": "customer-42", "events": []object{
			{"body": "text"}, {"body": object{"total": 12.5}, "messageId": "m-1", "properties": object{"source": "shop"}},
			{"bodyBase64": "AAEC", "contentType": "application/octet-stream"},
		}},
	); err != nil {
		return err
	}
	for _, path := range []string{"/api/v1/hubs/gone", "/api/v1/hubs/orders/groups/closed"} {
		if _, err := y.Do(w.ctx, http.MethodDelete, path, nil); err != nil {
			return err
		}
	}
	for n := range 40 {
		if err := w.make(y, "hubs/trimmed/events", object{"events": []object{{"body": fmt.Sprintf("%d%s", n, strings.Repeat("y", 8<<10))}}}); err != nil {
			return err
		}
	}
	if err := w.load(y); err != nil {
		return err
	}
	return w.until("retention", func() (bool, error) {
		var partition struct{ First int }
		answer, err := y.Do(w.ctx, http.MethodGet, "/api/v1/hubs/trimmed/partitions/0", nil)
		if err != nil {
			return false, err
		}
		return partition.First > 0, json.Unmarshal(answer, &partition)
	})
}

// load sends to all partitions at once: small groups of several go through the journal.
func (w *world) load(y upgrade.Yard) error {
	client, err := w.dial(y)
	if err != nil {
		return err
	}
	defer client.Close()
	var all errgroup.Group
	for p := range 8 {
		all.Go(func() error {
			for n := range 8 {
				if err := client.Hub("orders").SendTo(w.ctx, strconv.Itoa(p), event.Event{
					Body: fmt.Appendf(nil, "%d/%d %s", p, n, strings.Repeat("x", n%5*200)), ContentType: "text/plain", MessageID: uint64(n),
					CorrelationID: [16]byte{byte(p)}, Subject: "order", System: map[string]any{"reply-to": "desk"},
					Properties: map[string]any{"n": int32(n), "at": time.UnixMilli(1700000000000).UTC(), "ok": n%2 == 0},
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

func (w *world) policies(y upgrade.Yard) error {
	return w.make(y,
		"policies", object{"name": "auditor", "rights": []string{"listen"}},
		"hubs/orders/policies", object{"name": "till", "rights": []string{"send"}, "primaryKey": "0123456789abcdef-primary", "secondaryKey": "0123456789abcdef-second"},
		"policies/auditor/regenerate", object{"key": "secondary"},
	)
}

// producers stop in the middle: one in its first epoch, one in a later one.
func (w *world) producers(y upgrade.Yard) error {
	w.m.Producers = []upgrade.Producer{
		{Hub: "orders", Partition: "2", ID: 4711, Epoch: 0, Last: 4},
		{Hub: "orders", Partition: "3", ID: 4712, Epoch: 3, Last: 6},
	}
	return w.produce(y, func(p upgrade.Producer) (from, to int32) { return 0, 2 })
}

// moreProducers send once more what was stored, as after a crash, and go on.
func (w *world) moreProducers(y upgrade.Yard) error {
	return w.produce(y, func(p upgrade.Producer) (from, to int32) { return 2, p.Last })
}

func (w *world) produce(y upgrade.Yard, span func(upgrade.Producer) (from, to int32)) error {
	client, err := w.dial(y)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, p := range w.m.Producers {
		producer := client.Hub(p.Hub).Producer(hub.ProducerConfig{Partition: p.Partition, ID: p.ID, Epoch: p.Epoch})
		from, to := span(p)
		for number := from; number <= to; number++ {
			if err := producer.Send(w.ctx, number, event.Event{Body: []byte(p.Body(number))}); err != nil {
				return err
			}
		}
	}
	return nil
}

// blobs lie in the meta store and, beyond 4 KiB, in files; one is made of blocks.
func (w *world) blobs(y upgrade.Yard) error {
	client, err := BlobClient(w.ctx, y)
	if err != nil {
		return err
	}
	if _, err := client.CreateContainer(w.ctx, w.m.Container, nil); err != nil {
		return err
	}
	bodies := map[string][]byte{
		"small": []byte("a few bytes"), "empty": {}, "folder/large": bytes.Repeat([]byte("0123456789abcdef"), 1024),
		"blocks": bytes.Repeat([]byte("block"), 4000),
	}
	w.m.Blobs = map[string]string{}
	for name, body := range bodies {
		w.m.Blobs[name] = upgrade.Digest(body)
		value := "of " + strings.ReplaceAll(name, "/", "-")
		meta := map[string]*string{"about": &value}
		if name != "blocks" {
			_, err = client.UploadBuffer(w.ctx, w.m.Container, name, body, &azblob.UploadBufferOptions{Metadata: meta})
		} else {
			_, err = client.UploadStream(w.ctx, w.m.Container, name, bytes.NewReader(body), &azblob.UploadStreamOptions{BlockSize: 1 << 20, Metadata: meta})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// subscriptions are by name what is particular to them. Where they lead says how they fail.
func (w *world) subscriptions() map[string]object {
	filed := "yard"
	if w.m.Folder != "" {
		filed = "folder:" + w.m.Folder
	}
	return map[string]object{
		// Its first attempt fails, the second would be in five seconds.
		"waiting": {"endpoint": "/503/waiting", "retrySchedule": "5s", "retryFloors": object{"503": "1s"}, "ttl": "24h"},
		// So many failures that it is on probation; what falls due meanwhile is parked.
		"parked": {"endpoint": "/500/parked", "retrySchedule": "1s", "ttl": "24h", "concurrency": 4},
		// Its time is up before anybody unpacks the archive.
		"expiring": {"endpoint": "/500/expiring", "retrySchedule": "5s", "ttl": "1m"},
		"paused":   {"endpoint": "/500/paused", "retrySchedule": "1s", "maxEvents": 10, "ttl": "24h"},
		"refused":  {"endpoint": "/404/refused", "noRetry": []int{404}},
		"filed":    {"endpoint": "/400/filed", "noRetry": []int{400}, "deadLetter": filed},
	}
}

func (w *world) topics(y upgrade.Yard) error {
	if err := w.make(y,
		"topics", object{"name": w.m.Topic},
		"topics", object{"name": "clouds", "schema": "cloudevents"},
		"subscriptions", object{"name": "to-hub", "topic": w.m.Topic, "hub": "copies"},
		"subscriptions", object{"name": w.m.PullFrom, "topic": w.m.Topic, "pull": object{"lock": "1m", "maxDeliveries": 10}, "deadLetter": "yard"},
		"subscriptions", object{"name": "detailed", "topic": "clouds", "endpoint": w.server.URL + "/200/detailed", "skipValidation": true,
			"types": []string{"a", "b"}, "subjectBeginsWith": "/x", "subjectEndsWith": "z", "filters": []string{"data.total NumberGreaterThan 10"},
			"headers": []object{{"name": "X-Env", "value": "prod"}, {"name": "X-Region", "value": "{data.region}"}},
			"sign":    "hmac", "orderBy": "data.customer", "concurrency": 3, "rate": 7.5, "labels": []string{"first", "second"}, "timeout": "9s",
			"binary": true, "attempts": 9, "expires": "2999-01-02T03:04:05Z"},
	); err != nil {
		return err
	}
	for name, more := range w.subscriptions() {
		s := object{"name": name, "topic": w.m.Topic, "skipValidation": true, "deadLetter": "yard"}
		for k, v := range more {
			s[k] = v
		}
		s["endpoint"] = w.server.URL + more["endpoint"].(string)
		if err := w.make(y, "subscriptions", s); err != nil {
			return err
		}
		w.m.Owed[name] = map[string]json.RawMessage{}
	}
	if err := w.publish(y, "history", 3); err != nil {
		return err
	}
	return w.until("dead letters", func() (bool, error) {
		refused, err := w.count(y, "refused")
		if err != nil || refused.DeadLetters.Kept < 3 {
			return false, err
		}
		filed, err := w.count(y, "filed")
		return filed.DeadLetters.Kept >= 3 && filed.DeadLetters.Unwritten == 0, err
	})
}

// publish sends events to the topic: every subscription owes them from now on.
func (w *world) publish(y upgrade.Yard, what string, n int) error {
	var topic struct{ Keys struct{ Key1 string } }
	answer, err := y.Do(w.ctx, http.MethodGet, "/api/v1/topics/"+w.m.Topic, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &topic); err != nil {
		return err
	}
	var events []object
	for i := range n {
		id := fmt.Sprintf("%s-%d", what, i)
		data := json.RawMessage(fmt.Sprintf(`{"event":%q,"n":%d}`, id, i))
		events = append(events, object{"id": id, "subject": "/" + what, "eventType": "happened", "eventTime": "2026-01-02T15:04:05Z", "dataVersion": "1", "data": data})
		for s := range w.m.Owed {
			w.m.Owed[s][id] = data
		}
		w.m.Pull = append(w.m.Pull, id)
		if w.m.Folder != "" {
			w.m.InFolder = append(w.m.InFolder, id)
		}
	}
	_, err = post(w.ctx, y, "/topics/"+w.m.Topic+"/api/events?api-version=2018-01-01", events)
	return err
}

// tally is how a subscription does.
type tally struct {
	Stats struct {
		InFlight, Queued, Behind, Parked int
		Waiting                          []struct{ Events int }
		Endpoint                         struct{ State string }
	}
	DeadLetters struct{ Kept, Unwritten int }
}

func (t tally) waiting() (n int) {
	for _, w := range t.Stats.Waiting {
		n += w.Events
	}
	return n
}

func (w *world) count(y upgrade.Yard, subscription string) (t tally, err error) {
	answer, err := y.Do(w.ctx, http.MethodGet, "/api/v1/subscriptions/"+subscription, nil)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(answer, &t)
}

// retries leaves each kind of retry behind.
func (w *world) retries(y upgrade.Yard) error {
	if _, err := y.Do(w.ctx, http.MethodPatch, "/api/v1/subscriptions/paused", object{"paused": true}); err != nil {
		return err
	}
	if err := w.publish(y, "late", 12); err != nil {
		return err
	}
	if err := w.until("retries", func() (bool, error) {
		waiting, err := w.count(y, "waiting")
		if err != nil {
			return false, err
		}
		parked, err := w.count(y, "parked")
		if err != nil {
			return false, err
		}
		filed, err := w.count(y, "filed")
		if err != nil {
			return false, err
		}
		return waiting.waiting() >= 12 && parked.Stats.Endpoint.State == "probation" && parked.Stats.Parked > 0 &&
			(w.m.Folder == "" || filed.DeadLetters.Unwritten >= 12), nil
	}); err != nil {
		return err
	}
	return nil
}

// group owns all partitions and has checkpoints in some of them when the yard ends.
func (w *world) group(y upgrade.Yard) error {
	client, err := w.dial(y)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	p := processor.New(client.Hub("orders"), processor.Config{
		Group: "billing", ID: "worker-1",
		Log: slog.New(slog.DiscardHandler), OnError: func(error) {}, MaxBatch: 10,
	})
	g := upgrade.Group{Hub: "orders", Name: "billing", Owner: "worker-1", Next: map[string]int64{}}
	var mu sync.Mutex
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := g.Next[b.Partition.ID()]; ok || len(b.Events) == 0 {
				return nil
			}
			if err := b.Checkpoint(ctx); err != nil {
				return err
			}
			g.Next[b.Partition.ID()] = b.Events[len(b.Events)-1].Sequence + 1
			return nil
		})
	}()
	w.leave = func() {
		cancel()
		<-ended
		_ = client.Close()
	}
	err = w.until("checkpoints", func() (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return len(g.Next) == 8, nil
	})
	mu.Lock()
	defer mu.Unlock()
	w.m.Groups = []upgrade.Group{g}
	return err
}

// functions are made, and fail in their several ways.
func (w *world) functions(y upgrade.Yard) error {
	w.m.Functions = []upgrade.Function{
		{Name: "stuck", Poison: "stuck-poison", Circuit: "open", Owed: []string{"early", "poison-1", "late", "poison-2", "after"}},
		{Name: "held", Poison: "held-poison", Circuit: "held", Owed: []string{"after"}},
		{Name: "picky", Poison: "picky-poison", Circuit: "closed", Owed: []string{"poison-1", "poison-2"}},
		{Name: "stubborn", Poison: "stubborn-poison", Circuit: "closed", Owed: []string{"early", "poison-1", "late", "poison-2", "after"}},
	}
	if err := w.make(y,
		"functions", object{"name": "stuck", "hub": "work", "endpoint": w.server.URL + "/500/stuck", "batch": 1, "retries": 0, "breaker": "1/1h"},
		"functions", object{"name": "held", "hub": "work", "endpoint": w.server.URL + "/200/held"},
		"functions", object{"name": "picky", "hub": "work", "endpoint": w.server.URL + "/poison/picky", "retries": 1, "retryDelay": "10ms", "notify": []string{w.server.URL + "/200/notices"}},
	); err != nil {
		return err
	}
	if err := w.work(y, "early", "poison-1", "late", "poison-2"); err != nil {
		return err
	}
	if err := w.until("poison and an open circuit", func() (bool, error) {
		stuck, err := w.status(y, "stuck")
		if err != nil {
			return false, err
		}
		held, err := w.status(y, "held")
		if err != nil {
			return false, err
		}
		picky, err := w.status(y, "picky")
		return stuck.Circuit.State == "open" && w.called("/200/held") > 0 && held.Lag == 0 && picky.Poisoned == 2 && picky.Lag == 0, err
	}); err != nil {
		return err
	}
	return w.make(y, "functions/held/pause", object{"reason": "not now"})
}

// work sends bodies to the hub of the functions.
func (w *world) work(y upgrade.Yard, names ...string) error {
	var events []object
	for _, name := range names {
		events = append(events, object{"body": object{"name": name}, "contentType": "application/json"})
	}
	return w.make(y, "hubs/work/events", object{"partition": "0", "events": events})
}

type status struct {
	Circuit  struct{ State string }
	Poisoned int
	Lag      int
}

func (w *world) status(y upgrade.Yard, function string) (s status, err error) {
	answer, err := y.Do(w.ctx, http.MethodGet, "/api/v1/functions/"+function, nil)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(answer, &s)
}

// moreFunctions leaves a function in the midst of its retries.
func (w *world) moreFunctions(y upgrade.Yard) error {
	if err := w.make(y, "functions", object{"name": "stubborn", "hub": "work", "endpoint": w.server.URL + "/500/stubborn",
		"batch": 2, "retries": 100000, "retryDelay": "100ms", "breaker": "off"}); err != nil {
		return err
	}
	if err := w.work(y, "after"); err != nil {
		return err
	}
	return w.until("calls", func() (bool, error) {
		picky, err := w.status(y, "picky")
		return w.called("/500/stubborn") >= 5 && picky.Lag == 0, err
	})
}

// BlobClient gives a client of the yard's blobs.
func BlobClient(ctx context.Context, y upgrade.Yard) (*azblob.Client, error) {
	answer, err := y.Do(ctx, http.MethodGet, "/api/v1/blob-account", nil)
	if err != nil {
		return nil, err
	}
	var account struct{ PrimaryKey string }
	if err := json.Unmarshal(answer, &account); err != nil || account.PrimaryKey == "" {
		return nil, errors.Join(err, errors.New("no key"))
	}
	credential, err := azblob.NewSharedKeyCredential("eventyard", account.PrimaryKey)
	if err != nil {
		return nil, err
	}
	return azblob.NewClientWithSharedKeyCredential(y.HTTP+"/blob/eventyard", credential, nil)
}
