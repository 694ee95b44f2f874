package eventhubs

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H3, H8: messages as the clients' own encoders write them. What Event Hubs takes from them is
// taken, stored, and given back with its sections in order, with what is the hub's added and what
// was for the way here left out.
func TestWhatClientsWrite(t *testing.T) {
	for _, tt := range []struct {
		what, sent, header, annotations, rest string
	}{
		{"@azure/event-hubs 6.0.4: { body: null }",
			"00 53 70 45 00 53 72 d1 00 00 00 04 00 00 00 00 00 53 73 45 00 53 75 40",
			"00 53 70 45", "", "00 53 73 45 00 53 75 40"},
		{"@azure/event-hubs 6.0.4: { body: null } with a partition key",
			"00 53 70 d0 00 00 00 05 00 00 00 01 41" +
				"00 53 72 d1 00 00 00 1e 00 00 00 02 a3 13 78 2d 6f 70 74 2d 70 61 72 74 69 74 69 6f 6e 2d 6b 65 79 a1 03 6b 65 79" +
				"00 53 73 45 00 53 75 40",
			"00 53 70 d0 00 00 00 05 00 00 00 01 41", "", "00 53 73 45 00 53 75 40"},
		{"@azure/event-hubs 6.0.4: { bodyType: \"sequence\", body: null }",
			"00 53 70 45 00 53 73 45 00 53 76 40", "00 53 70 45", "", "00 53 73 45 00 53 76 40"},
		{"rhea 3: the footer before the body",
			"00 53 70 d0 00 00 00 0a 00 00 00 05 40 40 40 40 52 01 00 53 71 d1 00 00 00 09 00 00 00 02 a3 01 64 52 01" +
				"00 53 72 d1 00 00 00 0a 00 00 00 02 a3 01 6d a1 01 6e 00 53 73 45" +
				"00 53 78 d1 00 00 00 09 00 00 00 02 a1 01 66 52 01 00 53 75 a0 01 78",
			"", "a3 01 6d a1 01 6e",
			"00 53 73 45 00 53 75 a0 01 78 00 53 78 d1 00 00 00 09 00 00 00 02 a1 01 66 52 01"},
		{"rhea 3: a described value with an int for its descriptor, in a list",
			"00 53 70 45 00 53 73 45 00 53 77 d0 00 00 00 0a 00 00 00 01 00 54 05 a1 01 76",
			"00 53 70 45", "", "00 53 73 45 00 53 77 d0 00 00 00 0a 00 00 00 01 00 54 05 a1 01 76"},
		{"pyamqp: the delivery annotations behind everything",
			"00 53 72 c1 07 02 a3 01 6d a1 01 6e 00 53 74 c1 06 02 a1 01 61 54 01 00 53 75 a0 01 78" +
				"00 53 78 c1 06 02 a3 01 66 54 01 00 53 71 c1 06 02 a3 01 64 54 01",
			"", "a3 01 6d a1 01 6e", "00 53 74 c1 06 02 a1 01 61 54 01 00 53 75 a0 01 78 00 53 78 c1 06 02 a3 01 66 54 01"},
		{"pyamqp: a tuple, which is a described value with an int for its descriptor",
			"00 53 77 00 54 05 a1 01 76", "", "", "00 53 77 00 54 05 a1 01 76"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newOrders(t, 1)
			c := y.rawAs("RootManageSharedAccessKey")
			c.accepted(0, wire.Attach{Name: "s", Handle: 0, Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some("orders")}})
			c.send(0, 0, false, unhex(t, tt.sent))
			testkit.MustEqual(t, c.disposition().State.Outcome, wire.OutcomeAccepted)
			c.accepted(0, wire.Attach{
				Name: "r", Handle: 1, Role: wire.RoleReceiver, Target: &wire.Target{},
				Source: &wire.Source{Address: wire.Some("orders/ConsumerGroups/$Default/Partitions/0")},
			})
			c.credit(0, 1, 0, 10)
			got := testkit.Value(wire.Sections(c.receive()))(t)
			testkit.Slices(t, got.Header, unhex(t, tt.header), "header")
			testkit.Slices(t, got.Tail, unhex(t, tt.rest), "from the properties on")
			if !strings.Contains(string(got.MessageAnnotations), string(unhex(t, tt.annotations))) {
				t.Errorf("annotations are % x", got.MessageAnnotations)
			}
			testkit.Equal(t, got.DeliveryAnnotations == nil, true, "delivery annotations were passed on")
		})
	}
}

// unhex reads hexadecimal with spaces in it.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	return testkit.Value(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}
