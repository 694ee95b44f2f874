//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaNodes has clients work with three nodes, of which each hears of all, while one after another is killed: two
// idempotent producers, a reader, and two members of a group. What was acknowledged is there once, in the order in which it
// was sent, and no commit is lost; a node that is gone leaves what clients hear of, and comes back under its number. // K1, K2, K3, C1, C2
func TestKafkaNodes(t *testing.T) {
	t.Parallel()
	if !wantsNodes() {
		t.Skip("make interop-cluster has it")
	}
	y := startKafkaYard(t, layout{hubs: map[string]int{"franz": kafkaPartitions, "java": kafkaPartitions}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), y.patience())
	defer cancel()
	k := kafkaTask{address: y.address(), hub: "franz"}
	before := y.awaitBrokers(t)

	java := startSteady(t, k.address, "java")
	s := newKafkaSender(t, k)
	reader := k.follow(t, ctx)
	members := k.readInGroup(t, ctx)
	sending, stop := context.WithCancel(ctx)
	var senders sync.WaitGroup
	for p := range int32(kafkaPartitions) {
		senders.Go(func() { s.send(sending, p) })
	}
	for i := range 2 {
		s.await(t, ctx, s.acked.Load()+kafkaBetween)
		y.nodes[i].kill()
		y.awaitBrokers(t, i)
		s.await(t, ctx, s.acked.Load()+kafkaBetween)
		y.nodes[i] = y.start(i)
		y.nodes[i].await(t)
		testkit.Slices(t, y.awaitBrokers(t), before, "the numbers of all nodes, one of which is back")
	}
	s.await(t, ctx, s.acked.Load()+kafkaBetween)
	stop()
	senders.Wait()
	testkit.Must(t, s.client.Flush(ctx))
	testkit.Must(t, s.failed(), "a record was given up")
	reader.await(t, ctx, s.acked.Load())
	t.Logf("proved: franz-go sent %d records while two nodes were killed, and read each of them meanwhile once and in order", s.acked.Load())
	members.await(t, ctx, s.acked.Load())
	members.check(t, ctx, k)
	t.Log("proved: two members of a group have read and committed all of it meanwhile, whichever node coordinated them, and no commit is lost")
	java.end(t)
	y.stop(t)
}

// kafkaBrokers are those that a node names, as ADDRESS NUMBER by address; none where it does not answer.
func kafkaBrokers(ctx context.Context, node *kgo.Broker) (all []string) {
	answer, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, node)
	if err != nil {
		return nil
	}
	for _, b := range answer.Brokers {
		all = append(all, fmt.Sprint(net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), " ", b.NodeID))
	}
	slices.Sort(all)
	return all
}

// kafkaReader reads a hub from the beginning and sees that the numbers of each partition come in order, each once.
type kafkaReader struct {
	read   atomic.Int64
	grown  chan struct{}
	failed chan error
}

func (k kafkaTask) follow(t *testing.T, ctx context.Context) *kafkaReader {
	t.Helper()
	r := &kafkaReader{grown: make(chan struct{}, 1), failed: make(chan error, 1)}
	client := k.franz(t, k.fromTheBeginning())
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		next := make([]int, kafkaPartitions)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
				if got, want := string(record.Value), fmt.Sprint(next[record.Partition]); got != want {
					select {
					case r.failed <- fmt.Errorf("partition %d has %s at offset %d, want %s", record.Partition, got, record.Offset, want):
					default:
					}
				}
				next[record.Partition]++
				r.read.Add(1)
			})
			select {
			case r.grown <- struct{}{}:
			default:
			}
		}
	}()
	return r
}

// await waits until so many records were read.
func (r *kafkaReader) await(t *testing.T, ctx context.Context, count int64) {
	t.Helper()
	for r.read.Load() < count {
		select {
		case err := <-r.failed:
			t.Fatal(err)
		case <-r.grown:
		case <-ctx.Done():
			t.Fatalf("%d records were read, want %d", r.read.Load(), count)
		}
	}
	testkit.Equal(t, r.read.Load(), count, "records")
	select {
	case err := <-r.failed:
		t.Fatal(err)
	default:
	}
}

// steady is Kafka's own client, which sends until its input is closed.
type steady struct {
	*process
	close func() error
}

func startSteady(t *testing.T, address, hub string) *steady {
	t.Helper()
	cmd := kafkaJavaProgram(t, "4.3.1", "Steady.java")
	cmd.Env = append(cmd.Env, "YARD_KAFKA="+address, "YARD_HUB="+hub)
	input := testkit.Value(cmd.StdinPipe())(t)
	s := &steady{process: launch(t, cmd), close: input.Close}
	testkit.MustThat(t, s.out.await(func(text string) bool { return strings.Contains(text, "sending") }), "Java's client does not send:\n%s", s.out)
	return s
}

// end has it read everything, and wants its proof.
func (s *steady) end(t *testing.T) {
	t.Helper()
	testkit.Must(t, s.close())
	testkit.Must(t, s.finish(t, kafkaTime), "Java's client:\n%s", s.out)
	for line := range strings.Lines(s.out.String()) {
		if strings.HasPrefix(line, "proved: ") {
			t.Log(strings.TrimSpace(line))
			return
		}
	}
	t.Errorf("Java's client proved nothing:\n%s", s.out)
}
