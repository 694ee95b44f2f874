//go:build linux

package interop

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// franzReader is a member of a group that reads numbers, commits what it has read, and says what it has, what it reads and
// what is committed, until its input ends. It is a process of its own: a copy of the test binary.
type franzReader struct {
	hub string

	mu  sync.Mutex     // one line at a time
	has map[int32]bool // guarded by mu
}

// playFranzMember is told what the scripts of other clients are.
func playFranzMember() error {
	session, err := strconv.Atoi(os.Getenv("YARD_SESSION"))
	if err != nil {
		return fmt.Errorf("read YARD_SESSION: %w", err)
	}
	r := &franzReader{hub: os.Getenv("YARD_HUB"), has: map[int32]bool{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Getenv("YARD_KAFKA"), ",")...), kgo.ConsumerGroup(os.Getenv("YARD_GROUP")), kgo.ConsumeTopics(r.hub),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), soon,
		kgo.OnPartitionsAssigned(r.gained), kgo.OnPartitionsRevoked(r.lost), kgo.OnPartitionsLost(r.lost),
	}
	if os.Getenv("YARD_PROTOCOL") == "consumer" { // the yard knows how long a session is, and shares the partitions out
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		balancer := kgo.RangeBalancer()
		if os.Getenv("YARD_COOPERATIVE") != "" {
			balancer = kgo.CooperativeStickyBalancer()
		}
		options = append(options, kgo.Balancers(balancer), kgo.SessionTimeout(time.Duration(session)*time.Millisecond), kgo.HeartbeatInterval(time.Second))
	}
	if instance := os.Getenv("YARD_INSTANCE"); instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil && err == nil {
		err = r.step(ctx, client)
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	return err
}

// step reads what there is, and commits it.
func (r *franzReader) step(ctx context.Context, client *kgo.Client) (err error) {
	next := map[int32]int64{}
	client.PollFetches(ctx).EachPartition(func(fetched kgo.FetchTopicPartition) {
		for _, record := range fetched.Records {
			if string(record.Value) != fmt.Sprint(record.Offset) {
				err = fmt.Errorf("partition %d has %s at %d", record.Partition, record.Value, record.Offset)
			}
		}
		if count := len(fetched.Records); count > 0 {
			last := fetched.Records[count-1].Offset
			r.say("read", fetched.Partition, fetched.Records[0].Offset, last)
			next[fetched.Partition] = last + 1
		}
	})
	if err != nil || len(next) == 0 {
		return err
	}
	if refused := client.CommitUncommittedOffsets(ctx); refused != nil {
		r.say("refused", refused) // it is read again, by whoever has it then
		return nil
	}
	for partition, offset := range next {
		r.say("committed", partition, offset)
	}
	return nil
}

func (r *franzReader) say(words ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Println(words...)
}

func (r *franzReader) gained(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	r.change(func() {
		for _, p := range topics[r.hub] {
			r.has[p] = true
		}
	})
}

func (r *franzReader) lost(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	r.change(func() {
		for _, p := range topics[r.hub] {
			delete(r.has, p)
		}
	})
}

// change changes what the member has, and says so if it does.
func (r *franzReader) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := maps.Clone(r.has)
	do()
	if !maps.Equal(before, r.has) {
		fmt.Println("has", strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(r.has))), "[]"))
	}
}
