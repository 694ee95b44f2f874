package upgrade_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/test/upgrade"
)

const (
	patience = 60 * time.Second
	century  = 100 * 365 * 24 * time.Hour
)

// TestOlderFolders opens each archive and finds everything that the program which wrote it had
// acknowledged, and goes on with what was under way.
func TestOlderFolders(t *testing.T) {
	manifests, err := filepath.Glob("testdata/*.json")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range manifests {
		base := strings.TrimSuffix(path, ".json")
		t.Run(filepath.Base(base), func(t *testing.T) {
			t.Parallel()
			y := open(t, base)
			// In this order: what is asked first is changed by what follows.
			t.Run("the answers are the same", y.answers)
			if !y.OnServer {
				t.Run("the folder has its mark", y.mark)
			}
			t.Run("keys let in", y.keys)
			t.Run("blobs are there", y.blobs)
			t.Run("producers go on, exactly once", y.producers)
			t.Run("groups go on behind their checkpoints", y.groups)
			y.repair(t)
			t.Run("every event is delivered, if need be as a dead letter sent again", y.deliveries)
			t.Run("every event can be pulled", y.pull)
			if y.Folder != "" {
				t.Run("dead letters are in their folder", y.folder)
			}
			t.Run("functions go on, and poison events can be sent again", y.functions)
		})
	}
}

// mark: a folder of an older format, or from before there were marks, has the present one after its
// first start. // R6
func (y *yard) mark(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(y.data, "eventyard-data.json"))
	if err != nil || !strings.HasPrefix(string(text), `{"format":6,`) {
		t.Errorf("the mark is %q, %v", text, err)
	}
}

// yard is the present program on an older folder.
type yard struct {
	upgrade.Yard
	upgrade.Manifest
	data     string
	receiver *receiver
}

func open(t *testing.T, base string) *yard {
	y := &yard{data: unpack(t, base+".tar.gz"), receiver: newReceiver(t)}
	text, err := os.ReadFile(base + ".json")
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(text, &y.Manifest))
	config := server.Config{
		HTTP: "127.0.0.1:0", AMQP: "127.0.0.1:0", HTTPS: server.Off, AMQPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
		Grid: server.Grid{TopicRetention: century, DeadLetterKeep: century, DeadLetterDelay: -1, ProbationAfter: -1},
		Log:  slog.New(slog.DiscardHandler),
	}
	if y.OnServer {
		y.openServer(t, &config)
	} else {
		config.DataDir = y.data
		store := testkit.Value(bolt.Open(bolt.Config{Path: filepath.Join(y.data, "meta.db")}))(t)
		refreshProducers(t, store)
		testkit.Must(t, store.Close())
	}
	s, err := server.New(config)
	testkit.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended, "the yard ended")
	})
	select {
	case <-s.Started():
	case err := <-ended:
		ended <- nil
		t.Fatalf("the yard did not start: %v", err)
	case <-time.After(patience): // a node on a server waits for what it cannot read
		t.Fatal("the yard does not start")
	}
	y.HTTP, y.AMQP = s.Addresses()["http"], s.Addresses()["amqp"]
	return y
}

// openServer runs a NATS server on what one had stored, and has the program be a node on it. Entries that were stored
// again are among those that it has to read. // C7
func (y *yard) openServer(t *testing.T, config *server.Config) {
	t.Helper()
	url := natstest.StartAs(t, func(listen, _ string) string {
		return fmt.Sprintf("server_name: n0\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always, max_file: %d }\n",
			listen, filepath.Join(y.data, upgrade.Servers), int64(1)<<40)
	})
	key := filepath.Join(y.data, upgrade.SecretKey)
	testkit.Must(t, os.Chmod(key, 0o600))
	config.Engine, config.Node, config.Secrets.KeyFile = url+"?yard="+upgrade.YardName+"&replicas=1", "node0", key

	conn := natstest.Dial(t, url)
	defer conn.Close()
	stream := testkit.Value(testkit.Value(jetstream.New(conn))(t).Stream(t.Context(), entries.DefinitionsStream(upgrade.YardName)))(t)
	policy := testkit.Value(stream.GetLastMsgForSubject(t.Context(), "y."+upgrade.YardName+".e.d.policies.namespace.auditor"))(t)
	testkit.Equal(t, policy.Data[0], 2, "the form of an entry that was stored again")

	store := testkit.Value(entries.New(conn, entries.Config{Yard: upgrade.YardName, Replicas: 1, Log: slog.New(slog.DiscardHandler)}))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	loading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	testkit.Must(t, store.Load(loading))
	refreshProducers(t, store)
	testkit.Must(t, store.Close())
	stop()
	testkit.Check(t, <-ended)
}

// unpack gives a folder with an archive's content. What was written ahead is left as holes.
func unpack(t *testing.T, archive string) string {
	file, err := os.Open(archive)
	testkit.Must(t, err)
	defer file.Close()
	zip, err := gzip.NewReader(file)
	testkit.Must(t, err)
	dir := t.TempDir()
	for list := tar.NewReader(zip); ; {
		entry, err := list.Next()
		if errors.Is(err, io.EOF) {
			return dir
		} else if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(entry.Name))
		if entry.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = unpackFile(path, list, entry.Size)
		}
		testkit.Must(t, err)
	}
}

func unpackFile(path string, content io.Reader, size int64) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < size; {
		n, err := io.ReadFull(content, block[:min(int64(len(block)), size-at)])
		if err != nil {
			return err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := file.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return file.Truncate(size)
}

// refreshProducers writes into the snapshots of producers, whose form is told in
// docs/internals/format/producers.md, that all of them were active just now. A yard forgets those
// that were not for a week.
func refreshProducers(t *testing.T, store meta.Store) {
	t.Helper()
	all, err := store.List(t.Context(), "producers/")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d snapshots of producers, %v", len(all), err)
	}
	for _, e := range all {
		testkit.MustEqual(t, e.Value[0], 2, "%s has version", e.Key)
		in, out := e.Value[1:], []byte{2}
		number := func() (n uint64) {
			n, size := binary.Uvarint(in)
			in, out = in[size:], append(out, in[:size]...)
			return n
		}
		number() // upTo
		for range number() {
			in, out = in[8:], append(out, in[:8]...) // id
			number()                                 // epoch
			number()                                 // last + 1
			number()                                 // run
			for range number() {
				number() // a batch's size
			}
			_, size := binary.Uvarint(in)
			in, out = in[size:], binary.AppendUvarint(out, uint64(time.Now().Unix()))
		}
		testkit.Must(t, testkit.Err(store.CompareAndSet(t.Context(), e.Key, e.Revision, out)))
	}
}

// do makes a request that has to succeed.
func (y *yard) do(t *testing.T, method, path string, body any) []byte {
	t.Helper()
	answer, err := y.Do(t.Context(), method, path, body)
	testkit.Must(t, err)
	return answer
}

// until asks again and again until nothing is missing any more.
func until(t *testing.T, missing func() []string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(25 * time.Millisecond) {
		left := missing()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d are missing: %q", len(left), left[:min(10, len(left))])
		}
	}
}

func (y *yard) answers(t *testing.T) {
	for _, path := range slices.Sorted(maps.Keys(y.Answers)) {
		t.Run(path, func(t *testing.T) {
			var want, got any
			parse(t, y.Answers[path], &want)
			until(t, func() []string {
				answer, err := y.Recall(t.Context(), path)
				if err != nil {
					return []string{err.Error()}
				}
				parse(t, answer, &got)
				return differences("", want, got)
			})
		})
	}
}

func parse(t *testing.T, text []byte, into *any) {
	t.Helper()
	*into = nil
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	testkit.Must(t, d.Decode(into))
}

// differences says where got does not have all that want has. It may have more members.
func differences(at string, want, got any) (all []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %v instead of an object", at, got)}
		}
		for name, member := range w {
			all = append(all, differences(at+"."+name, member, g[name])...)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s: %.200v instead of %d elements", at, got, len(w))}
		}
		for i := range w {
			all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), w[i], g[i])...)
		}
	default:
		if want != got && !hidden(want, got) {
			all = append(all, fmt.Sprintf("%s: %v instead of %v", at, got, want))
		}
	}
	return all
}

// hidden tells a URL of which only the host is shown now: its path is a secret.
func hidden(want, got any) bool {
	url, _ := want.(string)
	text, _ := got.(string)
	host, short := strings.CutSuffix(text, admin.HiddenPath)
	return short && strings.HasPrefix(url, host+"/")
}

func (y *yard) keys(t *testing.T) {
	var found struct {
		Policies []struct{ Name, PrimaryKey, SecondaryKey string }
	}
	if err := json.Unmarshal(y.Answers["/api/v1/hubs/orders/policies"], &found); err != nil || len(found.Policies) == 0 {
		t.Fatalf("%d policies, %v", len(found.Policies), err)
	}
	for _, p := range found.Policies {
		for _, key := range []string{p.PrimaryKey, p.SecondaryKey} {
			if _, err := y.As(t.Context(), p.Name, key, http.MethodPost, "/api/v1/hubs/orders/events", map[string]any{
				"partition": "0", "events": []any{map[string]any{"body": "let in"}},
			}); err != nil {
				t.Errorf("%s may not send: %v", p.Name, err)
			}
		}
		if _, err := y.As(t.Context(), p.Name, "not the key", http.MethodGet, "/api/v1/hubs/orders", nil); !errors.Is(err, upgrade.ErrStatus) {
			t.Errorf("a wrong key of %s: %v", p.Name, err)
		}
	}
}

// blobs are opened by what a connection string of then has: a key of the root policy, in folders
// from before the account had keys of its own.
func (y *yard) blobs(t *testing.T) {
	var account, policy struct {
		PrimaryKey string
		RootKeys   bool
	}
	testkit.Must(t, json.Unmarshal(y.do(t, http.MethodGet, "/api/v1/blob-account", nil), &account))
	testkit.Must(t, json.Unmarshal(y.do(t, http.MethodGet, "/api/v1/policies/"+upgrade.Policy, nil), &policy))
	if !account.RootKeys {
		policy = account
	}
	credential, err := azblob.NewSharedKeyCredential("eventyard", policy.PrimaryKey)
	testkit.Must(t, err)
	client, err := azblob.NewClientWithSharedKeyCredential(y.HTTP+"/blob/eventyard", credential, nil)
	testkit.Must(t, err)
	for name, digest := range y.Blobs {
		blob, err := client.DownloadStream(t.Context(), y.Container, name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(blob.Body)
		_ = blob.Body.Close()
		if got := upgrade.Digest(body); err != nil || got != digest {
			t.Errorf("%s: %s, %v, want %s", name, got, err, digest)
		}
		if about := blob.Metadata["About"]; about == nil || *about != "of "+strings.ReplaceAll(name, "/", "-") {
			t.Errorf("%s has metadata %v", name, blob.Metadata)
		}
	}
	pages := client.NewListBlobsFlatPager(y.Container, nil)
	for left := len(y.Blobs); ; {
		page, err := pages.NextPage(t.Context())
		testkit.Must(t, err)
		left -= len(page.Segment.BlobItems)
		if !pages.More() {
			testkit.Equal(t, left, 0, "blobs are not listed")
			return
		}
	}
}

func (y *yard) dial(t *testing.T) *hub.Client {
	client, err := hub.Dial(t.Context(), y.ConnectionString(), hub.Config{Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (y *yard) producers(t *testing.T) {
	client := y.dial(t)
	for _, p := range y.Producers {
		before := y.last(t, p)
		producer := client.Hub(p.Hub).Producer(hub.ProducerConfig{Partition: p.Partition, ID: p.ID, Epoch: p.Epoch})
		for _, number := range []int32{p.Last, p.Last + 1, p.Last + 1} {
			if err := producer.Send(t.Context(), number, event.Event{Body: []byte(p.Body(number))}); err != nil {
				t.Errorf("producer %d, number %d: %v", p.ID, number, err)
			}
		}
		testkit.ErrorIs(t, producer.Send(t.Context(), p.Last+9, event.Event{}), hub.ErrOutOfOrder,
			"producer %d, far ahead", p.ID)
		if after := y.last(t, p); after != before+1 {
			t.Errorf("producer %d stored %d events, want 1", p.ID, after-before)
		}
		if p.Epoch == 0 {
			continue
		}
		lower := client.Hub(p.Hub).Producer(hub.ProducerConfig{Partition: p.Partition, ID: p.ID, Epoch: p.Epoch - 1})
		testkit.ErrorIs(t, lower.Send(t.Context(), p.Last+2, event.Event{}), hub.ErrProducerFenced,
			"a lower epoch of producer %d", p.ID)
	}
}

// last is the number of the newest event of a producer's partition.
func (y *yard) last(t *testing.T, p upgrade.Producer) int64 {
	var partition struct{ Last int64 }
	if err := json.Unmarshal(y.do(t, http.MethodGet, "/api/v1/hubs/"+p.Hub+"/partitions/"+p.Partition, nil), &partition); err != nil {
		t.Fatal(err)
	}
	return partition.Last
}

func (y *yard) groups(t *testing.T) {
	client := y.dial(t)
	for _, g := range y.Groups {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		first := map[string]int64{}
		var mu sync.Mutex
		p := processor.New(client.Hub(g.Hub), processor.Config{Group: g.Name, ID: g.Owner, Lease: 2 * time.Second, Log: slog.New(slog.DiscardHandler)})
		err := p.Run(ctx, func(ctx context.Context, b *processor.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := first[b.Partition.ID()]; !ok {
				first[b.Partition.ID()] = b.Events[0].Sequence
			}
			if len(first) == len(g.Next) {
				stop()
			}
			return nil
		})
		stop()
		if err != nil || !maps.Equal(first, g.Next) {
			t.Errorf("%s of %s goes on at %v, want %v; %v", g.Name, g.Hub, first, g.Next, err)
		}
	}
}

// receiver is an endpoint that takes everything.
type receiver struct {
	url string

	mu sync.Mutex
	// got is guarded by mu; the requests by path.
	got map[string][][]byte
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: map[string][][]byte{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[request.URL.Path] = append(r.got[request.URL.Path], body)
}

func (r *receiver) requests(path string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got[path])
}

// repair leads every subscription and function to an endpoint that works.
func (y *yard) repair(t *testing.T) {
	for name := range y.Owed {
		y.do(t, http.MethodPatch, "/api/v1/subscriptions/"+name, map[string]any{"endpoint": y.receiver.url + "/subscription/" + name, "paused": false})
	}
	for _, f := range y.Functions {
		y.do(t, http.MethodPatch, "/api/v1/functions/"+f.Name, map[string]any{"endpoint": y.receiver.url + "/function/" + f.Name})
	}
}

func (y *yard) deliveries(t *testing.T) {
	for name, owed := range y.Owed {
		t.Run(name, func(t *testing.T) {
			if len(owed) == 0 {
				t.Fatal("nothing is owed")
			}
			until(t, func() (missing []string) {
				got := map[string]json.RawMessage{}
				for _, body := range y.receiver.requests("/subscription/" + name) {
					var events []struct {
						ID   string
						Data json.RawMessage
					}
					if err := json.Unmarshal(body, &events); err != nil {
						t.Fatalf("%v: %.200s", err, body)
					}
					for _, e := range events {
						got[e.ID] = e.Data
					}
				}
				for id, data := range owed {
					if same, ok := got[id]; !ok {
						missing = append(missing, id)
					} else if !bytes.Equal(same, compact(t, data)) {
						t.Fatalf("%s has data %s, want %s", id, same, data)
					}
				}
				if len(missing) > 0 { // some may be dead letters, or become such while their time to live ends
					y.do(t, http.MethodPost, "/api/v1/subscriptions/"+name+"/redrive", map[string]any{})
				}
				return missing
			})
		})
	}
}

func compact(t *testing.T, text []byte) []byte {
	var b bytes.Buffer
	testkit.Must(t, json.Compact(&b, text))
	return b.Bytes()
}

func (y *yard) pull(t *testing.T) {
	var topic struct{ Keys struct{ Key1 string } }
	testkit.Must(t, json.Unmarshal(y.Answers["/api/v1/topics/"+y.Topic], &topic))
	client, err := grid.NewPullClient(grid.PullConfig{Endpoint: y.HTTP, Topic: y.Topic, Subscription: y.PullFrom, Key: topic.Keys.Key1})
	testkit.Must(t, err)
	left := slices.Clone(y.Pull)
	until(t, func() []string {
		received, err := client.Receive(t.Context(), grid.ReceiveConfig{MaxEvents: 100, MaxWait: time.Second})
		testkit.Must(t, err)
		for _, r := range received {
			left = slices.DeleteFunc(left, func(id string) bool { return id == r.Event.ID })
			testkit.Check(t, client.Acknowledge(t.Context(), r.Lock))
		}
		if len(left) > 0 {
			y.do(t, http.MethodPost, "/api/v1/subscriptions/"+y.PullFrom+"/redrive", map[string]any{})
		}
		return left
	})
}

func (y *yard) folder(t *testing.T) {
	until(t, func() []string {
		found := map[string]bool{}
		err := filepath.WalkDir(filepath.Join(y.data, y.Folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
				return err
			}
			var letters []struct{ ID, DeadLetterReason string }
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &letters); err != nil {
				return err
			}
			for _, l := range letters {
				found[l.ID] = l.DeadLetterReason != ""
			}
			return nil
		})
		testkit.Must(t, err)
		return slices.DeleteFunc(slices.Clone(y.InFolder), func(id string) bool { return found[id] })
	})
}

func (y *yard) functions(t *testing.T) {
	for _, f := range y.Functions {
		t.Run(f.Name, func(t *testing.T) {
			switch f.Circuit {
			case "open":
				y.do(t, http.MethodPost, "/api/v1/circuits/"+f.Name+"/close", map[string]any{})
			case "held":
				y.do(t, http.MethodPost, "/api/v1/functions/"+f.Name+"/resume", map[string]any{})
			}
			until(t, func() []string {
				all := bytes.Join(y.receiver.requests("/function/"+f.Name), nil)
				missing := slices.DeleteFunc(slices.Clone(f.Owed), func(name string) bool { return bytes.Contains(all, []byte(`"`+name+`"`)) })
				if len(missing) > 0 {
					y.do(t, http.MethodPost, "/api/v1/hubs/"+f.Poison+"/poison/redrive", map[string]any{"function": f.Name})
				}
				return missing
			})
		})
	}
}
