package eventhubs

import (
	"bytes"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// request is a message to $cbs or $management, as far as anything depends on it.
type request struct {
	// id is the message's id in its encoding: the reply has to repeat it in its own type.
	// nil if there is none.
	id      []byte
	replyTo string
	// session is that of the link it came on.
	session uint16

	operation, kind, name, partition string
	// token is what the request brings to be judged by, where hasToken; it is empty if that is no
	// text. Null is none.
	token    string
	hasToken bool
	// secret and lasts are of a processor's instance: see package groupwire.
	secret, lasts string
	// body is the text of a value; empty if it is anything else.
	body string
	// size is that of the whole message.
	size int
}

// parseRequest takes a message apart. The result shares nothing with it.
func parseRequest(msg []byte) (*request, error) {
	m, err := wire.Sections(msg)
	if err != nil {
		return nil, err
	}
	q := &request{size: len(msg)}
	if err := q.readProperties(m.Properties); err != nil {
		return nil, err
	}
	if err := q.readApplicationProperties(m.ApplicationProperties); err != nil {
		return nil, err
	}
	if m.BodyKind != wire.BodyValue {
		return q, nil
	}
	r := wire.NewReader(m.Body)
	if _, err := r.ReadDescriptor(); err != nil {
		return nil, err
	}
	q.body, err = readText(&r)
	return q, err
}

// The positions of the properties that matter (§3.2.4).
const (
	propertyMessageID     = 0
	propertyReplyTo       = 4
	propertyCorrelationID = 5
	propertyCount         = 13
)

func (q *request) readProperties(section []byte) error {
	if section == nil {
		return nil
	}
	r := wire.NewReader(section)
	if _, err := r.ReadDescriptor(); err != nil {
		return err
	}
	list, err := r.EnterList()
	for i := 0; i < list.Count && err == nil; i++ {
		if r.TryNull() {
			continue
		}
		start := r.Offset()
		switch {
		case i == propertyReplyTo:
			q.replyTo, err = readText(&r)
		case i == propertyMessageID, i == propertyCorrelationID && q.id == nil:
			err = r.Skip()
			q.id = bytes.Clone(section[start:r.Offset()])
		default:
			err = r.Skip()
		}
	}
	return err
}

func (q *request) readApplicationProperties(section []byte) error {
	if section == nil {
		return nil
	}
	r := wire.NewReader(section)
	if _, err := r.ReadDescriptor(); err != nil {
		return err
	}
	entries, err := r.EnterMap()
	for i := 0; i < entries.Count/2 && err == nil; i++ {
		var key string
		if key, err = readText(&r); err != nil {
			break
		}
		switch key {
		case "operation":
			q.operation, err = readText(&r)
		case "type":
			q.kind, err = readText(&r)
		case "name":
			q.name, err = readText(&r)
		case "partition":
			q.partition, err = readText(&r)
		case "security_token":
			if q.hasToken = !r.TryNull(); q.hasToken {
				q.token, err = readText(&r)
			}
		case groupwire.PropertySecret:
			q.secret, err = readText(&r)
		case groupwire.PropertyLasts:
			q.lasts, err = readText(&r)
		default:
			err = r.Skip()
		}
	}
	return err
}

// readText reads a string or a symbol. Anything else is passed and comes to nothing.
func readText(r *wire.Reader) (string, error) {
	code, err := r.Peek()
	if err != nil {
		return "", err
	}
	switch code {
	case wire.CodeString8, wire.CodeString32:
		return r.ReadString()
	case wire.CodeSymbol8, wire.CodeSymbol32:
		text, err := r.ReadSymbol()
		return string(text), err
	default:
		return "", r.Skip()
	}
}

// reply is the answer to a request.
type reply struct {
	status      int32
	description string
	// condition is set on failures only, since one client takes its mere presence for one,
	// and not by $cbs, where that client then loses the code and the text.
	condition wire.Symbol
	// body is the encoded value; nil: null. data, where it is not nil, is the body instead,
	// as bytes.
	body, data []byte
	// after is how late it may be sent at the earliest, for who may be guessing.
	after time.Duration
}

// append writes the message. Status and description stand there under two names each,
// since clients do not agree on them.
func (a *reply) append(dst, id []byte) []byte {
	dst, list := wire.BeginList(wire.AppendDescriptor(dst, wire.DescriptorProperties))
	for i := range propertyCount {
		if i == propertyCorrelationID && id != nil {
			dst = append(dst, id...)
			continue
		}
		dst = wire.AppendNull(dst)
	}
	dst = wire.EndList(dst, list, propertyCount)

	pairs := 4
	dst, entries := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorApplicationProperties))
	for _, name := range []string{"status-code", "statusCode"} {
		dst = wire.AppendInt(wire.AppendString(dst, name), a.status)
	}
	for _, name := range []string{"status-description", "statusDescription"} {
		dst = wire.AppendString(wire.AppendString(dst, name), a.description)
	}
	if a.condition != "" {
		dst = wire.AppendSymbol(wire.AppendString(dst, "error-condition"), a.condition)
		pairs++
	}
	dst = wire.EndMap(dst, entries, pairs)

	if a.data != nil {
		return wire.AppendBinary(wire.AppendDescriptor(dst, wire.DescriptorData), a.data)
	}
	dst = wire.AppendDescriptor(dst, wire.DescriptorValue)
	if a.body == nil {
		return wire.AppendNull(dst)
	}
	return append(dst, a.body...)
}
