package soak

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// stolenPolicy is a policy of the namespace that may listen, whose key others have got hold of.
const (
	stolenPolicy = "thief"
	stolenKey    = "bm90LWEtc2VjcmV0LW9mLWEtdGhpZWYtaW4tYS1zb2Fr"
)

// thefts are what somebody does who has a key that may listen.
var thefts = []attack{
	{"Listen, a tail of a hub of many partitions", onHTTP, func(a *attacker) error {
		if err := a.tail(); err != nil {
			return err
		}
		return a.drain()
	}},
	{"Listen, a tail, and none of it taken", onHTTP, func(a *attacker) error {
		if err := a.tail(); err != nil {
			return err
		}
		return a.idle(nil)
	}},
	{"Listen, receivers that take nothing", onAMQP, (*attacker).deafReceivers},
	{"Listen, 2,000 links after a token", onAMQP, func(a *attacker) error {
		if err := a.openBy(thiefInit()); err != nil {
			return err
		}
		for handle := range uint32(2000) {
			if err := a.receive(handle, "orders/ConsumerGroups/$Default/Partitions/0", 0); err != nil {
				return err
			}
		}
		return a.drain()
	}},
}

func thiefInit() *wire.SASLInit {
	return &wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00" + stolenPolicy + "\x00" + stolenKey), HasResponse: true}
}

// tail asks for all events of a hub, and those that come.
func (a *attacker) tail() error {
	token := base64.StdEncoding.EncodeToString([]byte(stolenPolicy + ":" + stolenKey))
	if _, err := io.WriteString(a, "GET /api/v1/hubs/archive/events?from=earliest HTTP/1.1\r\nHost: localhost\r\n"+
		"Accept: text/event-stream\r\nAuthorization: Basic "+token+"\r\n\r\n"); err != nil {
		return err
	}
	line, err := a.in.ReadString('\n')
	if err == nil && !strings.Contains(line, fmt.Sprintf(" %d ", http.StatusOK)) {
		err = refusal(strings.TrimSpace(line))
	}
	return err
}

// refusal is an answer of the yard in place of what was asked for.
type refusal string

func (r refusal) Error() string { return string(r) }

// deafReceivers has a receiver in each partition of a hub, and takes nothing of what they are sent.
func (a *attacker) deafReceivers() error {
	if err := a.openBy(thiefInit()); err != nil {
		return err
	}
	for partition := range uint32(partitionsOfHub) {
		if err := a.receive(partition, fmt.Sprintf("archive/ConsumerGroups/$Default/Partitions/%d", partition), 1000); err != nil {
			return err
		}
	}
	empty, frame := wire.BeginFrame(nil, wire.FrameAMQP, 0)
	return a.idle(wire.EndFrame(empty, frame))
}

// receive attaches a receiver of a partition, from its oldest event, that may be sent so many.
func (a *attacker) receive(handle uint32, from string, credit uint32) error {
	if err := a.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendAttach(dst, &wire.Attach{Name: fmt.Sprint("link ", handle), Handle: handle, Role: wire.RoleReceiver,
			Source: &wire.Source{Address: wire.Some(from)}, Target: &wire.Target{}})
	}); err != nil || credit == 0 {
		return err
	}
	return a.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendFlow(dst, &wire.Flow{IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30, Handle: wire.Some(handle),
			DeliveryCount: wire.Some(uint32(0)), LinkCredit: wire.Some(credit)})
	})
}

// idle reads nothing for as long as an attack lasts, and sends something now and then, which fails once the
// yard has cut it off.
func (a *attacker) idle(now []byte) error {
	for end := time.Now().Add(hold); time.Now().Before(end); {
		select {
		case <-a.stop:
			return nil
		case <-time.After(500 * time.Millisecond):
		}
		if _, err := a.Write(now); err != nil {
			return err
		}
	}
	return nil
}
