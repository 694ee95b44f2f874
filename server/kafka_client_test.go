package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaConn speaks Kafka's protocol request by request, so that a test sees each answer as it is. What clients do
// is tested in test/interop.
type KafkaConn struct {
	net.Conn
	asked int32
}

// DialKafka connects without showing anything.
func DialKafka(t *testing.T, address string) *KafkaConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	testkit.Must(t, err)
	return NewKafkaConn(t, conn)
}

// NewKafkaConn speaks over a connection, which ends with the test.
func NewKafkaConn(t *testing.T, conn net.Conn) *KafkaConn {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return &KafkaConn{Conn: conn}
}

// Ask sends a request and waits for its answer.
func (c *KafkaConn) Ask(r kmsg.Request) (kmsg.Response, error) {
	c.asked++
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, r, c.asked)); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	if number := int32(binary.BigEndian.Uint32(head[4:])); number != c.asked {
		return nil, fmt.Errorf("request %d is answered as %d", c.asked, number)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:4])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return nil, err
	}
	answer := r.ResponseKind()
	if _, versions := r.(*kmsg.ApiVersionsRequest); answer.IsFlexible() && !versions {
		body = body[1:] // there are no tags in the head
	}
	return answer, answer.ReadFrom(body)
}

// LogIn shows a name and a password by SASL PLAIN.
func (c *KafkaConn) LogIn(user, password string) error {
	return c.show("PLAIN", "\x00"+user+"\x00"+password)
}

// show shows something by a mechanism of SASL that needs no more.
func (c *KafkaConn) show(mechanism, what string) error {
	if err := c.choose(mechanism); err != nil {
		return err
	}
	return testkit.Err(c.token(what))
}

// showWrongProof is SCRAM by who knows a name and no key of it.
func (c *KafkaConn) showWrongProof(user string) error {
	if err := c.choose("SCRAM-SHA-512"); err != nil {
		return err
	}
	challenge, err := c.token("n,,n=" + user + ",r=test")
	if err != nil {
		return err
	}
	nonce, _, _ := strings.Cut(challenge, ",")
	return testkit.Err(c.token("c=biws," + nonce + ",p=" + strings.Repeat("A", 86) + "=="))
}

func (c *KafkaConn) choose(mechanism string) error {
	begin := kmsg.NewPtrSASLHandshakeRequest()
	begin.Version, begin.Mechanism = 1, mechanism
	if answer, err := c.Ask(begin); err != nil || answer.(*kmsg.SASLHandshakeResponse).ErrorCode != 0 {
		return fmt.Errorf("handshake: %+v, %w", answer, err)
	}
	return nil
}

// token shows one, and gives what is answered to it.
func (c *KafkaConn) token(text string) (string, error) {
	show := kmsg.NewPtrSASLAuthenticateRequest()
	show.Version, show.SASLAuthBytes = 2, []byte(text)
	answer, err := c.Ask(show)
	if err != nil {
		return "", err
	}
	said := answer.(*kmsg.SASLAuthenticateResponse)
	if said.ErrorCode != 0 {
		return "", fmt.Errorf("refused with %d", said.ErrorCode)
	}
	return string(said.SASLAuthBytes), nil
}

// KafkaProduce sends a batch of records to partition 0 of a hub.
func KafkaProduce(hub string, values ...string) *kmsg.ProduceRequest {
	now := time.Now().UnixMilli()
	batch := record.Begin(nil, 0, now)
	for _, value := range values {
		batch.Add(&record.Record{Timestamp: now, Value: []byte(value)})
	}
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = batch.End()
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.Partitions = hub, []kmsg.ProduceRequestTopicPartition{part}
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis, r.Topics = 9, -1, 10_000, []kmsg.ProduceRequestTopic{topic}
	return r
}

// KafkaMetadata asks for a hub.
func KafkaMetadata(hub string) *kmsg.MetadataRequest {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = new(hub)
	r := kmsg.NewPtrMetadataRequest()
	r.Version, r.Topics = 9, []kmsg.MetadataRequestTopic{topic}
	return r
}
