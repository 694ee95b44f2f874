package hub

import (
	"fmt"
	"net/http"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// reply is what a node answered.
type reply struct {
	// id is the request's.
	id string
	// said is an error unless its code is of a success.
	said CallError
	// body is the bytes of the reply; value is what it has instead.
	body  []byte
	value any
}

// parseReply reads a reply. Nodes spell the names of the status in two ways.
func parseReply(raw []byte) (reply, error) {
	m, err := message.Decode(raw)
	if err != nil {
		return reply{}, err
	}
	either := func(name, other string) any {
		if v, ok := m.Properties[name]; ok {
			return v
		}
		return m.Properties[other]
	}
	r := reply{body: m.Body, value: m.Value}
	r.id, _ = m.CorrelationID.(string)
	code, _ := either("status-code", "statusCode").(int32)
	r.said = CallError{
		Code:        int(code),
		Description: text(either("status-description", "statusDescription")),
		condition:   amqp.ErrCond(text(either("error-condition", "errorCondition"))),
	}
	return r, nil
}

// text takes symbols for strings.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case event.Symbol:
		return string(v)
	default:
		return ""
	}
}

// err is nil for a success.
func (r reply) err() error {
	if r.said.Code >= http.StatusOK && r.said.Code < http.StatusMultipleChoices {
		return nil
	}
	return &r.said
}

// fields gives the entries of a reply whose body is a map.
func (r reply) fields() (map[string]any, error) {
	pairs, ok := r.value.(wire.Map)
	if !ok {
		return nil, fmt.Errorf("the hub's reply has a body of type %T, not a map", r.value)
	}
	fields := make(map[string]any, len(pairs))
	for _, p := range pairs {
		fields[text(p.Key)] = p.Value
	}
	return fields, nil
}
