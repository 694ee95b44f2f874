//go:build linux

package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/eventyard/eventyard/internal/testkit"
)

func playSaramaTransactions(t *testing.T, k kafkaTask) {
	t.Helper()
	writer := k.saramaTransactor(t, "writer")
	for n := range kafkaTransactionCount {
		testkit.Must(t, writer.BeginTxn())
		var messages []*sarama.ProducerMessage
		for i := range kafkaTransactionSize {
			messages = append(messages, &sarama.ProducerMessage{Topic: k.hub, Key: sarama.StringEncoder(fmt.Sprint(i)), Value: sarama.StringEncoder(fmt.Sprintf("%d-%d", n, i))})
		}
		testkit.Must(t, writer.SendMessages(messages))
		if n%2 == 0 {
			testkit.Must(t, writer.CommitTxn())
		} else {
			testkit.Must(t, writer.AbortTxn())
		}
	}
	t.Log("proved: transactions, committed and aborted")
	k.readBySaramaTransactor(t, k.hub, "-reader", func(*sarama.ConsumerMessage) error { return nil })
	t.Log("proved: what is committed is read, once, and nothing else")
	copier := k.saramaTransactor(t, "copier")
	k.readBySaramaTransactor(t, k.hub, "", func(m *sarama.ConsumerMessage) error {
		if err := copier.BeginTxn(); err != nil {
			return err
		}
		copied := &sarama.ProducerMessage{Topic: k.hub + "-copy", Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value)}
		if _, _, err := copier.SendMessage(copied); err != nil {
			return err
		}
		if err := copier.AddMessageToTxn(m, k.group(), nil); err != nil {
			return err
		}
		return copier.CommitTxn()
	})
	k.readBySaramaTransactor(t, k.hub+"-copy", "-reader-copy", func(*sarama.ConsumerMessage) error { return nil })
	var sum int64
	for _, next := range k.committed(t) {
		sum += max(next, 0)
	}
	testkit.That(t, sum >= int64(len(committedValues())), "%d is committed of %d", sum, len(committedValues()))
	t.Log("proved: a hub copied with its offsets")
}

func (k kafkaTask) saramaTransactor(t *testing.T, name string) sarama.SyncProducer {
	t.Helper()
	cfg := k.sarama(t)
	cfg.Producer.Transaction.ID = k.hub + "-" + name
	producer := testkit.Value(sarama.NewSyncProducer([]string{k.address}, cfg))(t)
	t.Cleanup(func() { testkit.Check(t, producer.Close()) })
	return producer
}

// saramaTransactor reads in a group until nothing is missing, one message at a time, and does something with each.
type saramaTransactor struct {
	do   func(*sarama.ConsumerMessage) error
	done func()

	mu      sync.Mutex
	missing map[string]bool // guarded by mu
	failed  error           // guarded by mu
}

func (*saramaTransactor) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaTransactor) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (s *saramaTransactor) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		s.take(message)
	}
	return nil
}

func (s *saramaTransactor) take(message *sarama.ConsumerMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := string(message.Value)
	if !s.missing[value] {
		s.failed = fmt.Errorf("%q came that does not count, or came twice", value)
	}
	delete(s.missing, value)
	if err := s.do(message); err != nil {
		s.failed = err
	}
	if s.failed != nil || len(s.missing) == 0 {
		s.done()
	}
}

// readBySaramaTransactor reads a hub from the beginning in a group of that suffix.
func (k kafkaTask) readBySaramaTransactor(t *testing.T, hub, suffix string, do func(*sarama.ConsumerMessage) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	cfg := k.sarama(t)
	cfg.Consumer.Offsets.Initial, cfg.Consumer.Offsets.AutoCommit.Enable = sarama.OffsetOldest, false
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	group := testkit.Value(sarama.NewConsumerGroup([]string{k.address}, k.group()+suffix, cfg))(t)
	s := &saramaTransactor{do: do, done: cancel, missing: committedValues()}
	for ctx.Err() == nil {
		testkit.Must(t, group.Consume(ctx, []string{hub}, s))
	}
	testkit.Must(t, group.Close())
	testkit.Must(t, s.failed)
	testkit.Equal(t, len(s.missing), 0, "records that did not come")
}
