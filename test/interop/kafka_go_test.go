//go:build linux

package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/eventyard/eventyard/internal/testkit"
)

// trust is a TLS configuration with the yard's authority and no other.
func (k kafkaTask) trust(t *testing.T) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	testkit.MustThat(t, pool.AppendCertsFromPEM(testkit.Value(os.ReadFile(k.ca))(t)), "%s has no certificate", k.ca)
	return &tls.Config{RootCAs: pool}
}

// franz makes a client of franz-go, which is closed with the test.
func (k kafkaTask) franz(t *testing.T, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	options = append(options, kgo.SeedBrokers(k.addresses()...), kgo.DefaultProduceTopic(k.hub))
	if k.user != "" {
		options = append(options, kgo.DialTLSConfig(k.trust(t)), kgo.SASL(k.franzMechanism()))
	}
	client := testkit.Value(kgo.NewClient(options...))(t)
	t.Cleanup(client.Close)
	return client
}

// franzMechanism is how it logs in.
func (k kafkaTask) franzMechanism() sasl.Mechanism {
	switch k.mechanism {
	case "SCRAM-SHA-256":
		return scram.Auth{User: k.user, Pass: k.password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: k.user, Pass: k.password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: k.token}.AsMechanism()
	}
	return plain.Auth{User: k.user, Pass: k.password}.AsMechanism()
}

// fromTheBeginning assigns all partitions.
func (k kafkaTask) fromTheBeginning() kgo.Opt {
	all := map[int32]kgo.Offset{}
	for p := range int32(kafkaPartitions) {
		all[p] = kgo.NewOffset().AtStart()
	}
	return kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.hub: all})
}

func playFranz(t *testing.T, k kafkaTask) {
	t.Helper()
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	for _, codec := range k.codecs {
		var records []*kgo.Record
		for _, r := range k.records(codec) {
			records = append(records, &kgo.Record{Key: []byte(r.key), Value: []byte(r.value), Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(codec)}}})
		}
		producer := k.franz(t, kgo.ProducerBatchCompression(codecs[codec])) // idempotent, unless it is told otherwise
		testkit.Must(t, producer.ProduceSync(ctx, records...).FirstErr(), "%s", codec)
	}
	t.Log("proved: an idempotent producer with", strings.Join(k.codecs, ", "))
	reader := k.franz(t, k.fromTheBeginning())
	for missing := k.books(); len(missing) > 0; {
		fetches := reader.PollFetches(ctx)
		testkit.Must(t, fetches.Err(), "%d records are missing", len(missing))
		fetches.EachRecord(func(r *kgo.Record) {
			found := kafkaRecord{key: string(r.Key), value: string(r.Value)}
			for _, h := range r.Headers {
				found.codec = string(h.Value)
			}
			missing.take(t, found)
		})
	}
	t.Log("proved: everything read from the beginning, once, and what was sent over AMQP")
	options := []kgo.Opt{kgo.ConsumerGroup(k.group()), kgo.ConsumeTopics(k.hub), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if k.protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	member := k.franz(t, options...)
	for missing := k.books(); len(missing) > 0; {
		fetches := member.PollFetches(ctx)
		testkit.Must(t, fetches.Err(), "%d records are missing", len(missing))
		fetches.EachRecord(func(r *kgo.Record) {
			found := kafkaRecord{key: string(r.Key), value: string(r.Value)}
			for _, h := range r.Headers {
				found.codec = string(h.Value)
			}
			missing.take(t, found)
		})
	}
	testkit.Must(t, member.CommitUncommittedOffsets(ctx))
	member.Close()
	t.Log("proved: everything read in a group, and committed")
}

// sarama is how a client of Sarama is set.
func (k kafkaTask) sarama(t *testing.T) *sarama.Config {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Net.MaxOpenRequests = 1 // which it wants for idempotence
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Producer.Return.Successes = true, sarama.WaitForAll, true
	if k.user != "" {
		cfg.Net.TLS.Enable, cfg.Net.TLS.Config = true, k.trust(t)
		cfg.Net.SASL.Enable, cfg.Net.SASL.Mechanism, cfg.Net.SASL.User, cfg.Net.SASL.Password = true, sarama.SASLTypePlaintext, k.user, k.password
	}
	return cfg
}

func playSarama(t *testing.T, k kafkaTask) {
	t.Helper()
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	for _, codec := range k.codecs {
		var messages []*sarama.ProducerMessage
		for _, r := range k.records(codec) {
			messages = append(messages, &sarama.ProducerMessage{
				Topic: k.hub, Key: sarama.StringEncoder(r.key), Value: sarama.StringEncoder(r.value),
				Headers: []sarama.RecordHeader{{Key: []byte("codec"), Value: []byte(codec)}},
			})
		}
		cfg := k.sarama(t)
		cfg.Producer.Compression = codecs[codec]
		producer := testkit.Value(sarama.NewSyncProducer([]string{k.address}, cfg))(t)
		testkit.Check(t, producer.SendMessages(messages), "%s", codec)
		testkit.Must(t, producer.Close())
	}
	t.Log("proved: an idempotent producer with", strings.Join(k.codecs, ", "))
	k.readBySarama(t)
	t.Log("proved: everything read from the beginning, once, and what was sent over AMQP")
	k.readBySaramaGroup(t)
	t.Log("proved: everything read in a group, and committed")
}

func (k kafkaTask) readBySarama(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	consumer := testkit.Value(sarama.NewConsumer([]string{k.address}, k.sarama(t)))(t)
	defer consumer.Close()
	came := make(chan *sarama.ConsumerMessage)
	for p := range int32(kafkaPartitions) {
		part := testkit.Value(consumer.ConsumePartition(k.hub, p, sarama.OffsetOldest))(t)
		defer part.Close()
		go func() {
			for m := range part.Messages() {
				select {
				case came <- m:
				case <-ctx.Done():
				}
			}
		}()
	}
	defer cancel() // before the partitions are closed, which wait for their messages to be taken
	for missing := k.books(); len(missing) > 0; {
		select {
		case m := <-came:
			found := kafkaRecord{key: string(m.Key), value: string(m.Value)}
			for _, h := range m.Headers {
				found.codec = string(h.Value)
			}
			missing.take(t, found)
		case <-ctx.Done():
			t.Fatalf("%d records did not come", len(missing))
		}
	}
}

// saramaMember reads in a group until nothing is missing.
type saramaMember struct {
	t    *testing.T
	done func()

	mu      sync.Mutex
	missing kafkaBooks // guarded by mu
}

func (*saramaMember) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.take(message)
		session.MarkMessage(message, "")
	}
	return nil
}

func (m *saramaMember) take(message *sarama.ConsumerMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := kafkaRecord{key: string(message.Key), value: string(message.Value)}
	for _, h := range message.Headers {
		found.codec = string(h.Value)
	}
	if want, there := m.missing[found.value]; !there || found != want && found.value != kafkaPlanted {
		m.t.Errorf("%.100q came that was not sent, came twice, or otherwise than it was sent", found.value)
	}
	if delete(m.missing, found.value); len(m.missing) == 0 {
		m.done()
	}
}

func (k kafkaTask) readBySaramaGroup(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	cfg := k.sarama(t)
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	group := testkit.Value(sarama.NewConsumerGroup([]string{k.address}, k.group(), cfg))(t)
	member := &saramaMember{t: t, done: cancel, missing: k.books()}
	for ctx.Err() == nil {
		testkit.Must(t, group.Consume(ctx, []string{k.hub}, member))
	}
	testkit.Equal(t, len(member.missing), 0, "records that did not come in a group")
	testkit.Must(t, group.Close()) // what was marked is committed when a session ends
}

// checkCommitted looks at a client's group from outside: it has committed so much, and has no members.
func (k kafkaTask) checkCommitted(t *testing.T, records int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	client := k.franz(t)
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = k.group()
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Groups = append(fetch.Groups, asked)
	answer := testkit.Value(fetch.RequestWith(ctx, client))(t)
	testkit.MustEqual(t, len(answer.Groups), 1, "groups")
	testkit.MustEqual(t, len(answer.Groups[0].Topics), 1, "hubs with offsets; the code is %d", answer.Groups[0].ErrorCode)
	sum := int64(0)
	for _, part := range answer.Groups[0].Topics[0].Partitions {
		sum += part.Offset
	}
	testkit.Equal(t, sum, records, "what is committed")
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{k.group()}
	described := testkit.Value(describe.RequestWith(ctx, client))(t)
	testkit.Equal(t, described.Groups[0].State, "Empty", "the state of the group")
}
