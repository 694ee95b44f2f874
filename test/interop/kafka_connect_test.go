//go:build linux

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaConnect has two distributed workers of Kafka Connect copy the lines of files through hubs into other files. One
// is killed while lines are written: the other takes its tasks. Then the yard is killed, or a node of it. Then both workers
// end, and new ones go on from what Connect has in its own three topics. Every line arrives at least once, none before the
// one that was written before it; with exactly.once.source.support each is in its hub once. // K1, K2, K3
func TestKafkaConnect(t *testing.T) {
	if !*full {
		t.Skip("it takes long: make interop-full runs it")
	}
	t.Parallel()
	for name, once := range map[string]bool{"at least once": false, "exactly once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killConnect(t, once)
		})
	}
}

func killConnect(t *testing.T, once bool) {
	y := startKafkaYard(t, layout{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 3*y.patience())
	defer cancel()
	c := &connect{address: y.address(), once: once, dir: t.TempDir(), lib: kafkaConnect(t)}
	defer func() {
		if t.Failed() {
			c.show(t)
		}
	}()

	first, second := c.startWorker(t), c.startWorker(t)
	for _, name := range []string{"one", "two"} {
		c.startCopy(t, ctx, first, name)
	}
	c.awaitTasks(t, ctx, first, first, second)
	c.checkTopics(t, ctx)
	c.write(t, ctx, func() {})
	t.Log("proved: two workers copy, and have made their own topics, which are to be compacted")
	c.write(t, ctx, first.kill)
	c.awaitTasks(t, ctx, second, second)
	t.Log("proved: one was killed while lines were written, and the other has all its tasks")
	third := c.startWorker(t)
	c.awaitTasks(t, ctx, second, second, third)
	c.write(t, ctx, func() { y.kill(t) })
	t.Log("proved: the yard was killed while lines were written, and it copies on")

	before := c.arrived(t)
	third.stop(t)
	second.stop(t)
	fourth := c.startWorker(t)
	c.awaitTasks(t, ctx, fourth, fourth)
	c.write(t, ctx, func() {})
	for i, copied := range c.copies {
		testkit.Equal(t, copied.arrived(t)-before[i], writtenAtOnce, "lines that came after workers had ended and others begun")
	}
	t.Log("proved: another worker finds connectors and offsets, and copies exactly on")
	for _, copied := range c.copies {
		c.readAgain(t, ctx, fourth, copied)
	}
	t.Log("proved: the offsets of a connector are shown, and deleted: it reads all again")
	if once {
		for _, copied := range c.copies {
			copied.checkOnce(t, ctx, kafkaTask{address: c.address, hub: copied.hub})
		}
		t.Log("proved: each line is in its hub once")
	}
	fourth.stop(t)
	y.stop(t)
}

// connect is a cluster of workers of Kafka Connect.
type connect struct {
	address, dir, lib string
	once              bool // a source's lines and its offsets are written in one transaction
	copies            []*connectCopy
	workers           []*connectWorker
}

// connectWorker is one of them, and where its HTTP API is.
type connectWorker struct {
	*process
	id string
}

// The topics in which Connect itself keeps what it knows, and their partitions, as it makes them.
var connectTopics = map[string]int{"connect-configs": 1, "connect-offsets": 25, "connect-status": 5}

// startWorker starts a worker. It expects three replicas, as is its default.
func (c *connect) startWorker(t *testing.T) *connectWorker {
	t.Helper()
	id := "127.0.0.1:" + ownPort(t)
	support := "disabled"
	if c.once {
		support = "enabled"
	}
	file := filepath.Join(t.TempDir(), "worker.properties")
	testkit.Must(t, os.WriteFile(file, fmt.Appendf(nil, `bootstrap.servers=%s
listeners=http://%s
group.id=connect
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
exactly.once.source.support=%s
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
plugin.discovery=service_load
offset.flush.interval.ms=500
scheduled.rebalance.max.delay.ms=1000
session.timeout.ms=6000
heartbeat.interval.ms=1000
consumer.session.timeout.ms=6000
`, c.address, id, support), 0o600))
	w := &connectWorker{process: launch(t, javaProgram(c.lib, "org.apache.kafka.connect.cli.ConnectDistributed", file)), id: id}
	c.workers = append(c.workers, w)
	return w
}

// stop asks a worker to end, and waits for it. Java then has no other status than that of the signal.
func (w *connectWorker) stop(t *testing.T) {
	t.Helper()
	testkit.Must(t, w.cmd.Process.Signal(syscall.SIGTERM))
	_ = w.finish(t, kafkaTime)
	testkit.MustEqual(t, w.cmd.ProcessState.ExitCode(), 128+int(syscall.SIGTERM), "the end of a worker")
}

// ask asks until the worker answers with success: while a worker starts, or tasks are shared anew, it answers otherwise.
func (w *connectWorker) ask(t *testing.T, ctx context.Context, method, path string, body, answer any) {
	t.Helper()
	encoded := testkit.Value(json.Marshal(body))(t)
	var last error
	for {
		if last = w.try(ctx, method, path, encoded, answer); last == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-w.done:
			t.Fatalf("%s %s: %v: the worker has ended", method, path, last)
		case <-ctx.Done():
			t.Fatalf("%s %s: %v", method, path, last)
		}
	}
}

func (w *connectWorker) try(ctx context.Context, method, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+w.id+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// connectStatus is what a worker says of a connector.
type connectStatus struct {
	Connector connectState   `json:"connector"`
	Tasks     []connectState `json:"tasks"`
}

type connectState struct {
	State  string `json:"state"`
	Worker string `json:"worker_id"`
	Trace  string `json:"trace"`
}

// awaitTasks waits until all connectors and tasks run, at these workers and at each of them.
func (c *connect) awaitTasks(t *testing.T, ctx context.Context, asked *connectWorker, workers ...*connectWorker) {
	t.Helper()
	var want []string
	for _, w := range workers {
		want = append(want, w.id)
	}
	slices.Sort(want)
	for {
		at, running := map[string]bool{}, true
		var all []connectStatus
		for _, name := range c.connectors() {
			var status connectStatus
			asked.ask(t, ctx, http.MethodGet, "/connectors/"+name+"/status", nil, &status)
			all = append(all, status)
			running = running && len(status.Tasks) == 1
			for _, one := range append(status.Tasks, status.Connector) {
				testkit.MustThat(t, one.State != "FAILED", "%s failed: %s", name, one.Trace)
				running = running && one.State == "RUNNING"
				at[one.Worker] = true
			}
		}
		if running && slices.Equal(slices.Sorted(maps.Keys(at)), want) {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("tasks are at %+v, want them at %v", all, want)
		}
	}
}

// checkTopics looks at the topics that Connect has made for itself.
func (c *connect) checkTopics(t *testing.T, ctx context.Context) {
	t.Helper()
	adm := kadm.NewClient(kafkaTask{address: c.address}.franz(t))
	for _, copied := range c.copies {
		testkit.Equal(t, len(testkit.Value(adm.ListTopics(ctx, copied.hub))(t)[copied.hub].Partitions), 1, "partitions of %s", copied.hub)
	}
	names := slices.Sorted(maps.Keys(connectTopics))
	topics := testkit.Value(adm.ListTopics(ctx, names...))(t)
	configs := testkit.Value(adm.DescribeTopicConfigs(ctx, names...))(t)
	for _, name := range names {
		testkit.Equal(t, len(topics[name].Partitions), connectTopics[name], "partitions of %s", name)
		config := testkit.Value(configs.On(name, nil))(t)
		policy := slices.IndexFunc(config.Configs, func(c kadm.Config) bool { return c.Key == "cleanup.policy" })
		testkit.MustThat(t, policy >= 0, "%s has no cleanup.policy", name)
		testkit.Equal(t, config.Configs[policy].MaybeValue(), "compact", "cleanup.policy of %s", name)
	}
}

// connectCopy is a file whose lines are copied through a hub into another file. Each line is a number: how many there were
// before it.
type connectCopy struct {
	hub, source, sink string
	written           atomic.Int64
}

// startCopy makes a hub's two connectors. The one that reads has Connect make the hub, for the file's first line and before
// the consumer of the other asks for it: a file's order is that of one partition.
func (c *connect) startCopy(t *testing.T, ctx context.Context, at *connectWorker, hub string) {
	t.Helper()
	copied := &connectCopy{hub: hub, source: filepath.Join(c.dir, hub+".in"), sink: filepath.Join(c.dir, hub+".out")}
	testkit.Must(t, os.WriteFile(copied.source, []byte("0\n"), 0o600))
	testkit.Must(t, os.WriteFile(copied.sink, nil, 0o600))
	copied.written.Store(1)
	c.copies = append(c.copies, copied)
	at.ask(t, ctx, http.MethodPut, "/connectors/"+hub+"-source/config", map[string]string{
		"connector.class": "FileStreamSource", "tasks.max": "1", "file": copied.source, "topic": hub,
		"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "3",
	}, nil)
	adm := kadm.NewClient(kafkaTask{address: c.address}.franz(t))
	testkit.Eventually(t, "Connect has made the hub", func() bool {
		return testkit.Value(adm.ListTopics(ctx))(t).Has(hub)
	})
	at.ask(t, ctx, http.MethodPut, "/connectors/"+hub+"-sink/config", map[string]string{
		"connector.class": "FileStreamSink", "tasks.max": "1", "file": copied.sink, "topics": hub,
	}, nil)
}

// connectors are all of them, by name.
func (c *connect) connectors() (names []string) {
	for _, copied := range c.copies {
		names = append(names, copied.hub+"-source", copied.hub+"-sink")
	}
	return names
}

// writtenAtOnce is how many lines write writes to each file.
const writtenAtOnce = 3000

// write writes lines to all files. When half of them are written something happens; it waits until all have arrived.
func (c *connect) write(t *testing.T, ctx context.Context, half func()) {
	t.Helper()
	var writers sync.WaitGroup
	halfway := make(chan error, len(c.copies))
	for _, copied := range c.copies {
		writers.Go(func() { copied.write(halfway) })
	}
	for range c.copies {
		testkit.Must(t, <-halfway)
	}
	half()
	writers.Wait()
	for _, copied := range c.copies {
		copied.await(t, ctx)
	}
}

// write adds lines to the file, about one each millisecond, and says when half of them are there.
func (c *connectCopy) write(halfway chan<- error) {
	file, err := os.OpenFile(c.source, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		halfway <- err
		return
	}
	defer file.Close()
	for n := range writtenAtOnce {
		_, err = fmt.Fprintln(file, c.written.Add(1)-1)
		if n == writtenAtOnce/2 {
			halfway <- err
		}
		time.Sleep(time.Millisecond)
	}
}

// await waits until all that was written has arrived.
func (c *connectCopy) await(t *testing.T, ctx context.Context) {
	t.Helper()
	for {
		_, last := c.read(t)
		if last == c.written.Load()-1 {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: %d lines have arrived of %d", c.hub, last+1, c.written.Load())
		}
	}
}

// read gives how many lines there are in the file that Connect writes, and the last of them. Whoever goes on after a kill
// may write lines again, but nobody leaves one out.
func (c *connectCopy) read(t *testing.T) (lines int, last int64) {
	t.Helper()
	text := testkit.Value(os.ReadFile(c.sink))(t)
	next := int64(0)
	for line := range strings.Lines(string(text[:bytes.LastIndexByte(text, '\n')+1])) {
		var n int64
		testkit.MustEqual(t, testkit.Value(fmt.Sscan(line, &n))(t), 1)
		testkit.MustThat(t, n <= next, "%s: line %d comes after %d", c.hub, n, next-1)
		next, lines = n+1, lines+1
	}
	return lines, next - 1
}

func (c *connectCopy) arrived(t *testing.T) int {
	t.Helper()
	lines, _ := c.read(t)
	return lines
}

func (c *connect) arrived(t *testing.T) (lines []int) {
	t.Helper()
	for _, copied := range c.copies {
		lines = append(lines, copied.arrived(t))
	}
	return lines
}

// readAgain looks at the offsets of the connector that writes a file, and deletes them, which is to delete its group.
func (c *connect) readAgain(t *testing.T, ctx context.Context, at *connectWorker, copied *connectCopy) {
	t.Helper()
	type offset struct {
		Offset map[string]int64 `json:"offset"`
	}
	var offsets struct {
		Offsets []offset `json:"offsets"`
	}
	before, path := copied.arrived(t), "/connectors/"+copied.hub+"-sink"
	at.ask(t, ctx, http.MethodPut, path+"/stop", nil, nil)
	at.ask(t, ctx, http.MethodGet, path+"/offsets", nil, &offsets)
	testkit.MustThat(t, len(offsets.Offsets) == 1 && offsets.Offsets[0].Offset["kafka_offset"] >= copied.written.Load(), "offsets of a connector that has read %d lines: %+v", copied.written.Load(), offsets)
	at.ask(t, ctx, http.MethodDelete, path+"/offsets", nil, nil)
	at.ask(t, ctx, http.MethodPut, path+"/resume", nil, nil)
	for want := before + int(copied.written.Load()); copied.arrived(t) < want; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s has %d lines, want %d", copied.sink, copied.arrived(t), want)
		}
	}
	copied.await(t, ctx)
}

// checkOnce reads a hub as those do who read what is committed: every line is there once, in order.
func (c *connectCopy) checkOnce(t *testing.T, ctx context.Context, k kafkaTask) {
	t.Helper()
	reader := k.franz(t, kgo.ConsumeTopics(k.hub), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer reader.Close()
	for next := int64(0); next < c.written.Load(); {
		fetches := reader.PollFetches(ctx)
		testkit.Must(t, fetches.Err(), "%d of %d lines were read", next, c.written.Load())
		fetches.EachRecord(func(r *kgo.Record) {
			testkit.MustEqual(t, string(r.Value), fmt.Sprint(next), "a line of %s", k.hub)
			next++
		})
	}
}

// show shows what the workers said.
func (c *connect) show(t *testing.T) {
	for _, w := range c.workers {
		t.Logf("worker %s said:\n%.6000s", w.id, w.out)
	}
}
