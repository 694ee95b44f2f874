//go:build linux

package interop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	idleProcesses   = 4 // the race detector allows some 8,000 goroutines in each
	idlePerProcess  = 500
	busyConnections = 200
	eventsEach      = 100
	scalePartitions = 8
	readersCredit   = 500
	lazyPartition   = 0 // where the receiver without credit is
)

// TestScale keeps 2,000 idle connections open while 200 others send at once and every partition is
// read. Everything sent is received, in each sender's order; a receiver that never gives credit
// holds nobody up and misses nothing; and the idle ones still work when it is over. // H8
func TestScale(t *testing.T) {
	onOneMachine(t, "it looks at the memory of one process")
	t.Parallel()
	y := startYard(t, layout{build: leanBuild, hubs: map[string]int{"busy": scalePartitions, "idle": 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	address := y.hostPort(t, "amqp")
	t.Logf("memory of the yard: %s", y.memory(t))

	var idle []*client
	for range idleProcesses {
		idle = append(idle, startClient(t, orders{Role: "idle", Address: address, Hub: "idle", Connections: idlePerProcess}, 0))
	}
	for _, c := range idle {
		c.await(t, "open")
	}
	t.Logf("with %d idle connections: %s", idleProcesses*idlePerProcess, y.memory(t))

	lazy := lazyReader(t, ctx, address)
	sendAndReceive(t, ctx, address)
	t.Logf("after %d events from %d connections: %s", busyConnections*eventsEach, busyConnections, y.memory(t))
	checkLazyReader(t, ctx, lazy)
	for _, c := range idle {
		c.notify(t, "send")
	}
	for _, c := range idle {
		c.await(t, "sent")
	}
}

// memory is what the process takes, as the kernel tells it.
func (y *yard) memory(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", y.cmd.Process.Pid))
	testkit.Must(t, err)
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// sendAndReceive has every busy connection send, and all partitions read meanwhile.
func sendAndReceive(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	got := newTally()
	readers := make(chan error, scalePartitions)
	for partition := range scalePartitions {
		go func() { readers <- readPartition(ctx, address, partition, got) }()
	}
	err := each(busyConnections, busyConnections, func(sender int) error { return sendAll(ctx, address, sender) })
	testkit.Must(t, err)
	for range scalePartitions {
		testkit.Must(t, <-readers)
	}
	testkit.MustEqual(t, got.missing(), "")
}

func sendAll(ctx context.Context, address string, sender int) error {
	p, err := dialPeer(ctx, address)
	if err != nil {
		return err
	}
	defer p.close()
	link, err := p.sender(ctx, fmt.Sprintf("busy/Partitions/%d", sender%scalePartitions))
	if err != nil {
		return err
	}
	for n := range eventsEach {
		if err := link.Send(ctx, amqp.NewMessage(fmt.Appendf(nil, "%d/%d", sender, n)), nil); err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
	}
	return nil
}

// inPartition is how many events a partition gets.
func inPartition(partition int) int {
	senders := 0
	for sender := range busyConnections {
		if sender%scalePartitions == partition {
			senders++
		}
	}
	return senders * eventsEach
}

func readPartition(ctx context.Context, address string, partition int, got *tally) error {
	p, err := dialPeer(ctx, address)
	if err != nil {
		return err
	}
	defer p.close()
	link, err := p.receiver(ctx, "busy", partition, noEpoch, readersCredit)
	if err != nil {
		return err
	}
	for n := range inPartition(partition) {
		message, err := link.Receive(ctx, nil)
		if err != nil {
			return fmt.Errorf("event %d of partition %d: %w", n, partition, err)
		}
		if err := got.add(message.GetData()); err != nil {
			return err
		}
	}
	return nil
}

// lazyReader attaches a receiver that gives no credit.
func lazyReader(t *testing.T, ctx context.Context, address string) *amqp.Receiver {
	t.Helper()
	p, err := dialPeer(ctx, address)
	testkit.Must(t, err)
	t.Cleanup(p.close)
	link, err := p.receiver(ctx, "busy", lazyPartition, noEpoch, -1)
	testkit.Must(t, err)
	return link
}

// checkLazyReader gives credit at last: all that was published is there.
func checkLazyReader(t *testing.T, ctx context.Context, link *amqp.Receiver) {
	t.Helper()
	if early := link.Prefetched(); early != nil {
		t.Errorf("a receiver without credit was sent %q", early.GetData())
	}
	want := inPartition(lazyPartition)
	for n := range want {
		if n%readersCredit == 0 {
			testkit.Must(t, link.IssueCredit(readersCredit))
		}
		message, err := link.Receive(ctx, nil)
		testkit.Must(t, err, "event %d of %d", n, want)
		if number := message.Annotations["x-opt-sequence-number"]; number != int64(n) {
			t.Fatalf("event %d has number %v", n, number)
		}
	}
}

// tally counts what was received of each sender.
type tally struct {
	mu   sync.Mutex
	next map[int]int // guarded by mu: the number that a sender's next event must have
}

func newTally() *tally { return &tally{next: map[int]int{}} }

func (r *tally) add(body []byte) error {
	var sender, n int
	if _, err := fmt.Sscanf(string(body), "%d/%d", &sender, &n); err != nil {
		return fmt.Errorf("body %q: %w", body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n != r.next[sender] {
		return fmt.Errorf("sender %d: event %d came where %d was due", sender, n, r.next[sender])
	}
	r.next[sender]++
	return nil
}

func (r *tally) missing() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for sender := range busyConnections {
		if r.next[sender] != eventsEach {
			return fmt.Sprintf("sender %d: %d of %d events were received", sender, r.next[sender], eventsEach)
		}
	}
	return ""
}
