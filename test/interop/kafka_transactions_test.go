//go:build linux

package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

// kafkaTransactions are clients that write in transactions: some they commit, some they abort, and they copy a hub
// with its offsets.
var kafkaTransactions = []kafkaClient{
	{"franz-go", "", playFranzTransactions},
	{"java-4.3.1", "", func(t *testing.T, k kafkaTask) { playJavaTransactions(t, k, "4.3.1") }},
	{"java-3.9.1", "", func(t *testing.T, k kafkaTask) { playJavaTransactions(t, k, "3.9.1") }},
	{"confluent-kafka", "", playConfluentTransactions},
	{"kafka-python", "", func(t *testing.T, k kafkaTask) {
		k.playTransactions(t, kafkaPythonProgram(t, "transactions_python.py"))
	}},
	{"kafkajs", "", func(t *testing.T, k kafkaTask) { k.playTransactions(t, kafkaJSProgram(t, "transactions.js")) }},
	{"sarama", "", playSaramaTransactions},
}

// TestKafkaTransactions has each client write in transactions. Who reads what is committed, by Kafka or over AMQP, gets
// that and nothing else. // K3, K4
func TestKafkaTransactions(t *testing.T) {
	t.Parallel()
	l := layout{kafka: true, hubs: map[string]int{}}
	for _, c := range kafkaTransactions {
		l.hubs[c.name], l.hubs[c.name+"-copy"] = kafkaPartitions, kafkaPartitions
	}
	y := startYard(t, l)
	for _, c := range kafkaTransactions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := kafkaTask{address: y.hostPort(t, "kafka"), hub: c.name}
			c.play(t, k)
			for _, hub := range []string{c.name, c.name + "-copy"} {
				y.readCommittedOverAMQP(t, hub)
			}
			t.Log("proved: what is committed is read over AMQP, once, and nothing else")
		})
	}
}

// A client makes so many transactions of so many records each; those with an even number are committed.
const (
	kafkaTransactionCount = 10
	kafkaTransactionSize  = 8
)

// committedValues are those that count.
func committedValues() map[string]bool {
	all := map[string]bool{}
	for n := 0; n < kafkaTransactionCount; n += 2 {
		for i := range kafkaTransactionSize {
			all[fmt.Sprintf("%d-%d", n, i)] = true
		}
	}
	return all
}

func (y *yard) readCommittedOverAMQP(t *testing.T, hub string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	p := testkit.Value(dialPeer(ctx, y.hostPort(t, "amqp")))(t)
	defer p.close()
	came := testkit.Value(p.receiveAll(ctx, hub))(t)
	for missing := committedValues(); len(missing) > 0; {
		select {
		case e := <-came:
			testkit.MustThat(t, e.err == nil, "partition %d over AMQP: %v", e.partition, e.err)
			testkit.MustThat(t, missing[e.value], "%q came that does not count, or came twice", e.value)
			delete(missing, e.value)
		case <-ctx.Done():
			t.Fatalf("%d records did not come over AMQP", len(missing))
		}
	}
}

// received is what came over AMQP from a partition, or why no more comes.
type received struct {
	partition int
	value     string
	err       error
}

// receiveAll reads all partitions of a hub from the beginning, until ctx ends.
func (p *peer) receiveAll(ctx context.Context, hub string) (<-chan received, error) {
	came := make(chan received)
	for partition := range kafkaPartitions {
		receiver, err := p.receiver(ctx, hub, partition, noEpoch, 100)
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				e := received{partition: partition}
				m, err := receiver.Receive(ctx, nil)
				if err == nil {
					e.value = string(m.GetData())
					err = receiver.AcceptMessage(ctx, m)
				}
				e.err = err
				select {
				case came <- e:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		}()
	}
	return came, nil
}

func playFranzTransactions(t *testing.T, k kafkaTask) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	producer := k.franz(t, kgo.TransactionalID("franz"), kgo.TransactionTimeout(time.Minute))
	for n := range kafkaTransactionCount {
		testkit.Must(t, producer.BeginTransaction())
		for i := range kafkaTransactionSize {
			testkit.Must(t, producer.ProduceSync(ctx, &kgo.Record{Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, "%d-%d", n, i)}).FirstErr())
		}
		testkit.Must(t, producer.EndTransaction(ctx, kgo.TransactionEndTry(n%2 == 0)))
	}
	t.Log("proved: transactions, committed and aborted")
	k.readCommitted(t, ctx, k.hub)
	t.Log("proved: what is committed is read, once, and nothing else")
	c := testkit.Value(newKafkaCopier(k))(t)
	for copied := 0; copied < len(committedValues()); {
		copied += testkit.Value(c.step(ctx, rand.IntN(4) > 0))(t)
	}
	c.session.Close()
	k.readCommitted(t, ctx, k.hub+"-copy")
	t.Log("proved: a hub copied with its offsets, in transactions of which some were aborted")
}

// readCommitted reads a hub from the beginning, and finds what counts.
func (k kafkaTask) readCommitted(t *testing.T, ctx context.Context, hub string) {
	t.Helper()
	from := kafkaTask{address: k.address, hub: hub}
	reader := from.franz(t, from.fromTheBeginning(), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for missing := committedValues(); len(missing) > 0; {
		fetches := reader.PollFetches(ctx)
		testkit.Must(t, fetches.Err(), "%d records are missing", len(missing))
		fetches.EachRecord(func(r *kgo.Record) {
			testkit.MustThat(t, missing[string(r.Value)], "%q came that does not count, or came twice", r.Value)
			delete(missing, string(r.Value))
		})
	}
	reader.Close()
}

// kafkaCopier copies a hub to another, partition by partition, with its offsets. One goroutine uses it, be it that of a
// test or not.
type kafkaCopier struct {
	k       kafkaTask
	session *kgo.GroupTransactSession
}

func newKafkaCopier(k kafkaTask) (*kafkaCopier, error) {
	c := &kafkaCopier{k: k}
	return c, c.open()
}

// copierID is the transactional id of who copies a task's hub.
func copierID(k kafkaTask) string { return k.hub + "-copier" }

func (c *kafkaCopier) open() (err error) {
	c.session, err = kgo.NewGroupTransactSession(kgo.SeedBrokers(c.k.addresses()...), kgo.TransactionalID(copierID(c.k)),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumerGroup(c.k.group()), kgo.ConsumeTopics(c.k.hub), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(100*time.Millisecond), soon)
	if err != nil {
		return fmt.Errorf("begin to copy: %w", err)
	}
	return nil
}

// step copies what there is in one transaction, and gives how many records that were: none where it was not committed.
func (c *kafkaCopier) step(ctx context.Context, commit bool) (copied int, err error) {
	polling, done := context.WithTimeout(ctx, time.Second)
	fetches := c.session.PollFetches(polling)
	done()
	if fetches.NumRecords() == 0 {
		return 0, nil
	}
	if err := c.session.Begin(); err != nil {
		return 0, c.again()
	}
	var failed error
	fetches.EachRecord(func(r *kgo.Record) {
		copied++
		c.session.Produce(ctx, &kgo.Record{Topic: c.k.hub + "-copy", Partition: r.Partition, Value: r.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	})
	if err := c.session.Client().Flush(ctx); err != nil {
		return 0, fmt.Errorf("send what is copied: %w", err)
	}
	committed, err := c.session.End(ctx, kgo.TransactionEndTry(commit && failed == nil))
	if err != nil {
		return 0, c.again()
	}
	if !committed {
		return 0, nil
	}
	return copied, nil
}

// again begins anew, as a program does that was told that its producer is over.
func (c *kafkaCopier) again() error {
	c.session.Close()
	return c.open()
}

func playJavaTransactions(t *testing.T, k kafkaTask, version string) {
	t.Helper()
	k.playTransactions(t, kafkaJavaProgram(t, version, "Transactions.java"))
}

func playConfluentTransactions(t *testing.T, k kafkaTask) {
	t.Helper()
	k.playTransactions(t, kafkaPythonProgram(t, "transactions_confluent.py"))
}

// playTransactions has a script write in transactions and copy the hub.
func (k kafkaTask) playTransactions(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	k.play(t, cmd, map[string]string{"YARD_TRANSACTIONS": fmt.Sprint(kafkaTransactionCount), "YARD_SIZE": fmt.Sprint(kafkaTransactionSize)})
}

// TestKafkaTransactionsTLS has confluent-kafka do all of it with TLS, by a policy that may send and listen and nothing
// else. // K3, K5
func TestKafkaTransactionsTLS(t *testing.T) {
	t.Parallel()
	const hub = "confluent-kafka"
	y := startYard(t, layout{kafka: true, outside: true, hubs: map[string]int{hub: kafkaPartitions, hub + "-copy": kafkaPartitions}})
	playConfluentTransactions(t, kafkaTask{
		address: y.hostPort(t, "kafkas"), hub: hub, ca: y.authority(t), user: "worker", password: keyOf("worker"),
	})
	for _, hub := range []string{hub, hub + "-copy"} {
		y.readCommittedOverAMQP(t, hub)
	}
	t.Log("proved: what is committed is read over AMQP, once, and nothing else")
}

// TestKafkaTransactionKill kills the yard, or the node that coordinates them, again and again while a hub is copied in
// transactions, some of which are aborted. In the end each record that counts is in the copy once, in its order, for readers
// of what is committed by Kafka and over AMQP. // K3
func TestKafkaTransactionKill(t *testing.T) {
	t.Parallel()
	y := startKafkaYard(t, layout{hubs: map[string]int{"source": kafkaPartitions, "source-copy": kafkaPartitions}}, nil)
	k := kafkaTask{address: y.address(), hub: "source"}
	ctx, cancel := context.WithTimeout(t.Context(), y.patience())
	defer cancel()
	const each = 1500
	sender := k.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), soon)
	sent := 0
	send := func() {
		for range each {
			sender.Produce(ctx, &kgo.Record{Partition: int32(sent % kafkaPartitions), Value: fmt.Append(nil, sent/kafkaPartitions)}, nil)
			sent++
		}
		testkit.Must(t, sender.Flush(ctx))
	}
	copied := make(chan error, 1) // why copying ended
	stop := make(chan struct{})
	go func() { copied <- copyUntil(ctx, stop, k) }()
	reader := kafkaTask{address: k.address, hub: "source-copy"}
	next := make([]int, kafkaPartitions)
	read := 0
	committed := reader.franz(t, reader.fromTheBeginning(), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond), soon)
	drain := func(until int) {
		for read < until {
			fetches := committed.PollFetches(ctx)
			testkit.Must(t, ctx.Err(), "%d of %d were read", read, until)
			fetches.EachRecord(func(r *kgo.Record) {
				testkit.MustEqual(t, string(r.Value), fmt.Sprint(next[r.Partition]), "the record at offset %d of partition %d", r.Offset, r.Partition)
				next[r.Partition]++
				read++
			})
		}
	}
	for n := range kafkaKills + 1 {
		send()
		drain(sent - each/2) // in the middle
		if n < kafkaKills {
			y.killCoordinator(t, ofTransaction, copierID(k))
		}
	}
	drain(sent)
	close(stop)
	testkit.Must(t, <-copied)
	y.one().readInOrderOverAMQP(t, ctx, "source-copy", next)
	y.stop(t)
	t.Logf("proved: %d records copied in transactions over %d kills, each of them once and in order, also over AMQP", sent, kafkaKills)
}

// copyUntil copies, and aborts now and then, until it is to stop.
func copyUntil(ctx context.Context, stop <-chan struct{}, k kafkaTask) error {
	c, err := newKafkaCopier(k)
	for err == nil {
		select {
		case <-stop:
			c.session.Close()
			return nil
		default:
			_, err = c.step(ctx, rand.IntN(3) > 0)
		}
	}
	return err
}

// readInOrderOverAMQP reads a hub from the beginning, and finds in each partition the numbers below its want, in order, and
// behind them an event that is sent to it first: so all has come by then, and nothing that does not count.
func (y *yard) readInOrderOverAMQP(t *testing.T, ctx context.Context, hub string, want []int) {
	t.Helper()
	p := testkit.Value(dialPeer(ctx, y.hostPort(t, "amqp")))(t)
	defer p.close()
	const last = "last"
	for partition := range want {
		sender := testkit.Value(p.sender(ctx, fmt.Sprintf("%s/Partitions/%d", hub, partition)))(t)
		testkit.Must(t, sender.Send(ctx, amqp.NewMessage([]byte(last)), nil))
	}
	came := testkit.Value(p.receiveAll(ctx, hub))(t)
	next := make([]int, len(want))
	for ended := 0; ended < len(want); {
		select {
		case e := <-came:
			testkit.MustThat(t, e.err == nil, "partition %d over AMQP: %v", e.partition, e.err)
			if e.value == last {
				testkit.MustEqual(t, next[e.partition], want[e.partition], "how many records came over AMQP of partition %d", e.partition)
				ended++
				continue
			}
			testkit.MustEqual(t, e.value, fmt.Sprint(next[e.partition]), "the next record over AMQP of partition %d", e.partition)
			next[e.partition]++
		case <-ctx.Done():
			t.Fatalf("of %v records %v came over AMQP", want, next)
		}
	}
}
