package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	// partitions is how many the hub of a load has.
	partitions = 4
	// senders of each kind; sender i begins at node i and goes on to the next after an error.
	senders = 4
	// tryTime is how long one attempt may take: longer than a server needs to lead again.
	tryTime = 20 * time.Second
	// answerTime is how long an attempt may take that is to hear why it fails: a node has an answer after 20 s at most,
	// to a link and then to what is sent over it, and the machine may be busy.
	answerTime = 45 * time.Second
	// pause keeps the load such that what was sent can be read in a few seconds, and all processes
	// have a share of the machine.
	pause = 20 * time.Millisecond
)

// load is senders at work on a hub of their own, until stop was called.
type load struct {
	yard    *yard
	hub     string
	records []*record
	progress
	refused errorList // of senders: what the official client gives up after
	heard   refusals  // of senders that do not leave retrying to it
	tally             // what became of it, once it has ended
	cancel  context.CancelFunc
	all     sync.WaitGroup
}

// progress is how the load gets on, while it runs.
type progress struct {
	mu      sync.Mutex
	batches int
	last    time.Time     // of the newest acknowledgement
	longest time.Duration // without one
}

func (p *progress) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.batches++; !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
}

// begin has no pause be counted before the next acknowledgement.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Time{}
}

// count is how many batches and single events were acknowledged.
func (p *progress) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.batches
}

// pausedFor is the longest time without an acknowledgement since the last call.
func (p *progress) pausedFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := p.longest
	p.longest = 0
	return longest
}

// run makes a hub and starts senders to it by the official client, and idempotent producers.
func (y *yard) run(t testing.TB, hub string) *load {
	t.Helper()
	y.createHub(t, hub, partitions)
	manage(t, "create the group", func(ctx context.Context) error {
		return testkit.Err(y.nodes[0].admin(t).CreateGroup(ctx, hub, severedGroup))
	})
	running, cancel := context.WithCancel(t.Context())
	l := &load{yard: y, hub: hub, cancel: cancel}
	for i := range senders {
		official := &record{name: fmt.Sprintf("official%d", i), partition: i % partitions}
		numbered := &record{name: fmt.Sprintf("numbered%d", i), partition: i % partitions, once: true}
		l.records = append(l.records, official, numbered)
		l.all.Go(func() { l.sendBatches(t.Context(), running, official, i) })
		l.all.Go(func() { l.sendNumbered(t.Context(), running, numbered, i) })
	}
	for i := range size {
		patient := &record{name: fmt.Sprintf("patient%d", i), partition: i % partitions}
		l.records = append(l.records, patient)
		l.all.Go(func() { l.sendPatiently(t.Context(), running, patient, y.nodes[i]) })
	}
	t.Cleanup(l.stop)
	return l
}

// stop ends the senders. What they have under way ends by itself, unless the test has failed: it would
// come to light at any later time otherwise.
func (l *load) stop() {
	l.cancel()
	l.all.Wait()
}

// goesOn waits until senders get on.
func (l *load) goesOn(t testing.TB, when string) {
	t.Helper()
	before := l.count()
	eventually(t, "nothing is acknowledged any more "+when, func() bool { return l.count() > before+2*senders })
}

// end stops the senders, unless they were, and judges what is there.
func (l *load) end(t testing.TB) {
	t.Helper()
	l.stop()
	readings := l.read(t)
	for _, complaint := range judge(l.records, readings) {
		t.Error(complaint)
	}
	l.tally = tallyOf(l.records, readings)
	t.Logf("load: %d events are there, of which %d of idempotent producers; %d were sent again, and %d are there more than once; senders were told: %v", l.stored, l.numbered, l.resent, l.twice, l.heard.counts())
	for _, err := range l.refused.list() {
		t.Error(err)
	}
}

// acknowledged is how many events were, over all; call it when the load was stopped.
func (l *load) acknowledged() (n int) {
	for _, r := range l.records {
		for _, s := range r.sent {
			if s.acknowledged {
				n++
			}
		}
	}
	return n
}

// text is the body of a sender's event.
func (r *record) text(number int) string { return r.name + " " + strconv.Itoa(number) }

// sendBatches sends batches of one to five events by the official client. A batch that was refused, or
// of which nothing was heard, is sent again before the next one.
func (l *load) sendBatches(ctx, running context.Context, r *record, at int) {
	for ; running.Err() == nil; at++ {
		client, err := azeventhubs.NewProducerClientFromConnectionString(l.yard.nodes[at%size].connection(), l.hub,
			&azeventhubs.ProducerClientOptions{RetryOptions: azeventhubs.RetryOptions{MaxRetries: -1}})
		if err != nil {
			l.refused.add(err) // it has not dialled yet
			return
		}
		for running.Err() == nil {
			begun := time.Now()
			if err := r.sendBatch(ctx, client); err != nil {
				if err := l.heard.add(begun, err, refusalOf); err != nil {
					l.refused.add(fmt.Errorf("%s: %w", r.name, err))
				}
				break
			}
			l.note()
			idle(running, pause)
		}
		closing, cancel := context.WithTimeout(ctx, time.Second)
		_ = client.Close(closing) // of one that has failed nothing more is expected
		cancel()
		idle(running, pause)
	}
}

// sendBatch sends what was not acknowledged yet, or the next batch.
func (r *record) sendBatch(ctx context.Context, client *azeventhubs.ProducerClient) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	first := len(r.sent)
	for first > 0 && !r.sent[first-1].acknowledged {
		first--
	}
	if first == len(r.sent) {
		r.sent = append(r.sent, make([]sent, 1+first%5)...)
	}
	partition := strconv.Itoa(r.partition)
	batch, err := client.NewEventDataBatch(ctx, &azeventhubs.EventDataBatchOptions{PartitionID: &partition})
	if err != nil {
		return err
	}
	for i := first; i < len(r.sent); i++ {
		if err := batch.AddEventData(&azeventhubs.EventData{Body: []byte(r.text(i))}, nil); err != nil {
			return err
		}
	}
	for i := first; i < len(r.sent); i++ {
		r.sent[i].attempts++
	}
	if err := client.SendEventDataBatch(ctx, batch, nil); err != nil {
		return err
	}
	for i := first; i < len(r.sent); i++ {
		r.sent[i].acknowledged = true
	}
	return nil
}

// sendPatiently sends single events through one node by the official client, which tries again by
// itself: the application is to see no error, whatever happens.
func (l *load) sendPatiently(ctx, running context.Context, r *record, n *node) {
	client, err := azeventhubs.NewProducerClientFromConnectionString(n.connection(), l.hub, &azeventhubs.ProducerClientOptions{
		RetryOptions: azeventhubs.RetryOptions{MaxRetries: 1000, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: time.Second}})
	if err != nil {
		l.refused.add(err)
		return
	}
	defer client.Close(ctx) // nothing more is expected of it
	for running.Err() == nil {
		number := len(r.sent)
		r.sent = append(r.sent, sent{attempts: math.MaxInt}) // the client does not say how often it tries
		if err := sendOne(ctx, client, r.partition, r.text(number)); err != nil {
			l.refused.add(fmt.Errorf("%s: the official client gave up: %w", r.name, err))
			return
		}
		r.sent[number].acknowledged = true
		l.note()
		idle(running, 5*pause)
	}
}

func sendOne(ctx context.Context, client *azeventhubs.ProducerClient, partition int, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id := strconv.Itoa(partition)
	batch, err := client.NewEventDataBatch(ctx, &azeventhubs.EventDataBatchOptions{PartitionID: &id})
	if err == nil {
		err = batch.AddEventData(&azeventhubs.EventData{Body: []byte(text)}, nil)
	}
	if err != nil {
		return err
	}
	return client.SendEventDataBatch(ctx, batch, nil)
}

// errorList collects errors of several goroutines.
type errorList struct {
	mu  sync.Mutex
	all []error
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, err)
}

func (l *errorList) list() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// sendNumbered sends single events of an idempotent producer, each until it is acknowledged.
func (l *load) sendNumbered(ctx, running context.Context, r *record, at int) {
	for ; running.Err() == nil; at++ {
		dialing, cancel := context.WithTimeout(ctx, tryTime)
		client, err := hub.Dial(dialing, l.yard.nodes[at%size].connection(), hub.Config{Retry: hub.Retry{Attempts: 1}, Log: testkit.Quiet()})
		cancel()
		if err != nil {
			idle(running, pause)
			continue
		}
		producer := client.Hub(l.hub).Producer(hub.ProducerConfig{Partition: strconv.Itoa(r.partition), ID: int64(1000 + r.partition)})
		for running.Err() == nil && r.sendNumber(ctx, producer) == nil {
			l.note()
			idle(running, pause)
		}
		_ = client.Close() // of one that has failed nothing more is expected
		idle(running, pause)
	}
}

func (r *record) sendNumber(ctx context.Context, producer *hub.Producer) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	number := len(r.sent) - 1
	if number < 0 || r.sent[number].acknowledged {
		number++
		r.sent = append(r.sent, sent{})
	}
	r.sent[number].attempts++
	err := producer.Send(ctx, int32(number), event.Text(r.text(number)))
	r.sent[number].acknowledged = err == nil
	return err
}

// read gives what each node has of each partition, from the first event to the last that any node has
// when it begins. What is stored later, of an attempt whose sender has given up, is not in any reading.
func (l *load) read(t testing.TB) (all []reading) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var hubs [size]*hub.Hub
	ends := slices.Repeat([]int64{-1}, partitions)
	for i, n := range l.yard.nodes {
		client := testkit.Value(hub.Dial(ctx, n.connection(), hub.Config{Log: testkit.Quiet()}))(t)
		defer client.Close()
		hubs[i] = client.Hub(l.hub)
		for p := range partitions {
			info := testkit.Value(hubs[i].Partition(ctx, strconv.Itoa(p)))(t)
			ends[p] = max(ends[p], info.Last)
		}
	}
	for i, n := range l.yard.nodes {
		for p, end := range ends {
			events, err := readAll(ctx, hubs[i], strconv.Itoa(p), end)
			testkit.Must(t, err, "read partition %d up to number %d through %s", p, end, n.name)
			all = append(all, reading{node: n.name, partition: p, events: events})
		}
	}
	return all
}

func readAll(ctx context.Context, from *hub.Hub, partition string, end int64) (events []stored, err error) {
	if end < 0 {
		return nil, nil
	}
	for ev, err := range from.Read(ctx, hub.ReadConfig{Partition: partition}) {
		if err != nil {
			return nil, err
		}
		sender, number, _ := strings.Cut(string(ev.Body), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		events = append(events, stored{Sequence: ev.Sequence, Enqueued: ev.Enqueued.UnixMilli(), Sender: sender, Number: n})
		if ev.Sequence >= end {
			break
		}
	}
	return events, nil
}
