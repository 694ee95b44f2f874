//go:build linux

package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// saramaReader is a member of a group that reads numbers, commits what it has read, and says what it has, what it reads and
// what is committed, until its input ends. It is a process of its own: a copy of the test binary.
type saramaReader struct {
	hub, group string
	admin      sarama.ClusterAdmin

	mu sync.Mutex // one line at a time
}

// playSaramaMember is told what the scripts of other clients are.
func playSaramaMember() error {
	session, err := strconv.Atoi(os.Getenv("YARD_SESSION"))
	if err != nil {
		return fmt.Errorf("read YARD_SESSION: %w", err)
	}
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Consumer.Offsets.Initial, cfg.Consumer.Offsets.AutoCommit.Enable = sarama.OffsetOldest, false
	cfg.Consumer.Group.Session.Timeout, cfg.Consumer.Group.Heartbeat.Interval = time.Duration(session)*time.Millisecond, time.Second
	cfg.Consumer.Group.InstanceId = os.Getenv("YARD_INSTANCE")
	cfg.Metadata.Retry.Max, cfg.Admin.Retry.Max = 100, 100 // in 250 ms each
	address := strings.Split(os.Getenv("YARD_KAFKA"), ",")
	admin, err := sarama.NewClusterAdmin(address, cfg)
	if err != nil {
		return err
	}
	r := &saramaReader{hub: os.Getenv("YARD_HUB"), group: os.Getenv("YARD_GROUP"), admin: admin}
	group, err := sarama.NewConsumerGroup(address, r.group, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{r.hub}, r); err != nil {
			r.say("refused", err) // it comes again
		}
	}
	return errors.Join(group.Close(), admin.Close())
}

func (r *saramaReader) say(words ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Println(words...)
}

func (r *saramaReader) Setup(session sarama.ConsumerGroupSession) error {
	has := slices.Sorted(slices.Values(session.Claims()[r.hub]))
	r.say("has", strings.Trim(fmt.Sprint(has), "[]"))
	return nil
}

func (r *saramaReader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *saramaReader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		first := message.Offset
		for more := len(claim.Messages()); ; more-- {
			if string(message.Value) != fmt.Sprint(message.Offset) {
				return fmt.Errorf("partition %d has %s at %d", message.Partition, message.Value, message.Offset)
			}
			session.MarkMessage(message, "")
			if more == 0 {
				break
			}
			message = <-claim.Messages()
		}
		r.say("read", claim.Partition(), first, message.Offset)
		session.Commit()
		r.confirm(claim.Partition(), message.Offset+1)
	}
	return nil
}

// confirm says what is committed: Commit does not tell whether it has done so.
func (r *saramaReader) confirm(partition int32, want int64) {
	answer, err := r.admin.ListConsumerGroupOffsets(r.group, map[string][]int32{r.hub: {partition}})
	if err != nil {
		r.say("refused", err)
		return
	}
	block := answer.GetBlock(r.hub, partition)
	if block == nil || block.Offset < want {
		r.say("refused", cmp.Or(block, &sarama.OffsetFetchResponseBlock{}).Offset)
		return
	}
	r.say("committed", partition, want)
}
