package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// TestMain lets the test program, too, be started again as a server.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	other, err := beOther(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !other {
		os.Exit(m.Run())
	}
}

// TestTheRaceRuns has all chapters run with the servers that need no download: a yard, the server that throws away, and
// NATS. It says nothing of speed. // K1
func TestTheRaceRuns(t *testing.T) {
	dir := t.TempDir()
	var stdout bytes.Buffer
	var stderr testkit.Buffer
	err := run(t.Context(), []string{"-quick", "-seconds", "0.05", "-only", "kafka,amqp,own,start", "-peers", "yard,sink,nats", "-dir", dir}, &stdout, &stderr)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	text := stdout.String()
	for _, want := range []string{
		"### Kafka, produce 1 KiB, batches ≤ 1 MB", "### Kafka, consume 100 B", "### Kafka, consume with TLS 1 KiB", "### Kafka, end-to-end latency at 10000 events/s",
		"### Kafka, catch up while 20000 events/s come", "### AMQP 1.0, send 1 KiB", "### AMQP 1.0, receive 100 B", "### By its own client: nats.go",
		"### Start on an empty folder", "### Resident memory", "| yard, sync `os` |", "| a server that throws away |", "| NATS JetStream, `sync_interval: always`, 1 KiB, in |",
		"yard `os` / thrown away", "| consume with TLS 1 KiB, batches ≤ 1 MB, yard `os` / thrown away |",
	} {
		testkit.That(t, strings.Contains(text, want), "no %q in the report", want)
	}
	testkit.That(t, !strings.Contains(text, "NaN"), "a figure is missing")
	testkit.That(t, !strings.Contains(text, "Left out"), "somebody has failed")
	if t.Failed() {
		t.Log(text)
	}
	left, err := os.ReadDir(dir)
	testkit.That(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

func TestARunThatEndsEarlyPrintsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "<!-- bench peers: begin -->\nold\n<!-- bench peers: end -->\n"
	testkit.Must(t, os.WriteFile(page, []byte(text), 0o600))
	var stdout bytes.Buffer
	err := run(ctx, []string{"-quick", "-dir", t.TempDir(), "-write", page}, &stdout, io.Discard)
	testkit.That(t, errors.Is(err, context.Canceled), "got %v", err)
	testkit.That(t, strings.Contains(stdout.String(), "- Run: 1 rounds of 300ms each"), "printed: %s", stdout.String())
	testkit.Equal(t, string(testkit.Value(os.ReadFile(page))(t)), text)
}

// Java's own tools run against a yard and the server that throws away; Kafka's server itself is left to the race. // K1
func TestTheRaceRunsWithJavasTools(t *testing.T) {
	if _, err := kafkaFolder(); err != nil {
		parts.Missing(t, "Java's tools: %v", err)
	}
	var stdout bytes.Buffer
	var stderr testkit.Buffer
	err := run(t.Context(), []string{"-quick", "-seconds", "0.01", "-only", "java", "-peers", "yard,sink", "-dir", t.TempDir()}, &stdout, &stderr)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	text := stdout.String()
	for _, want := range []string{
		"### Kafka, produce 1 KiB, 16 partitions, Java's ProducerPerformance", "### Kafka, consume 100 B, 16 partitions, Java's ConsumerPerformance",
		"| Java's ProducerPerformance, 1 KiB, yard `os` / thrown away |", "### Resident memory in the race by Kafka's protocol, Java's clients (MiB)",
	} {
		testkit.That(t, strings.Contains(text, want), "no %q in the report", want)
	}
	testkit.That(t, !strings.Contains(text, "Left out"), "somebody has failed")
	if t.Failed() {
		t.Log(text)
	}
}

func TestCommandLinesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"an unknown chapter", []string{"-only", "nothing"}},
		{"an unknown server", []string{"-peers", "nobody"}},
		{"no rounds", []string{"-rounds", "0"}},
		{"no time", []string{"-seconds", "0"}},
		{"no partitions", []string{"-partitions", "0"}},
		{"a part of the figures is not to be kept", []string{"-only", "kafka", "-write", "page.md"}},
		{"figures of some servers are not to be kept", []string{"-peers", "yard", "-write", "page.md"}},
		{"an argument that is no flag", []string{"kafka"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := run(t.Context(), tt.args, io.Discard, io.Discard); err == nil {
				t.Error("got no error")
			}
		})
	}
}

// A client that begins with a single record is not sent batches of one for ever: that would be no ceiling.
func TestTheSinkSendsTheLargestBatchThatCame(t *testing.T) {
	batch := func(records, bytes int) []byte {
		b := make([]byte, bytes)
		binary.BigEndian.PutUint32(b[recordsAt:], uint32(records))
		return b
	}
	var p sinkPartition
	for _, records := range []int{1, 100, 7} {
		p.take(batch(records, 100*records))
	}
	sent, count, end := p.bounds()
	testkit.Equal(t, len(sent), 100*100)
	testkit.Equal(t, count, 100)
	testkit.Equal(t, end, 200, "the end is that of a whole batch")
	p.take(batch(1000, 100*1000))
	_, count, _ = p.bounds()
	testkit.Equal(t, count, 100, "records in a batch, after somebody has seen where batches begin")
}

// sinkPeer is the sink inside the test: where it listens, by protocol.
type sinkPeer struct {
	peer
	at map[string]string
}

func (s sinkPeer) address(protocol string) string { return s.at[protocol] }

// What the sink sends is as many records as it was sent, in batches that a client accepts, with offsets that rise; by
// either of its listeners, to which it leads those who came by them.
func TestTheSinkSendsAsManyAsItWasSent(t *testing.T) {
	b := &bench{folder: t.TempDir()}
	trusted := testkit.Value(b.makeCertificate())(t)
	plain := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	secure := testkit.Value(listenTLS("127.0.0.1:0", b.certificate("keys.pem")))(t)
	p := sinkPeer{at: map[string]string{"kafka": plain.Addr().String(), "kafkas": secure.Addr().String()}}
	testkit.Run(t, func(ctx context.Context) error { return serveSink(ctx, plain, secure) })
	for _, client := range []franz{{}, {secure: trusted}} {
		t.Run(map[bool]string{true: "in plain text", false: "with TLS"}[client.secure == nil], func(t *testing.T) {
			sinkSendsAsManyAsItWasSent(t, client, p)
		})
	}
}

func sinkSendsAsManyAsItWasSent(t *testing.T, f franz, p sinkPeer) {
	const partitions, events = 3, 5_000
	testkit.Must(t, f.create(t.Context(), p, "t", partitions))
	l := load{eventBytes: 100, batchBytes: 16 << 10}
	sender := testkit.Value(f.producer(t.Context(), p, "t", l))(t)
	defer sender.close()
	sent := testkit.Value(sender.send(t.Context(), limit{events: events}))(t)
	testkit.Equal(t, sent, events)

	client := testkit.Value(f.client(p, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())))(t)
	defer client.Close()
	next := map[int32]int64{}
	for n := 0; n < events; {
		fetches := client.PollFetches(t.Context())
		testkit.Must(t, fetches.Err())
		n += fetches.NumRecords()
		fetches.EachRecord(func(r *kgo.Record) {
			testkit.MustEqual(t, r.Offset, next[r.Partition])
			testkit.MustEqual(t, len(r.Value), l.eventBytes)
			next[r.Partition]++
		})
	}
	testkit.Must(t, f.remove(t.Context(), p, "t"))
	metadata := testkit.Value(kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), client))(t)
	testkit.Equal(t, len(metadata.Topics), 0, "topics after the deletion")
}
