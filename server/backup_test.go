package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// backUp takes a backup as the command does.
func (r *running) backUp(dir string) (backup.Summary, error) {
	r.t.Helper()
	client, err := admin.New(admin.Config{Server: r.url})
	testkit.Must(r.t, err)
	defer client.Close()
	stream, err := client.Backup(r.t.Context())
	if err != nil {
		return backup.Summary{}, err
	}
	defer stream.Close()
	return backup.Receive(r.t.Context(), dir, "test", stream, nil)
}

// restore restores a backup of a yard for one with the same configuration, in another folder.
func restore(t *testing.T, cfg Config, dir string) Config {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(cfg.DataDir, storage.SecretKeyFile))
	testkit.Must(t, err)
	cfg.DataDir = filepath.Join(t.TempDir(), "restored")
	testkit.Must(t, os.MkdirAll(cfg.DataDir, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(cfg.DataDir, storage.SecretKeyFile), key, 0o600))
	testkit.Must(t, Restore(t.Context(), Restoration{Backup: dir, DataDir: cfg.DataDir}))
	return cfg
}

// C7: a restored yard goes on where the other was: what waits is delivered, what was given up can be
// redriven, what was handled is not handled again, and all keys are good.
func TestARestoredYardGoesOn(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	cfg.HTTPS = "127.0.0.1:0" // for certificates
	waiting, refusing, handling := newReceiver(t), newReceiver(t), newReceiver(t)
	waiting.status.Store(http.StatusServiceUnavailable)
	refusing.status.Store(http.StatusBadRequest)
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
	r.want(201, "POST", "/api/v1/topics", `{"name":"shop"}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"waiting","topic":"shop","endpoint":"`+waiting.URL+`","retrySchedule":"2s","retryFloors":{"503":"2s"}}`)
	r.want(201, "POST", "/api/v1/subscriptions", `{"name":"refusing","topic":"shop","endpoint":"`+refusing.URL+`","deadLetter":"yard"}`)
	r.want(201, "POST", "/api/v1/functions", `{"name":"billing","hub":"orders","group":"billing","endpoint":"`+handling.URL+`"}`)
	r.want(201, "POST", "/api/v1/policies", `{"name":"till","rights":["Send"]}`)
	till := r.want(200, "GET", "/api/v1/policies/till", "")
	r.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":1}},{"body":{"n":2}}]`)
	handling.await(handling.got, `"n":`)
	r.publish("shop", "event-1")
	waiting.await(waiting.got, "event-1")
	refusing.await(refusing.got, "event-1")
	testkit.Eventually(t, "what was refused to be a dead letter, and the function's checkpoint to be made", func() bool {
		return strings.Contains(r.want(200, "GET", "/api/v1/subscriptions/refusing/dead", ""), "event-1") &&
			strings.Contains(r.want(200, "GET", "/api/v1/functions/billing", ""), `"lag":0`)
	})
	blobs := map[string][]byte{"small": []byte("small"), "large": bytes.Repeat([]byte("large"), 100_000)}
	testkit.Must(t, testkit.Err(r.blobClient().CreateContainer(t.Context(), "box", nil)))
	for name, body := range blobs {
		testkit.Must(t, testkit.Err(r.blobClient().UploadBuffer(t.Context(), "box", name, body, nil)))
	}
	dir := filepath.Join(t.TempDir(), "backup")
	summary, err := r.backUp(dir)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprint(summary.Bodies, summary.Files, summary.Lost), "1 5 []", "summary")
	testkit.Equal(t, len(summary.SecretKeys), 1, "secret keys")
	content, err := os.ReadFile(filepath.Join(dir, backup.ArchiveName))
	testkit.Must(t, err)
	var policy admin.Policy
	testkit.Must(t, json.Unmarshal([]byte(till), &policy))
	testkit.That(t, policy.PrimaryKey != "" && !bytes.Contains(content, []byte(policy.PrimaryKey)) && !bytes.Contains(content, []byte("PRIVATE KEY")), "a key is in clear")
	r.shutdown()

	for _, hook := range []*receiver{waiting, refusing, handling} {
		for len(hook.got) > 0 {
			<-hook.got
		}
		hook.status.Store(0)
	}
	restored := restore(t, cfg, dir)
	r = start(t, restored)
	waiting.await(waiting.got, "event-1")
	testkit.Equal(t, r.want(200, "GET", "/api/v1/policies/till", ""), till, "the policy")
	r.want(200, "POST", "/api/v1/subscriptions/refusing/redrive", `{}`)
	refusing.await(refusing.got, "event-1")
	r.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":3}}]`)
	handling.await(handling.got, `"n":3`)
	r.publish("shop", "event-2")
	for !strings.Contains(waiting.await(waiting.got, "event-"), "event-2") { // the first may be repeated
	}
	for name, body := range blobs {
		got := make([]byte, len(body))
		_, err := r.blobClient().DownloadBuffer(t.Context(), "box", name, got, nil)
		testkit.Must(t, err)
		testkit.That(t, bytes.Equal(got, body), "blob %s has another body", name)
	}
	for _, file := range []string{"ca.pem", "cert.pem"} {
		was, err := os.ReadFile(filepath.Join(cfg.DataDir, CertificateDir, file))
		testkit.Must(t, err)
		is, err := os.ReadFile(filepath.Join(restored.DataDir, CertificateDir, file))
		testkit.Must(t, err)
		testkit.Equal(t, string(is), string(was), file)
	}
}

// publisher sends to a hub over HTTP until it is stopped, and knows what was acknowledged.
type publisher struct {
	r     *running
	count atomic.Int64

	mu    sync.Mutex
	acked map[string]string // guarded by mu: bodies by partition and number
}

func (p *publisher) run(ctx context.Context, hub string) {
	for ctx.Err() == nil {
		body := fmt.Sprintf("event %d %s", p.count.Add(1), strings.Repeat("x", 500))
		status, answer := p.r.do("POST", "/api/v1/hubs/"+hub+"/events", `[{"body":`+strconv.Quote(body)+`}]`)
		var sent admin.Sent
		if err := json.Unmarshal([]byte(answer), &sent); err != nil || status != http.StatusCreated {
			p.r.t.Errorf("sending answers %d: %s", status, answer)
			return
		}
		p.mu.Lock()
		p.acked[fmt.Sprint(sent.Partition, "/", sent.First)] = body
		p.mu.Unlock()
	}
}

func (p *publisher) known() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]string{}
	for at, body := range p.acked {
		all[at] = body
	}
	return all
}

// C7: under load, all that was acknowledged before a backup began is in it with its number, no
// checkpoint is past its log, and the restored yard handles the rest.
func TestABackupUnderLoad(t *testing.T) {
	testengine.NeedsFiles(t)
	handling := newReceiver(t)
	go func() {
		for range handling.got {
		}
	}()
	t.Cleanup(func() { close(handling.got) })
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 4}}
	cfg.Functions = []Function{{Name: "billing", Hub: "orders", Group: "billing", Endpoint: new(handling.URL)}}
	r := start(t, cfg)
	load := &publisher{r: r, acked: map[string]string{}}
	ctx, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() { load.run(ctx, "orders") })
	}
	type taken struct {
		dir    string
		before map[string]string
	}
	var backups []taken
	for round := range 2 {
		testkit.Eventually(t, "more events", func() bool { return len(load.known()) > 100*(round+1) })
		one := taken{filepath.Join(t.TempDir(), "backup"), load.known()}
		_, err := r.backUp(one.dir)
		testkit.Must(t, err)
		backups = append(backups, one)
	}
	stop()
	senders.Wait()
	r.shutdown()
	for _, one := range backups {
		restored := restore(t, cfg, one.dir)
		restored.Functions = nil
		r := start(t, restored)
		ends := map[string]int64{}
		for at, body := range r.events("orders") {
			if want, ok := one.before[at]; ok && want != body {
				t.Errorf("event %s is %q, want %q", at, body, want)
			}
			delete(one.before, at)
			partition, number, _ := strings.Cut(at, "/")
			ends[partition] = max(ends[partition], testkit.Value(strconv.ParseInt(number, 10, 64))(t))
		}
		testkit.Equal(t, len(one.before), 0, "events that were acknowledged before and are missing")
		var checkpoints admin.Checkpoints
		testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/hubs/orders/groups/billing/checkpoints", "")), &checkpoints))
		for _, c := range checkpoints.Checkpoints {
			testkit.That(t, *c.Sequence <= ends[c.Partition], "the checkpoint of partition %s is %d, and it ends with %d", c.Partition, *c.Sequence, ends[c.Partition])
		}
		testkit.Eventually(t, "the rest to be handled", func() bool {
			return strings.Contains(r.want(200, "GET", "/api/v1/functions/billing", ""), `"lag":0`)
		})
		r.shutdown()
	}
}

// C7: hubs and topics come and go while backups are taken; each is restored, and started on.
func TestABackupWhileHubsComeAndGo(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	r := start(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	var rounds atomic.Int64
	for n := range 2 {
		churn.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("passing-%d-%d", n, i)
				r.want(201, "POST", "/api/v1/hubs", `{"name":"`+name+`","partitions":2}`)
				r.want(201, "POST", "/api/v1/hubs/"+name+"/events", `[{"body":"x"}]`)
				r.want(201, "POST", "/api/v1/topics", `{"name":"`+name+`"}`)
				r.publish(name, "event")
				r.want(204, "DELETE", "/api/v1/topics/"+name, "")
				r.want(204, "DELETE", "/api/v1/hubs/"+name, "")
				rounds.Add(1)
			}
		})
	}
	var dirs []string
	for range 4 {
		seen := rounds.Load()
		testkit.Eventually(t, "more of them", func() bool { return rounds.Load() > seen+3 })
		dirs = append(dirs, filepath.Join(t.TempDir(), "backup"))
		testkit.Must(t, testkit.Err(r.backUp(dirs[len(dirs)-1])))
	}
	stop()
	churn.Wait()
	r.shutdown()
	for _, dir := range dirs {
		r := start(t, restore(t, cfg, dir))
		var hubs struct{ Hubs []admin.Hub }
		testkit.Must(t, json.Unmarshal([]byte(r.want(200, "GET", "/api/v1/hubs", "")), &hubs))
		for _, h := range hubs.Hubs {
			r.want(201, "POST", "/api/v1/hubs/"+h.Name+"/events", `[{"body":"y"}]`)
		}
		r.shutdown()
	}
}

// C7: storage that cannot be copied gives no backup, and says so at once.
func TestNoBackupOfOtherStorage(t *testing.T) {
	cfg := newShared(t).config()
	share := cfg.share
	cfg.share = func(ctx context.Context, cfg storage.Config) (*storage.Storage, error) {
		s, err := share(ctx, cfg)
		if err == nil {
			s.Log = struct{ eventlog.Engine }{s.Log} // which is no more than that
		}
		return s, err
	}
	r := start(t, cfg)
	answer := r.want(http.StatusNotImplemented, "GET", "/api/v1/backup", "")
	testkit.That(t, strings.Contains(answer, "back up the servers that keep the data"), "it is answered %s", answer)
	_, err := r.backUp("backup")
	testkit.That(t, err != nil && strings.Contains(err.Error(), "cannot be copied"), "the client says %v", err)
	testkit.Slices(t, testkit.Value(os.ReadDir("."))(t), nil, "files were written")
}

// events gives the bodies of a hub's events by partition and number.
func (r *running) events(hub string) map[string]string {
	r.t.Helper()
	all := map[string]string{}
	lines := json.NewDecoder(strings.NewReader(r.want(200, "GET", "/api/v1/hubs/"+hub+"/events?from=earliest", "")))
	for {
		var e struct {
			Partition string
			Sequence  int64
			Body      string
		}
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return all
		}
		testkit.Must(r.t, err)
		all[fmt.Sprint(e.Partition, "/", e.Sequence)] = e.Body
	}
}

// One backup is taken at a time, and one that ends with the yard is none.
func TestABackupEndsWithTheYard(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	r := start(t, cfg)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":1}`)
	batch := `[` + strings.TrimSuffix(strings.Repeat(`{"body":"`+strings.Repeat("x", 90<<10)+`"},`, 10), ",") + `]`
	for range 30 { // more than connections hold
		r.want(201, "POST", "/api/v1/hubs/orders/events", batch)
	}
	client, err := admin.New(admin.Config{Server: r.url})
	testkit.Must(t, err)
	defer client.Close()
	slow, err := client.Backup(t.Context())
	testkit.Must(t, err)
	defer slow.Close()
	_, err = client.Backup(t.Context())
	problem, ok := errors.AsType[*admin.Problem](err)
	testkit.That(t, ok && problem.Kind() == "backup-under-way", "a second one: %v", err)

	dir := filepath.Join(t.TempDir(), "backup")
	r.stop()
	testkit.Eventually(t, "the listeners to be closed", func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			connection.Close()
		}
		return err != nil
	})
	_, err = backup.Receive(t.Context(), dir, "test", slow, nil)
	testkit.That(t, errors.Is(err, archive.ErrFailed) && strings.Contains(err.Error(), "stopping") || errors.As(err, new(*admin.UnreachableError)), "it ends with %v", err)
	testkit.ErrorIs(t, testkit.Err(backup.Open(dir)), archive.ErrUnfinished)
	testkit.Must(t, <-r.ended)
}
