package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The official Go client, as it is, over connections in memory.

func connectionString(policy string) string {
	return auth.ConnectionString{Endpoint: "sb://localhost/", Policy: policy, Key: keyOf(policy), Hub: "orders", Emulator: true}.String()
}

// azureDial stands in for the client's own dialling.
func (y *yard) azureDial(ctx context.Context, _ azeventhubs.WebSocketConnParams) (net.Conn, error) {
	return y.listener.Dial(ctx)
}

var noRetries = azeventhubs.RetryOptions{MaxRetries: -1}

func (y *yard) producer(policy string) *azeventhubs.ProducerClient {
	y.t.Helper()
	p, err := azeventhubs.NewProducerClientFromConnectionString(connectionString(policy), "", &azeventhubs.ProducerClientOptions{
		NewWebSocketConn: y.azureDial, RetryOptions: noRetries,
	})
	testkit.Must(y.t, err)
	y.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func (y *yard) consumer(policy, instance string) *azeventhubs.ConsumerClient {
	y.t.Helper()
	c, err := azeventhubs.NewConsumerClientFromConnectionString(connectionString(policy), "", azeventhubs.DefaultConsumerGroup, &azeventhubs.ConsumerClientOptions{
		NewWebSocketConn: y.azureDial, RetryOptions: noRetries, InstanceID: instance,
	})
	testkit.Must(y.t, err)
	y.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (y *yard) partition(c *azeventhubs.ConsumerClient, id string, opts *azeventhubs.PartitionClientOptions) *azeventhubs.PartitionClient {
	y.t.Helper()
	p := testkit.Value(c.NewPartitionClient(id, opts))(y.t)
	y.t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func sendBatch(t testing.TB, p *azeventhubs.ProducerClient, opts *azeventhubs.EventDataBatchOptions, events ...*azeventhubs.EventData) {
	t.Helper()
	b := testkit.Value(p.NewEventDataBatch(t.Context(), opts))(t)
	for _, e := range events {
		testkit.Must(t, b.AddEventData(e, nil))
	}
	testkit.Must(t, p.SendEventDataBatch(t.Context(), b, nil))
}

func ptr[T any](v T) *T { return &v }

var fromTheStart = &azeventhubs.PartitionClientOptions{StartPosition: azeventhubs.StartPosition{Earliest: ptr(true)}}

// receiveAll reads so many events.
func receiveAll(t testing.TB, p *azeventhubs.PartitionClient, n int) []*azeventhubs.ReceivedEventData {
	t.Helper()
	var all []*azeventhubs.ReceivedEventData
	for len(all) < n {
		events := testkit.Value(p.ReceiveEvents(t.Context(), n-len(all), nil))(t)
		all = append(all, events...)
	}
	return all
}

// H2, H3, H8: the official client publishes in all its ways and gets back what it sent.
func TestAzurePublishAndConsume(t *testing.T) {
	y := newOrders(t, 4)
	p, c := y.producer(auth.RootPolicy), y.consumer(auth.RootPolicy, "")
	e := &azeventhubs.EventData{
		Body: []byte("body"), ContentType: ptr("text/plain"), CorrelationID: "corr", MessageID: ptr("id"),
		Properties: map[string]any{"a": int64(1), "b": "two", "c": true},
	}
	sendBatch(t, p, &azeventhubs.EventDataBatchOptions{PartitionID: ptr("1")}, e, &azeventhubs.EventData{Body: []byte("second")})
	sendBatch(t, p, &azeventhubs.EventDataBatchOptions{PartitionKey: ptr("device-2")}, e)

	got := receiveAll(t, y.partition(c, "1", fromTheStart), 2)
	testkit.Diff(t, *e, got[0].EventData)
	if got[0].SequenceNumber != 0 || got[1].SequenceNumber != 1 || got[1].Offset != "1" || got[0].PartitionKey != nil || string(got[1].Body) != "second" {
		t.Errorf("events are %+v, %+v", got[0], got[1])
	}
	at := strconv.Itoa(broker.PartitionForKey("device-2", 4))
	keyed := receiveAll(t, y.partition(c, at, fromTheStart), 1)[0]
	if keyed.PartitionKey == nil || *keyed.PartitionKey != "device-2" {
		t.Errorf("event is %+v", keyed)
	}
	// More than the credit of one go, in order, and beyond it (a client that does not
	// settle would stop after 300).
	const many = 1500
	for i := range many / 100 {
		events := make([]*azeventhubs.EventData, 100)
		for n := range events {
			events[n] = &azeventhubs.EventData{Body: []byte(strconv.Itoa(100*i + n))}
		}
		sendBatch(t, p, &azeventhubs.EventDataBatchOptions{PartitionID: ptr("3")}, events...)
	}
	for i, e := range receiveAll(t, y.partition(c, "3", fromTheStart), many) {
		testkit.MustEqual(t, string(e.Body), strconv.Itoa(i), "event %s came where %d was expected", e.Body, i)
	}
}

// H4: the client's start positions.
func TestAzureStartPositions(t *testing.T) {
	y := newOrders(t, 1)
	y.store("orders", "0", "a", "b", "c")
	c := y.consumer(auth.RootPolicy, "")
	for what, tt := range map[string]struct {
		at   azeventhubs.StartPosition
		want string
	}{
		"earliest":            {azeventhubs.StartPosition{Earliest: ptr(true)}, "a"},
		"after an offset":     {azeventhubs.StartPosition{Offset: ptr("0")}, "b"},
		"at an offset":        {azeventhubs.StartPosition{Offset: ptr("2"), Inclusive: true}, "c"},
		"after a number":      {azeventhubs.StartPosition{SequenceNumber: ptr(int64(1))}, "c"},
		"at a number":         {azeventhubs.StartPosition{SequenceNumber: ptr(int64(1)), Inclusive: true}, "b"},
		"after the year one":  {azeventhubs.StartPosition{EnqueuedTime: ptr(time.Time{})}, "a"},
		"after the number -1": {azeventhubs.StartPosition{SequenceNumber: ptr(int64(-1))}, "a"},
	} {
		t.Run(what, func(t *testing.T) {
			p := y.in(t).partition(c, "0", &azeventhubs.PartitionClientOptions{StartPosition: tt.at})
			testkit.Equal(t, string(receiveAll(t, p, 1)[0].Body), tt.want, "it reads")
			testkit.Must(t, p.Close(t.Context()))
		})
	}
}

// H10: properties, before the first event and after; the same for both kinds of client.
func TestAzureProperties(t *testing.T) {
	y := newOrders(t, 2)
	hub := testkit.Value(y.broker.Hub("orders"))(t)
	p, c := y.producer(auth.RootPolicy), y.consumer(auth.RootPolicy, "")
	props := testkit.Value(p.GetEventHubProperties(t.Context(), nil))(t)
	testkit.Diff(t, azeventhubs.EventHubProperties{CreatedOn: hub.Created, Name: "orders", PartitionIDs: []string{"0", "1"}}, props)
	empty, err := c.GetPartitionProperties(t.Context(), "1", nil)
	testkit.Must(t, err)
	testkit.Diff(t, azeventhubs.PartitionProperties{
		BeginningSequenceNumber: -1, EventHubName: "orders", IsEmpty: true, LastEnqueuedOffset: "-1", LastEnqueuedSequenceNumber: -1, PartitionID: "1",
		LastEnqueuedOn: yearOne,
	}, empty)
	y.store("orders", "1", "a", "b")
	fromProducer, err := p.GetPartitionProperties(t.Context(), "1", nil)
	testkit.Must(t, err)
	fromConsumer, err := c.GetPartitionProperties(t.Context(), "1", nil)
	testkit.Must(t, err)
	if diff := cmp.Diff(fromProducer, fromConsumer); diff != "" || fromConsumer.LastEnqueuedSequenceNumber != 1 || fromConsumer.IsEmpty {
		t.Errorf("properties are %+v\n%s", fromConsumer, diff)
	}
	_, err = c.GetPartitionProperties(t.Context(), "2", nil)
	if err == nil || !strings.Contains(err.Error(), "It should be between 0 and 1.") {
		t.Errorf("a partition that is not there is %v", err)
	}
}

// H5: the client knows that its partition was taken, and why it was not let in.
func TestAzureOwnership(t *testing.T) {
	y := newOrders(t, 1)
	y.store("orders", "0", "a")
	first := y.consumer(auth.RootPolicy, "")
	owner := y.partition(first, "0", &azeventhubs.PartitionClientOptions{OwnerLevel: ptr(int64(1)), StartPosition: fromTheStart.StartPosition})
	receiveAll(t, owner, 1)

	loser := y.partition(y.consumer(auth.RootPolicy, "LosesBecauseOfLowOwnerLevel"), "0", &azeventhubs.PartitionClientOptions{OwnerLevel: ptr(int64(0))})
	_, err := loser.ReceiveEvents(t.Context(), 1, nil)
	want := fmt.Sprintf("Description: Receiver '%s' with a higher epoch '1' already exists. Receiver 'LosesBecauseOfLowOwnerLevel' with epoch 0 cannot be created. "+
		"Make sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure all old epoch receivers are closed or disconnected", first.InstanceID())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the loser is told\n%v\nwant\n%s", err, want)
	}
	wantCode(t, err, azeventhubs.ErrorCodeOwnershipLost)

	thief := y.partition(y.consumer(auth.RootPolicy, "thief"), "0", &azeventhubs.PartitionClientOptions{OwnerLevel: ptr(int64(1)), StartPosition: fromTheStart.StartPosition})
	receiveAll(t, thief, 1)
	_, err = owner.ReceiveEvents(t.Context(), 1, nil)
	wantCode(t, err, azeventhubs.ErrorCodeOwnershipLost)
}

func wantCode(t testing.TB, err error, code azeventhubs.ErrorCode) {
	t.Helper()
	if e, ok := errors.AsType[*azeventhubs.Error](err); !ok || e.Code != code {
		t.Errorf("the error is %v, want code %s", err, code)
	}
}

// H9: policies that may do one thing only, and hubs that are not there.
func TestAzureRefusals(t *testing.T) {
	y := newOrders(t, 1)
	y.policy("orders", "sends", auth.Send)
	y.policy("orders", "listens", auth.Listen)

	sendBatch(t, y.producer("sends"), nil, &azeventhubs.EventData{Body: []byte("x")})
	receiveAll(t, y.partition(y.consumer("listens", ""), "0", fromTheStart), 1)

	_, err := y.partition(y.consumer("sends", ""), "0", fromTheStart).ReceiveEvents(t.Context(), 1, nil)
	if err == nil || !strings.Contains(err.Error(), "Description: Unauthorized access. 'Listen' claim(s) are required to perform this operation") {
		t.Errorf("who may send only is told %v", err)
	}
	wantCode(t, err, azeventhubs.ErrorCodeUnauthorizedAccess)
	_, err = y.producer("listens").NewEventDataBatch(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "Description: Unauthorized access. 'Send' claim(s) are required to perform this operation") {
		t.Errorf("who may listen only is told %v", err)
	}
	wrong := strings.Replace(connectionString(auth.RootPolicy), auth.DevelopmentKey, "wrong", 1)
	p, err := azeventhubs.NewProducerClientFromConnectionString(wrong, "", &azeventhubs.ProducerClientOptions{NewWebSocketConn: y.azureDial, RetryOptions: noRetries})
	testkit.Must(t, err)
	defer p.Close(t.Context())
	_, err = p.NewEventDataBatch(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "InvalidSignature: The token has an invalid signature.") {
		t.Errorf("a wrong key is told %v", err)
	}
	wantCode(t, err, azeventhubs.ErrorCodeUnauthorizedAccess)
	testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
	if _, err = y.producer(auth.RootPolicy).GetEventHubProperties(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "could not be found") {
		t.Errorf("a hub that is not there is %v", err)
	}
}

// checkpoints is the least that a processor needs.
type checkpoints struct {
	mu     sync.Mutex
	tag    int
	owners map[string]azeventhubs.Ownership
	marks  map[string]azeventhubs.Checkpoint
}

func (s *checkpoints) ClaimOwnership(_ context.Context, claims []azeventhubs.Ownership, _ *azeventhubs.ClaimOwnershipOptions) ([]azeventhubs.Ownership, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []azeventhubs.Ownership
	for _, c := range claims {
		if old, there := s.owners[c.PartitionID]; there && (c.ETag == nil || *c.ETag != *old.ETag) {
			continue
		}
		s.tag++
		c.ETag, c.LastModifiedTime = ptr(azcore.ETag(strconv.Itoa(s.tag))), time.Now()
		s.owners[c.PartitionID] = c
		got = append(got, c)
	}
	return got, nil
}

func (s *checkpoints) ListOwnership(context.Context, string, string, string, *azeventhubs.ListOwnershipOptions) (all []azeventhubs.Ownership, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.owners {
		all = append(all, o)
	}
	return all, nil
}

func (s *checkpoints) ListCheckpoints(context.Context, string, string, string, *azeventhubs.ListCheckpointsOptions) (all []azeventhubs.Checkpoint, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.marks {
		all = append(all, c)
	}
	return all, nil
}

func (s *checkpoints) SetCheckpoint(_ context.Context, c azeventhubs.Checkpoint, _ *azeventhubs.SetCheckpointOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks[c.PartitionID] = c
	return nil
}

// H9: the right to listen suffices for the official processor. What it has marked it
// does not get again.
func TestAzureProcessor(t *testing.T) {
	y := newOrders(t, 3)
	y.policy("orders", "listens", auth.Listen)
	store := &checkpoints{owners: map[string]azeventhubs.Ownership{}, marks: map[string]azeventhubs.Checkpoint{}}
	for round := range 2 {
		for p := range 3 {
			y.store("orders", strconv.Itoa(p), fmt.Sprintf("%d %d", round, p))
		}
		clear(store.owners) // the first round's have gone
		processor, err := azeventhubs.NewProcessor(y.consumer("listens", ""), store, &azeventhubs.ProcessorOptions{
			LoadBalancingStrategy: azeventhubs.ProcessorStrategyGreedy,
			StartPositions:        azeventhubs.StartPositions{Default: azeventhubs.StartPosition{Earliest: ptr(true)}},
		})
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- processor.Run(ctx) }()
		for range 3 {
			client := processor.NextPartitionClient(ctx)
			events := testkit.Value(client.ReceiveEvents(ctx, 1, nil))(t)
			if got, want := string(events[0].Body), fmt.Sprintf("%d %s", round, client.PartitionID()); got != want {
				t.Errorf("partition %s gave %q, want %q", client.PartitionID(), got, want)
			}
			testkit.Must(t, client.UpdateCheckpoint(ctx, events[0], nil))
			testkit.Must(t, client.Close(ctx))
		}
		cancel()
		testkit.Must(t, <-ended)
	}
}

// R4: the client takes server-busy for what it is: it waits, and everything arrives.
func TestTheAzureClientWaitsForAQuota(t *testing.T) {
	y := newOrders(t, 1)
	testkit.Must(t, testkit.Err(y.broker.UpdateHub(t.Context(), "orders", broker.HubChange{QuotaEvents: ptr(int64(20))})))
	p := testkit.Value(azeventhubs.NewProducerClientFromConnectionString(connectionString(auth.RootPolicy), "", &azeventhubs.ProducerClientOptions{
		NewWebSocketConn: y.azureDial, RetryOptions: azeventhubs.RetryOptions{MaxRetries: 100, RetryDelay: 50 * time.Millisecond, MaxRetryDelay: 500 * time.Millisecond},
	}))(t)
	defer func() { _ = p.Close(context.Background()) }()
	to := &azeventhubs.EventDataBatchOptions{PartitionID: ptr("0")}
	for i := range 3 { // the first is half as much again as a second is worth
		events := make([]*azeventhubs.EventData, 30)
		for j := range events {
			events[j] = &azeventhubs.EventData{Body: fmt.Append(nil, i, j)}
		}
		sendBatch(t, p, to, events...)
	}
	info := testkit.Value(y.broker.Partition(t.Context(), "orders", "0"))(t)
	testkit.Equal(t, info.Last-info.First+1, 90, "events")
}
