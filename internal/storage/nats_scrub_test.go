package storage

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/survey"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// scrubYard is a yard on real servers, with events in two partitions, entries and a body.
type scrubYard struct {
	*Storage
	t       *testing.T
	servers *natstest.Servers
	name    string
	js      jetstream.JetStream
}

const bodyName = "0123456789abcdef0123456789abcdef"

func newScrubYard(t *testing.T, servers *natstest.Servers) *scrubYard {
	t.Helper()
	return newScrubYardOf(t, servers, servers.Replicas)
}

func newScrubYardOf(t *testing.T, servers *natstest.Servers, replicas int) *scrubYard {
	t.Helper()
	y := &scrubYard{t: t, servers: servers, name: natstest.Yard(), js: testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)}
	t.Cleanup(func() {
		for name := range y.js.StreamNames(context.Background()).Name() {
			if strings.HasPrefix(name, "Y_"+y.name+"_") {
				_ = y.js.DeleteStream(context.Background(), name)
			}
		}
	})
	y.Storage = testkit.Value(Open(t.Context(), fmt.Sprintf("%s?replicas=%d&yard=%s", servers.URL(), replicas, y.name), onServers(sealed.NewKey())))(t)
	t.Cleanup(func() { testkit.Check(t, y.Close()) })
	testkit.Must(t, y.Log.Provide(t.Context(), "orders", eventlog.Shape{Partitions: 2}))
	y.append("orders", 0, 20)
	y.append("orders", 1, 20)
	testkit.Must(t, testkit.Err(y.Meta.CompareAndSet(t.Context(), "hubs/orders", 0, []byte("a hub"))))
	testkit.Must(t, testkit.Err(y.Bodies.Put(t.Context(), bodyName, bytes.NewReader(make([]byte, 2<<20)))))
	return y
}

// append stores events, each in a frame of its own.
func (y *scrubYard) append(log string, number, count int) {
	y.t.Helper()
	part := testkit.Value(y.Log.Partition(eventlog.PartitionID{Log: log, Number: number}))(y.t)
	for i := range count {
		testkit.Must(y.t, testkit.Err(eventlog.Append(y.t.Context(), part, eventlog.Batch{Events: []eventlog.Event{{Message: fmt.Appendf(nil, "event %d", i)}}})))
	}
}

// scrub gives what was found.
func (y *scrubYard) scrub() (found []ScrubFinding, report Scrubbed) {
	y.t.Helper()
	report = testkit.Value(y.Scrub(y.t.Context(), Scrubbing{Found: func(f ScrubFinding) { found = append(found, f) }}))(y.t)
	testkit.Equal(y.t, len(found), report.Findings, "findings")
	return found, report
}

func (y *scrubYard) stream(end string) string { return "Y_" + y.name + "_" + end }

// C1, C2: while a yard is used by two nodes, and retention removes events, a scrub finds nothing wrong
// and has read the copies of all servers.
func TestScrubOfAYardInUse(t *testing.T) {
	y := newScrubYard(t, natstest.Shared(t, 3))
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	testkit.Must(t, y.Log.Provide(t.Context(), "busy", eventlog.Shape{Partitions: 3, Retention: eventlog.Retention{Bytes: 20 << 10}}))
	working.Go(func() { testkit.Check(t, y.Log.Run(ctx)) })
	working.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			part := testkit.Value(y.Log.Partition(eventlog.PartitionID{Log: "busy", Number: i % 3}))(t)
			_, err := eventlog.Append(ctx, part, eventlog.Batch{Events: []eventlog.Event{{Message: make([]byte, 1000)}}})
			testkit.That(t, err == nil || ctx.Err() != nil, "append: %v", err)
		}
	})
	working.Go(func() {
		for revision := (testkit.Value(y.Meta.CompareAndSet(t.Context(), "records/a/b", 0, nil))(t)); ctx.Err() == nil; {
			next, err := y.Meta.CompareAndSet(ctx, "records/a/b", revision, []byte("changed"))
			testkit.That(t, err == nil || ctx.Err() != nil, "change an entry: %v", err)
			revision = next
		}
	})
	for tries := 0; ; tries++ { // a server may be behind for long on a machine that is busy
		found, report := y.scrub()
		testkit.MustThat(t, len(found) == 0, "it found %+v", found) // a server that is behind is a problem, and no finding
		testkit.That(t, report.Done == report.Streams && report.Streams >= 8, "it read %+v", report)
		if len(report.Problems) == 0 {
			testkit.Slices(t, report.Servers, []string{"n0", "n1", "n2"}, "servers")
			testkit.That(t, report.Messages > 120 && report.Bytes > 6<<20, "it read %+v", report)
			return
		}
		testkit.MustThat(t, tries < 10, "problems %q", report.Problems)
	}
}

// C1, C2: what is planted in a stream is found, with partition and numbers.
func TestScrubFindsDamage(t *testing.T) {
	servers := natstest.Shared(t, 1)
	for name, tt := range map[string]struct {
		plant func(*scrubYard)
		want  func(*scrubYard, ScrubFinding) bool
	}{
		"messages removed by hand": {
			func(y *scrubYard) {
				s := testkit.Value(y.js.Stream(t.Context(), y.stream("l=h-orders-0")))(t)
				testkit.Must(t, s.Purge(t.Context(), jetstream.WithPurgeSubject("y."+y.name+".l.h-orders-0.1"), jetstream.WithPurgeSequence(24)))
			},
			func(y *scrubYard, f ScrubFinding) bool {
				return f.Kind == Damaged && f.Log == "orders" && f.Partition == 1 && f.FirstEvent == 0 && f.NextEvent == 3
			},
		},
		"a frame with flipped bytes": {
			func(y *scrubYard) {
				stream := testkit.Value(y.js.Stream(t.Context(), y.stream("l=h-orders-0")))(t)
				last := testkit.Value(stream.GetLastMsgForSubject(t.Context(), "y."+y.name+".l.h-orders-0.0"))(t)
				last.Data[len(last.Data)-1] ^= 1
				testkit.Must(t, testkit.Err(y.js.Publish(t.Context(), last.Subject, last.Data)))
			},
			func(y *scrubYard, f ScrubFinding) bool {
				return f.Kind == Damaged && f.Log == "orders" && f.Partition == 0 && f.FirstEvent == f.NextEvent && strings.Contains(f.Text, "checksum")
			},
		},
		"an entry with flipped bytes": {
			func(y *scrubYard) {
				stream := testkit.Value(y.js.Stream(t.Context(), y.stream("e_d")))(t)
				last := testkit.Value(stream.GetLastMsgForSubject(t.Context(), "y."+y.name+".e.d.hubs.orders"))(t)
				last.Data[len(last.Data)-1] ^= 1
				testkit.Must(t, testkit.Err(y.js.Publish(t.Context(), last.Subject, last.Data)))
			},
			func(y *scrubYard, f ScrubFinding) bool {
				return f.Kind == Damaged && f.Stream == y.stream("e_d") && strings.Contains(f.Text, "damaged")
			},
		},
		"a body without its first part": {
			func(y *scrubYard) {
				s := testkit.Value(y.js.Stream(t.Context(), y.stream("b")))(t)
				testkit.Must(t, s.Purge(t.Context(), jetstream.WithPurgeSequence(2)))
			},
			func(y *scrubYard, f ScrubFinding) bool {
				return f.Kind == Damaged && f.Body == bodyName && strings.Contains(f.Text, "missing")
			},
		},
		"a stream deleted by hand": {
			func(y *scrubYard) { testkit.Must(t, y.js.DeleteStream(t.Context(), y.stream("l=h-orders-0"))) },
			func(y *scrubYard, f ScrubFinding) bool {
				return f.Kind == StreamLost && f.Log == "orders" && f.Stream == y.stream("l=h-orders-0")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newScrubYard(t, servers)
			found, _ := y.scrub()
			testkit.Equal(t, len(found), 0, "before: %+v", found)
			tt.plant(y)
			found, report := y.scrub()
			testkit.That(t, slices.ContainsFunc(found, func(f ScrubFinding) bool { return tt.want(y, f) }), "it found %+v", found)
			testkit.That(t, len(report.Problems) == 0, "problems %q", report.Problems)
		})
	}
}

// C1: a server that has lost one message, as by a flipped bit on its disk, is named with the partition and
// the event.
func TestScrubNamesTheServerWithADamagedCopy(t *testing.T) {
	servers := natstest.Start(t, 3)
	y := newScrubYard(t, servers)
	stream := y.stream("l=h-orders-0")
	lame := (servers.Leader(t, servers.Dial(t, 0), stream) + 1) % 3
	servers.Stop(t, lame)
	changed := 0
	testkit.Must(t, filepath.WalkDir(servers.Folder(lame), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, stream) || filepath.Ext(path) != ".blk" || !strings.Contains(path, "msgs") {
			return err
		}
		content := testkit.Value(os.ReadFile(path))(t)
		if at := bytes.Index(content, []byte("event 7")); at >= 0 {
			content[at] ^= 1
			changed++
		}
		return os.WriteFile(path, content, 0o600)
	}))
	testkit.MustThat(t, changed == 1, "%d messages were damaged", changed)
	servers.Restart(t, lame)
	name := fmt.Sprint("n", lame)
	var found []ScrubFinding
	testkit.Eventually(t, "all copies are compared", func() bool {
		var report Scrubbed
		found, report = y.scrub()
		return len(report.Problems) == 0
	})
	testkit.MustThat(t, len(found) == 1, "it found %+v", found)
	f := found[0]
	testkit.That(t, f.Kind == CopyMissing && f.Server == name && f.Stream == stream && f.Log == "orders" && f.Partition == 0 && f.FirstEvent == 7 && f.NextEvent == 8 && f.Messages == 1,
		"it found %+v", f)
}

// C7: a server that is gone is named before anything is read, is waited for once and not for each stream, and
// the others are compared.
func TestScrubWhileAServerIsGone(t *testing.T) {
	servers := natstest.Start(t, 3)
	y := newScrubYard(t, servers)
	for i := range 8 {
		testkit.Must(t, y.Log.Provide(t.Context(), fmt.Sprint("more-", i), eventlog.Shape{Partitions: 1}))
		y.append(fmt.Sprint("more-", i), 0, 1)
	}
	asking := servers.Dial(t, 0)
	servers.Kill(t, 2)
	testkit.Eventually(t, "the others know that it is gone", func() bool {
		sum, err := survey.Ask(t.Context(), asking, y.name)
		return err == nil && sum.Leaderless == 0 && sum.Count >= 15 && max(sum.Offline, sum.Lagging) == sum.Count
	})
	var said []string
	read := int64(0)
	waited := map[string]bool{}
	report := testkit.Value(y.Scrub(t.Context(), Scrubbing{
		Warn: func(text string) { said = append(said, fmt.Sprint(text, ", after ", read)) },
		Progress: func(p ScrubProgress) {
			if read = p.Bytes; len(p.Waiting) > 0 {
				waited[p.Stream] = true
			}
		},
	}))(t)
	testkit.That(t, report.Done == report.Streams && report.Streams >= 15 && len(report.Problems) > 0, "it read %+v", report)
	testkit.MustThat(t, len(said) > 0 && strings.Contains(said[0], "server n2 is ") && strings.HasSuffix(said[0], ", after 0"), "it said %q", said)
	testkit.That(t, len(waited) <= 1, "it waited at %v", waited)
}

// C1: a scrub ends when its context does.
func TestScrubIsStopped(t *testing.T) {
	y := newScrubYard(t, natstest.Shared(t, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := y.Scrub(ctx, Scrubbing{Progress: func(p ScrubProgress) {
		if p.Bytes > 0 {
			cancel()
		}
	}})
	testkit.ErrorIs(t, err, context.Canceled, "the scrub")
	testkit.That(t, report.Done == 0 && report.Streams > 0, "it read %+v", report)
}
