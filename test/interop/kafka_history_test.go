//go:build linux

package interop

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	historyHub = "history"
	// historyProducers are so many that send by themselves, and as many that send in transactions.
	historyProducers = 2
	historyKills     = 3
	// historyBetween is how many batches each producer is through with between one kill and the next.
	historyBetween = 50
	// historyInFlight is how many batches a producer sends before it hears of the first: five to each partition, as many as
	// franz-go has under way there.
	historyInFlight = 5 * kafkaPartitions
	// historyAhead is how many batches a producer that sends by itself may be ahead of one of transactions.
	historyAhead = 10 * historyInFlight
	historyLast  = "last"
)

// TestKafkaHistory has idempotent and transactional producers work through a proxy that breaks every connection after a
// while, holds answers back, and so has requests repeated, repeats some by itself, and kills the yard in between, or one of its nodes. What they
// were told, and what is there in the end for readers of what is committed, by Kafka and over AMQP, have to agree: nothing lost, twice, out of
// order, or of a transaction that was aborted. Readers of both kinds that were there all the time were given the same. // K3
func TestKafkaHistory(t *testing.T) {
	t.Parallel()
	seeds := 1
	if *full {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) { playHistory(t, uint64(seed)) })
	}
}

func playHistory(t *testing.T, seed uint64) {
	var proxies []*stormProxy // one for each node, to which its clients are led again
	y := startKafkaYard(t, layout{hubs: map[string]int{historyHub: kafkaPartitions}}, func(i int, at string) string {
		proxies = append(proxies, newStormProxy(t, at, seed+uint64(i)<<32))
		return proxies[i].address()
	})
	ctx, cancel := context.WithTimeout(t.Context(), y.patience())
	defer cancel()
	k := kafkaTask{address: y.address(), hub: historyHub}
	h := &kafkaHistory{grown: make(chan struct{}, 1), through: map[string]int{}}
	live := startHistoryReaders(t, ctx, k, y.one().hostPort(t, "amqp"))
	working, stop := context.WithCancel(ctx)
	var producers sync.WaitGroup
	for n := range historyProducers {
		pace := make(chan struct{}, historyAhead) // else they send a hundred times as much
		producers.Go(func() { h.end(h.send(working, ctx, k, fmt.Sprint("single", n), pace)) })
		random := rand.New(rand.NewPCG(seed, uint64(n)+1))
		producers.Go(func() { h.end(h.transact(working, ctx, k, fmt.Sprint("group", n), random, pace)) })
	}
	for n := range historyKills + 1 {
		h.awaitMore(t, ctx)
		if n < historyKills {
			y.kill(t)
			live.lead(y.one().hostPort(t, "amqp"))
		}
	}
	stop()
	producers.Wait()
	testkit.Must(t, h.failed, "a producer")
	broken, repeated := int64(0), int64(0)
	for _, proxy := range proxies {
		proxy.calm.Store(true)
		broken += proxy.broken.Load()
		repeated += proxy.repeated.Load()
	}
	testkit.That(t, repeated > 0, "the proxy has repeated nothing")

	y.one().sendLast(t, ctx)
	byKafka, byAMQP := testkit.Value(readUntilLast(ctx, k.historyReader(t)))(t), y.one().readUntilLast(t, ctx)
	live.wait(t)
	for p := range byKafka {
		testkit.Slices(t, byAMQP[p], byKafka[p], "what is read over AMQP of partition %d, and by Kafka", p)
		testkit.Slices(t, live.byKafka[p], byKafka[p], "what was read by Kafka of partition %d as it came, and later", p)
		testkit.Slices(t, live.byAMQP[p], byKafka[p], "what was read over AMQP of partition %d as it came, and by Kafka later", p)
	}
	h.check(t, byKafka)
	y.stop(t)
	t.Logf("proved: over %d kills, %d broken connections and %d repeated requests %s", historyKills, broken, repeated, h)
}

// kafkaHistory is what producers were told.
type kafkaHistory struct {
	grown chan struct{}

	mu      sync.Mutex
	batches []historyBatch // guarded by mu
	through map[string]int // by producer, how many batches it is through with; guarded by mu
	failed  error          // guarded by mu; why a producer ended early
}

// historyBatch is records that a producer sent to a partition, alone or in a transaction, and what it knows of them.
type historyBatch struct {
	producer  string
	number    int
	partition int
	outcome   outcome
}

type outcome int

const (
	acknowledged outcome = iota // acknowledged, and committed if it is in a transaction
	aborted                     // its transaction was
	uncertain                   // its transaction was committed as a whole, or not at all
)

// historySize is how many records are in a batch.
const historySize = 3

func (b historyBatch) values() (all []string) {
	for i := range historySize {
		all = append(all, fmt.Sprintf("%s %d %d", b.producer, b.number, i))
	}
	return all
}

func (b historyBatch) records() (all []*kgo.Record) {
	for _, value := range b.values() {
		all = append(all, &kgo.Record{Partition: int32(b.partition), Value: []byte(value)})
	}
	return all
}

func (h *kafkaHistory) add(batches ...historyBatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batches = append(h.batches, batches...)
	for _, b := range batches {
		h.through[b.producer]++
	}
	h.grewLocked()
}

func (h *kafkaHistory) grewLocked() {
	select {
	case h.grown <- struct{}{}:
	default:
	}
}

// end notes why a producer has ended.
func (h *kafkaHistory) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && h.failed == nil {
		h.failed = err
	}
	h.grewLocked()
}

// awaitMore waits until each producer is through with so many batches more as are wanted between kills.
func (h *kafkaHistory) awaitMore(t *testing.T, ctx context.Context) {
	t.Helper()
	before, _ := h.counts()
	for {
		counts, failed := h.counts()
		testkit.Must(t, failed, "a producer")
		least := historyBetween
		for name, count := range counts {
			least = min(least, count-before[name])
		}
		if len(counts) == 2*historyProducers && least == historyBetween {
			return
		}
		select {
		case <-h.grown:
		case <-ctx.Done():
			t.Fatalf("producers are through with %v batches, and were with %v; each should be with %d more", counts, before, historyBetween)
		}
	}
}

// counts is how many batches each producer is through with, and why one ended early.
func (h *kafkaHistory) counts() (map[string]int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.through), h.failed
}

// client makes one of a producer, which goes on trying whatever happens.
func (historyBatch) client(k kafkaTask, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(k.addresses()...), kgo.DefaultProduceTopic(k.hub), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AlwaysRetryEOF(), kgo.MetadataMinAge(50*time.Millisecond), soon)...)
}

// send sends batches, some at a time and to each partition in turn, until it is to stop. Each is acknowledged in the end.
func (h *kafkaHistory) send(working, ctx context.Context, k kafkaTask, name string, pace <-chan struct{}) error {
	client, err := historyBatch{}.client(k, kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer client.Close()
	room, failed := make(chan struct{}, historyInFlight), make(chan error, 1)
	for n := 0; ; n++ {
		select {
		case <-pace:
		case <-working.Done():
			return h.flush(ctx, client, name, failed)
		}
		select {
		case room <- struct{}{}:
		case err := <-failed:
			return err
		}
		b := historyBatch{producer: name, number: n, partition: n % kafkaPartitions}
		var left atomic.Int32
		left.Store(historySize)
		for _, r := range b.records() {
			client.Produce(ctx, r, func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- fmt.Errorf("%s sends %d: %w", name, n, err):
					default:
					}
					return
				}
				if left.Add(-1) == 0 {
					h.add(b)
					<-room
				}
			})
		}
	}
}

// flush waits for what a producer has under way.
func (*kafkaHistory) flush(ctx context.Context, client *kgo.Client, name string, failed <-chan error) error {
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("%s waits for its last batches: %w", name, err)
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// transact sends transactions, each of a batch to two partitions, and commits most of them. One of which it is not told how
// it has ended is uncertain: it begins anew then, as a program does, which ends what went on.
func (h *kafkaHistory) transact(working, ctx context.Context, k kafkaTask, name string, random *rand.Rand, pace chan<- struct{}) (err error) {
	var client *kgo.Client
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for n := 0; working.Err() == nil; n++ {
		if client == nil {
			if client, err = (historyBatch{}).client(k, kgo.TransactionalID(name), kgo.TransactionTimeout(time.Minute)); err != nil {
				return err
			}
		}
		first := random.IntN(kafkaPartitions)
		batches := []historyBatch{
			{producer: name, number: n, partition: first}, {producer: name, number: n, partition: (first + 1) % kafkaPartitions},
		}
		commit := random.IntN(3) > 0
		ended, err := transactOnce(ctx, client, batches, commit)
		if ctx.Err() != nil {
			return fmt.Errorf("%s in its transaction %d: %w", name, n, err)
		}
		if err != nil {
			client.Close()
			client = nil
		}
		for i := range batches {
			batches[i].outcome = ended
		}
		h.add(batches...)
		for range historyInFlight {
			select {
			case pace <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

// transactOnce is one transaction: how it has ended, and an error if the client is of no more use.
func transactOnce(ctx context.Context, client *kgo.Client, batches []historyBatch, commit bool) (outcome, error) {
	if err := client.BeginTransaction(); err != nil {
		return aborted, fmt.Errorf("begin: %w", err)
	}
	for _, b := range batches {
		if err := client.ProduceSync(ctx, b.records()...).FirstErr(); err != nil {
			return aborted, fmt.Errorf("send: %w", err) // whoever comes next under the id aborts it
		}
	}
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		if !commit {
			return aborted, fmt.Errorf("abort: %w", err)
		}
		return uncertain, fmt.Errorf("commit: %w", err)
	}
	if commit {
		return acknowledged, nil
	}
	return aborted, nil
}

// check holds what is there, by partition, against what producers were told.
func (h *kafkaHistory) check(t *testing.T, there [][]string) {
	t.Helper()
	at := map[string]map[int]int{} // of each value, where it is in which partition
	for p, values := range there {
		for i, value := range values {
			if at[value] == nil {
				at[value] = map[int]int{}
			}
			before, twice := at[value][p]
			testkit.That(t, !twice, "%q is in partition %d twice, at %d and %d", value, p, before, i)
			at[value][p] = i
		}
	}
	type lane struct {
		producer  string
		partition int
	}
	behind := map[lane]int{}           // where a producer's last record is in a partition
	whole := map[string]map[bool]int{} // of each uncertain transaction, how many records are there, and how many are not
	known := 0
	slices.SortStableFunc(h.batches, func(a, b historyBatch) int { return cmp.Compare(a.number, b.number) }) // not as they were acknowledged
	for _, b := range h.batches {
		for _, value := range b.values() {
			i, found := at[value][b.partition]
			switch {
			case b.outcome == acknowledged && !found:
				t.Errorf("%q is lost: it is not in partition %d", value, b.partition)
			case b.outcome == aborted && found:
				t.Errorf("%q is in partition %d, and its transaction was aborted", value, b.partition)
			case b.outcome == uncertain:
				name := fmt.Sprint(b.producer, " ", b.number)
				if whole[name] == nil {
					whole[name] = map[bool]int{}
				}
				whole[name][found]++
			}
			if !found {
				continue
			}
			known++
			l := lane{b.producer, b.partition}
			testkit.That(t, i >= behind[l], "%q is in partition %d at %d, behind later ones of its producer", value, b.partition, i)
			behind[l] = i + 1
		}
	}
	for name, count := range whole {
		testkit.That(t, count[true] == 0 || count[false] == 0, "of the transaction %q, of which its producer does not know how it ended, %d records are there, and %d are not", name, count[true], count[false])
	}
	all := 0
	for _, values := range there {
		all += len(values)
	}
	testkit.Equal(t, all, known, "records that are there, and that were sent")
}

func (h *kafkaHistory) String() string {
	var by [3]int
	for _, b := range h.batches {
		by[b.outcome]++
	}
	return fmt.Sprintf("%d batches were acknowledged and are there once and in order, %d aborted, %d uncertain and there as a whole or not at all", by[acknowledged], by[aborted], by[uncertain])
}

// sendLast sends an event to each partition, with which readers know that they have everything.
func (y *yard) sendLast(t *testing.T, ctx context.Context) {
	t.Helper()
	p := testkit.Value(dialPeer(ctx, y.hostPort(t, "amqp")))(t)
	defer p.close()
	for partition := range kafkaPartitions {
		sender := testkit.Value(p.sender(ctx, fmt.Sprintf("%s/Partitions/%d", historyHub, partition)))(t)
		testkit.Must(t, sender.Send(ctx, amqp.NewMessage([]byte(historyLast)), nil))
	}
}

// historyReader reads what is committed from the beginning.
func (k kafkaTask) historyReader(t *testing.T) *kgo.Client {
	t.Helper()
	return k.franz(t, k.fromTheBeginning(), kgo.FetchIsolationLevel(kgo.ReadCommitted()), soon)
}

// readUntilLast is what a reader is given by Kafka, by partition.
func readUntilLast(ctx context.Context, reader *kgo.Client) ([][]string, error) {
	all := make([][]string, kafkaPartitions)
	for ended := 0; ended < kafkaPartitions; {
		fetches := reader.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return all, fmt.Errorf("%d partitions were read to their end: %w", ended, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) == historyLast {
				ended++
				return
			}
			all[r.Partition] = append(all[r.Partition], string(r.Value))
		})
	}
	return all, nil
}

// readUntilLast is what receivers are given over AMQP, by partition.
func (y *yard) readUntilLast(t *testing.T, ctx context.Context) [][]string {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := testkit.Value(dialPeer(ctx, y.hostPort(t, "amqp")))(t)
	defer p.close()
	all := make([][]string, kafkaPartitions)
	came := testkit.Value(p.receiveAll(ctx, historyHub))(t)
	for ended := 0; ended < kafkaPartitions; {
		select {
		case e := <-came:
			testkit.MustThat(t, e.err == nil, "partition %d over AMQP: %v", e.partition, e.err)
			if e.value == historyLast {
				ended++
				continue
			}
			all[e.partition] = append(all[e.partition], e.value)
		case <-ctx.Done():
			t.Fatalf("%d partitions were read to their end over AMQP", ended)
		}
	}
	return all
}
