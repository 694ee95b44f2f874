//go:build linux

package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaConsumersShare has two members of a group of KIP-848 share a hub: the second takes partitions over that the
// first has given up, by a regular expression, both go on with theirs when the yard was killed, or its node that coordinates
// them, and is back, and the first has all of them again when the second has left. What is read is read once. // K2
func TestKafkaConsumersShare(t *testing.T) {
	t.Parallel()
	y := startKafkaYard(t, layout{hubs: map[string]int{"shared": kafkaPartitions}}, nil)
	k := kafkaTask{address: y.address(), hub: "shared", protocol: "consumer"}
	ctx, cancel := context.WithTimeout(t.Context(), y.patience())
	defer cancel()
	sender := k.franz(t, kgo.DefaultProduceTopic(k.hub))
	send := func(what string) {
		for i := range 100 {
			testkit.Must(t, sender.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(what, i))).FirstErr())
		}
	}

	send("first ")
	seen := &kafkaSightings{changed: make(chan struct{}), count: map[string]int{}, owner: map[int32]string{}}
	first := newKafkaSharer(ctx, t, k, "a", seen, kgo.ConsumeTopics(k.hub))
	seen.await(t, ctx, "everything has come to the first", func() bool { return len(seen.count) == 100 && seen.owns("a") == kafkaPartitions })
	second := newKafkaSharer(ctx, t, k, "b", seen, kgo.ConsumeRegex(), kgo.ConsumeTopics("^sh.red$"))
	seen.await(t, ctx, "both have their part", func() bool { return seen.owns("a") == kafkaPartitions/2 && seen.owns("b") == kafkaPartitions/2 })
	t.Log("proved: the second has what the first has given up")

	before := seen.owners()
	y.killCoordinator(t, ofGroup, k.group())
	send("second ")
	seen.await(t, ctx, "everything has come after the kill", func() bool { return len(seen.count) == 200 })
	testkit.Deep(t, seen.owners(), before, "who has what after the kill")
	t.Log("proved: both went on with theirs after the yard was killed")

	second.stop()
	seen.await(t, ctx, "the first has everything again", func() bool { return seen.owns("a") == kafkaPartitions })
	send("third ")
	seen.await(t, ctx, "everything has come in the end", func() bool { return len(seen.count) == 300 })
	first.stop()
	for value, n := range seen.count {
		testkit.Equal(t, n, 1, "how often %q was read", value)
	}
	k.checkKind(t)
	y.stop(t)
	t.Log("proved: nothing was read twice")
}

// checkKind finds the group among those of KIP-848.
func (k kafkaTask) checkKind(t *testing.T) {
	t.Helper()
	list := kmsg.NewPtrListGroupsRequest()
	list.TypesFilter = []string{"consumer"}
	listed := testkit.Value(list.RequestWith(t.Context(), k.franz(t)))(t)
	found := slices.ContainsFunc(listed.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return g.Group == k.group() })
	testkit.That(t, found, "%s is not among the groups of KIP-848", k.group())
}

// kafkaSightings is what members have read, and who has which partition by their own account.
type kafkaSightings struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and another made, with each change
	count   map[string]int
	owner   map[int32]string
}

func (s *kafkaSightings) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// owns is for await.
func (s *kafkaSightings) owns(name string) (n int) {
	for _, owner := range s.owner {
		if owner == name {
			n++
		}
	}
	return n
}

func (s *kafkaSightings) owners() map[int32]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.owner)
}

func (s *kafkaSightings) await(t *testing.T, ctx context.Context, what string, is func() bool) {
	t.Helper()
	for {
		s.mu.Lock()
		done, changed := is(), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: not so; %d records have come, owners are %v", what, len(s.count), s.owners())
		}
	}
}

// kafkaSharer is a member that reads, and commits what it has read before it gives a partition up.
type kafkaSharer struct {
	client *kgo.Client
	end    context.CancelFunc
	done   chan struct{}
}

func newKafkaSharer(ctx context.Context, t *testing.T, k kafkaTask, name string, seen *kafkaSightings, subscription ...kgo.Opt) *kafkaSharer {
	t.Helper()
	gained := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		seen.change(func() {
			for _, p := range topics[k.hub] {
				if other := seen.owner[p]; other != "" {
					t.Errorf("%s is given partition %d, which %s has", name, p, other)
				}
				seen.owner[p] = name
			}
		})
	}
	lost := func(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			t.Errorf("%s commits before it gives up %v: %v", name, topics, err)
		}
		seen.change(func() {
			for _, p := range topics[k.hub] {
				delete(seen.owner, p)
			}
		})
	}
	s := &kafkaSharer{done: make(chan struct{}), client: k.franz(t, append(subscription,
		kgo.ConsumerGroup(k.group()), kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(gained), kgo.OnPartitionsRevoked(lost),
	)...)}
	ctx, s.end = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			fetches := s.client.PollFetches(ctx)
			fetches.EachRecord(func(r *kgo.Record) { seen.change(func() { seen.count[string(r.Value)]++ }) })
			s.client.AllowRebalance()
		}
	}()
	return s
}

// stop leaves the group.
func (s *kafkaSharer) stop() {
	s.end()
	<-s.done
	s.client.CloseAllowingRebalance()
}
