//go:build linux

package interop

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

// kafkaTransactions are clients that write in transactions: some they commit, some they abort, and they copy a hub
// with its offsets.
var kafkaTransactions = []kafkaClient{
	{"franz-go", "", playFranzTransactions},
	{"java-4.3.1", "", func(t *testing.T, k kafkaTask) { playJavaTransactions(t, k, "4.3.1") }},
	{"java-3.9.1", "", func(t *testing.T, k kafkaTask) { playJavaTransactions(t, k, "3.9.1") }},
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
	came := make(chan string)
	for partition := range kafkaPartitions {
		receiver := testkit.Value(p.receiver(ctx, hub, partition, noEpoch, 100))(t)
		go func() {
			for {
				m, err := receiver.Receive(ctx, nil)
				if err != nil {
					return
				}
				_ = receiver.AcceptMessage(ctx, m)
				select {
				case came <- string(m.GetData()):
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for missing := committedValues(); len(missing) > 0; {
		select {
		case value := <-came:
			testkit.MustThat(t, missing[value], "%q came that does not count, or came twice", value)
			delete(missing, value)
		case <-ctx.Done():
			t.Fatalf("%d records did not come over AMQP", len(missing))
		}
	}
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
	c := newKafkaCopier(t, k)
	for copied := 0; copied < len(committedValues()); {
		copied += c.step(t, ctx, rand.IntN(4) > 0)
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

// kafkaCopier copies a hub to another, partition by partition, with its offsets.
type kafkaCopier struct {
	k       kafkaTask
	session *kgo.GroupTransactSession
}

func newKafkaCopier(t *testing.T, k kafkaTask) *kafkaCopier {
	t.Helper()
	c := &kafkaCopier{k: k}
	c.open(t)
	return c
}

func (c *kafkaCopier) open(t *testing.T) {
	t.Helper()
	c.session = testkit.Value(kgo.NewGroupTransactSession(kgo.SeedBrokers(c.k.address), kgo.TransactionalID(c.k.hub+"-copier"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumerGroup(c.k.group()), kgo.ConsumeTopics(c.k.hub), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(100*time.Millisecond), soon))(t)
}

// step copies what there is in one transaction, and gives how many records that were: none where it was not committed.
func (c *kafkaCopier) step(t *testing.T, ctx context.Context, commit bool) (copied int) {
	t.Helper()
	polling, done := context.WithTimeout(ctx, time.Second)
	fetches := c.session.PollFetches(polling)
	done()
	if fetches.NumRecords() == 0 {
		return 0
	}
	if err := c.session.Begin(); err != nil {
		c.again(t)
		return 0
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
		t.Fatal(err)
	}
	committed, err := c.session.End(ctx, kgo.TransactionEndTry(commit && failed == nil))
	if err != nil {
		c.again(t)
		return 0
	}
	if !committed {
		return 0
	}
	return copied
}

// again begins anew, as a program does that was told that its producer is over.
func (c *kafkaCopier) again(t *testing.T) {
	t.Helper()
	c.session.Close()
	c.open(t)
}

func playJavaTransactions(t *testing.T, k kafkaTask, version string) {
	t.Helper()
	cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(kafkaJava(t, version), "lib", "*"), filepath.Join("testdata", "kafka", "Transactions.java"))
	env := map[string]string{"YARD_TRANSACTIONS": fmt.Sprint(kafkaTransactionCount), "YARD_SIZE": fmt.Sprint(kafkaTransactionSize)}
	maps.Copy(env, k.environment())
	cmd.Env = environment(env)
	script(t, cmd, kafkaTime)
}

// TestKafkaTransactionKill kills the yard again and again while a hub is copied in transactions, some of which are
// aborted. In the end each record that counts is in the copy once, in its order, for readers of what is committed by
// Kafka and over AMQP. // K3
func TestKafkaTransactionKill(t *testing.T) {
	onOneMachine(t, "it kills one process")
	t.Parallel()
	l := layout{kafka: true, build: checkedBuild, hubs: map[string]int{"source": kafkaPartitions, "source-copy": kafkaPartitions}}
	listeners, data := l.listeners(), "data: "+t.TempDir()
	listeners["kafka"] = "127.0.0.1:" + ownPort(t)
	start := func() *yard {
		y := l.launch(t, data, listeners)
		y.await(t)
		return y
	}
	y := start()
	k := kafkaTask{address: listeners["kafka"], hub: "source"}
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
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
	copying := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(copying)
		c := newKafkaCopier(t, k)
		defer func() { c.session.Close() }()
		for {
			select {
			case <-stop:
				return
			default:
				c.step(t, ctx, rand.IntN(3) > 0)
			}
		}
	}()
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
			y.kill()
			y = start()
		}
	}
	drain(sent)
	close(stop)
	<-copying
	y.stop(t)
	t.Logf("proved: %d records copied in transactions over %d kills, each of them once and in order", sent, kafkaKills)
}
