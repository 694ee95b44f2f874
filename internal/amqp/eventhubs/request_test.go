package eventhubs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// encode encodes a message of sections, each given by its descriptor and value.
func encode(t testing.TB, sections ...any) []byte {
	t.Helper()
	var msg []byte
	for i := 0; i < len(sections); i += 2 {
		var err error
		msg, err = wire.AppendAny(wire.AppendDescriptor(msg, sections[i].(wire.Descriptor)), sections[i+1])
		testkit.Must(t, err)
	}
	return msg
}

func TestRequestsAreRead(t *testing.T) {
	msg := encode(t,
		wire.DescriptorProperties, []any{uint64(7), nil, nil, nil, "me", "ignored"},
		wire.DescriptorApplicationProperties, wire.Map{
			{Key: "operation", Value: "put-token"}, {Key: "type", Value: wire.Symbol("jwt")},
			{Key: "name", Value: "sb://host/hub"}, {Key: "expiration", Value: time.UnixMilli(5)},
			{Key: "partition", Value: int32(3)}, {Key: "security_token", Value: "t"},
			{Key: "nested", Value: wire.Map{{Key: "operation", Value: "other"}}},
		},
		wire.DescriptorValue, "token",
	)
	got := testkit.Value(parseRequest(msg))(t)
	want := &request{
		id: []byte{0x53, 7}, replyTo: "me", operation: "put-token", kind: "jwt", name: "sb://host/hub",
		token: "t", hasToken: true, body: "token", size: len(msg),
	}
	testkit.Diff(t, want, got, cmp.AllowUnexported(request{}))
}

func TestRequestsWithLittleInThem(t *testing.T) {
	for what, msg := range map[string][]byte{
		"nothing":                  nil,
		"a body that is data":      encode(t, wire.DescriptorData, []byte("[]")),
		"a body that is no text":   encode(t, wire.DescriptorValue, int32(5)),
		"a body that is null":      encode(t, wire.DescriptorValue, nil),
		"an empty list":            encode(t, wire.DescriptorProperties, []any{}, wire.DescriptorValue, nil),
		"properties that are null": encode(t, wire.DescriptorProperties, []any{nil, nil, nil, nil, nil, nil}),
		"a reply-to of bytes":      encode(t, wire.DescriptorProperties, []any{nil, nil, nil, nil, []byte("x")}),
	} {
		q, err := parseRequest(msg)
		if err != nil || q.id != nil || q.body != "" || q.replyTo != "" {
			t.Errorf("%s: %+v, %v", what, q, err)
		}
	}
	for what, msg := range map[string][]byte{
		"no message":                  []byte("hello"),
		"properties that are no list": encode(t, wire.DescriptorProperties, "x"),
		"a cut-off value":             {0x00, 0x53, 0x77, 0xa1, 9, 'x'},
	} {
		if _, err := parseRequest(msg); err == nil {
			t.Errorf("%s was read", what)
		}
	}
}

// The id of a request comes back in the type it came in. Where there is none, the
// correlation id does for one.
func TestRepliesRepeatTheIDInItsType(t *testing.T) {
	for _, id := range []any{"text", uint64(7), uint64(70000), wire.UUID{1, 2, 3}, []byte{4, 5}} {
		for _, properties := range [][]any{{id, nil, nil, nil, nil, "ignored"}, {nil, nil, nil, nil, nil, id}} {
			q := testkit.Value(parseRequest(encode(t, wire.DescriptorProperties, properties)))(t)
			a := reply{status: 202, description: "Accepted"}
			if got := decodeReply(t, a.append(nil, q.id)).properties[propertyCorrelationID]; !cmp.Equal(got, id) {
				t.Errorf("%T %v came back as %T %v", id, id, got, got)
			}
		}
	}
}

// decoded is a reply as a client reads it.
type decoded struct {
	properties []any
	status     map[string]any
	body       any
}

func decodeReply(t testing.TB, msg []byte) decoded {
	t.Helper()
	m := testkit.Value(wire.Sections(msg))(t)
	value := func(section []byte) any {
		r := wire.NewReader(section)
		testkit.Must(t, testkit.Err(r.ReadDescriptor()))
		return testkit.Value(r.ReadAny())(t)
	}
	d := decoded{properties: value(m.Properties).([]any), status: map[string]any{}, body: value(m.Body)}
	for _, pair := range value(m.ApplicationProperties).(wire.Map) {
		d.status[pair.Key.(string)] = pair.Value
	}
	return d
}

// Both spellings, exact types, and the condition only where something failed.
func TestRepliesHaveBothSpellings(t *testing.T) {
	ok := decodeReply(t, (&reply{status: 202, description: "Accepted"}).append(nil, nil))
	testkit.Diff(t, map[string]any{
		"status-code": int32(202), "statusCode": int32(202), "status-description": "Accepted", "statusDescription": "Accepted",
	}, ok.status)
	if len(ok.properties) != propertyCount || ok.body != nil {
		t.Errorf("there are %d properties, and the body is %v", len(ok.properties), ok.body)
	}
	failed := decodeReply(t, (&reply{status: 404, description: "No.", condition: condNotFound}).append(nil, nil))
	if failed.status["error-condition"] != condNotFound {
		t.Errorf("the condition is %#v", failed.status["error-condition"])
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(encode(f, wire.DescriptorProperties, []any{"id"}, wire.DescriptorApplicationProperties, wire.Map{{Key: "name", Value: "x"}}, wire.DescriptorValue, "t"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		q, err := parseRequest(msg)
		if err != nil {
			return
		}
		testkit.Must(t, testkit.Err(wire.Sections((&reply{}).append(nil, q.id))), "the reply cannot be read")
	})
}

// A token of the wrong type is one that was brought, and good for nothing; null is none.
func TestTokensOfRequests(t *testing.T) {
	for _, tt := range []struct {
		value any
		token string
		has   bool
	}{
		{"t", "t", true}, {wire.Symbol("t"), "t", true}, {"", "", true}, {int32(1), "", true}, {[]byte("t"), "", true}, {nil, "", false},
	} {
		properties := wire.Map{{Key: "security_token", Value: tt.value}, {Key: "name", Value: "orders"}}
		q := testkit.Value(parseRequest(encode(t, wire.DescriptorApplicationProperties, properties)))(t)
		testkit.That(t, q.token == tt.token && q.hasToken == tt.has && q.name == "orders", "%v: %+v", tt.value, q)
	}
}
