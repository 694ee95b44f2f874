package soak

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What strangers do to the Kafka listeners.
var kafkaAttacks = []attack{
	{"Kafka, silent", onKafka, (*attacker).drain},
	{"Kafka, a mechanism and silent", onKafka, func(a *attacker) error {
		if _, err := a.mechanism("PLAIN"); err != nil {
			return err
		}
		return a.drain()
	}},
	{"Kafka, versions again and again", onKafka, (*attacker).versions},
	{"Kafka, versions again and again, and no answer taken", onKafka, func(a *attacker) error {
		return a.flood(kafkaVersions(1000))
	}},
	{"Kafka, wrong keys", onKafka, func(a *attacker) error {
		if _, err := a.mechanism("PLAIN"); err != nil {
			return err
		}
		if _, err := a.token("\x00RootManageSharedAccessKey\x00wrong"); err != nil {
			return err
		}
		return a.drain()
	}},
	{"Kafka, wrong proofs", onKafka, (*attacker).wrongProof},
	{"Kafka, a large request in small parts", onKafka, func(a *attacker) error {
		return a.slowly(binary.BigEndian.AppendUint32(nil, 60<<10))
	}},
	{"Kafka, a request that is too large", onKafka, func(a *attacker) error {
		return a.flood(binary.BigEndian.AppendUint32(nil, 1<<30))
	}},
	{"Kafka, noise", onKafka, (*attacker).kafkaNoise},
	{"Kafka with TLS, no handshake", onKafkas, (*attacker).drain},
	{"Kafka with TLS, versions again and again", onKafkas, func(a *attacker) error { return a.secured().versions() }},
}

func onKafka(c *crowd) string  { return c.kafka }
func onKafkas(c *crowd) string { return c.kafkas }

// kafkaVersions asks so many times, in as few bytes as possible, which versions are offered.
func kafkaVersions(times int) (all []byte) {
	for i := range times {
		all = kmsg.NewRequestFormatter().AppendRequest(all, kmsg.NewPtrApiVersionsRequest(), int32(i))
	}
	return all
}

// versions asks again and again, and takes all answers.
func (a *attacker) versions() error {
	go func() { _ = a.drain() }()
	return a.flood(kafkaVersions(100))
}

// flood sends the same until the yard has had enough.
func (a *attacker) flood(bytes []byte) error {
	for {
		if _, err := a.Write(bytes); err != nil {
			return err
		}
	}
}

// ask sends a request, and gives what is answered, without size and number.
func (a *attacker) ask(r kmsg.Request) ([]byte, error) {
	if _, err := a.Write(kmsg.NewRequestFormatter().AppendRequest(nil, r, 1)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(a.in, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(a.in, answer); err != nil {
		return nil, err
	}
	return answer[4:], nil
}

// mechanism chooses how to log in.
func (a *attacker) mechanism(name string) ([]byte, error) {
	r := kmsg.NewPtrSASLHandshakeRequest()
	r.Version, r.Mechanism = 1, name
	return a.ask(r)
}

// token shows one, and gives what comes back.
func (a *attacker) token(token string) (string, error) {
	r := kmsg.NewPtrSASLAuthenticateRequest()
	r.Version, r.SASLAuthBytes = 1, []byte(token)
	body, err := a.ask(r)
	if err != nil {
		return "", err
	}
	answer := kmsg.NewPtrSASLAuthenticateResponse()
	answer.Version = 1
	err = answer.ReadFrom(body)
	return string(answer.SASLAuthBytes), err
}

// wrongProof logs in by SCRAM as somebody whose key it does not have: the yard derives keys to find that out.
func (a *attacker) wrongProof() error {
	if _, err := a.mechanism("SCRAM-SHA-512"); err != nil {
		return err
	}
	challenge, err := a.token("n,,n=RootManageSharedAccessKey,r=hostile")
	if err != nil {
		return err
	}
	nonce, _, _ := strings.Cut(challenge, ",")
	if _, err := a.token(fmt.Sprintf("c=biws,%s,p=%s=", nonce, strings.Repeat("A", 87))); err != nil {
		return err
	}
	return a.drain()
}

// kafkaNoise sends heads of requests that nobody or only clients may send, and whatever after them.
func (a *attacker) kafkaNoise() error {
	for range 100 {
		noise := make([]byte, rand.IntN(200))
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		head := binary.BigEndian.AppendUint32(nil, uint32(8+len(noise)))
		head = binary.BigEndian.AppendUint16(head, uint16([]int{17, 18, 36, rand.IntN(100)}[rand.IntN(4)]))
		head = binary.BigEndian.AppendUint16(head, uint16(rand.IntN(5)))
		head = binary.BigEndian.AppendUint32(head, rand.Uint32())
		if _, err := a.Write(append(head, noise...)); err != nil {
			return err
		}
	}
	return a.drain()
}
