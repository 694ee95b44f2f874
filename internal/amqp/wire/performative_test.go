package wire

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// exact is a performative in the very bytes that we write. Sizes and counts were reckoned
// by hand from the tables of §2.7, §3.4, §3.5 and §5.3.
type exact struct {
	name  string
	hex   string
	value any
}

const (
	hexError  = "00 53 1d c0 0a 03 a3 03 61 3a 62 a1 01 64 40"
	hexFilter = "c1 11 02 a3 01 66 00 80 00 00 46 8c 00 00 00 04 a1 01 78"
	hexSource = "00 53 28 c0 25 0b a1 01 71 40 40 40 40 40 40 " + hexFilter + " 00 53 24 45 a3 01 6f 40"
	hexTarget = "00 53 29 c0 08 07 40 40 40 40 40 40 40"
)

func exactVectors() []exact {
	failure := &Error{Condition: "a:b", Description: "d"}
	accepted := State{Outcome: OutcomeAccepted}
	source := &Source{Address: Some("q"),
		Filter:         Map{{Symbol("f"), Described{uint64(0x468c00000004), "x"}}},
		FilterBytes:    []byte("\xc1\x11\x02\xa3\x01f\x00\x80\x00\x00\x46\x8c\x00\x00\x00\x04\xa1\x01x"),
		DefaultOutcome: []byte("\x00\x53\x24\x45"), Outcomes: []byte("\xa3\x01o")}
	return []exact{
		{"open as the live service answers", "00 53 10 c0 17 0a a1 01 63 40 70 00 01 00 00 60 13 87 70 00 03 a9 80 40 40 40 40 40",
			Open{ContainerID: "c", MaxFrameSize: Some[uint32](65536), ChannelMax: Some[uint16](4999), IdleTimeout: Some[uint32](240000)}},
		{"open with everything", "00 53 10 c0 28 0a a1 01 63 a1 01 68 70 00 01 00 00 60 13 87 70 00 03 a9 80 40 40 40 " +
			"e0 06 02 a3 01 61 01 62 c1 07 02 a3 01 70 a1 01 76",
			Open{ContainerID: "c", Hostname: Some("h"), MaxFrameSize: Some[uint32](65536), ChannelMax: Some[uint16](4999),
				IdleTimeout: Some[uint32](240000), DesiredCapabilities: []Symbol{"a", "b"}, Properties: Map{{Symbol("p"), "v"}}}},
		{"begin", "00 53 11 c0 11 08 60 00 01 52 01 70 00 00 13 88 43 52 ff 40 40 40",
			Begin{RemoteChannel: Some[uint16](1), NextOutgoingID: 1, IncomingWindow: 5000, HandleMax: Some[uint32](255)}},
		{"attach that refuses", "00 53 12 c0 11 0e a1 01 6e 43 41 40 40 40 40 40 40 40 40 40 40 40",
			Attach{Name: "n", Role: RoleReceiver}},
		{"attach with everything", "00 53 12 c0 5d 0e a1 01 6e 52 01 42 50 01 50 00 " + hexSource + hexTarget +
			"40 40 43 80 ff ff ff ff ff ff ff ff e0 04 01 a3 01 63 40 c1 06 02 a3 01 65 55 00",
			Attach{Name: "n", Handle: 1, SenderSettleMode: Some(SenderSettled), ReceiverSettleMode: Some(ReceiverFirst),
				Source: source, Target: &Target{}, InitialDeliveryCount: Some[uint32](0), MaxMessageSize: Some(^uint64(0)),
				OfferedCapabilities: []Symbol{"c"}, Properties: Map{{Symbol("e"), int64(0)}}}},
		{"attach of a coordinator", "00 53 12 c0 17 0e a1 01 6e 43 42 40 40 40 00 53 30 c0 02 01 40 40 40 40 40 40 40 40",
			Attach{Name: "n", Target: &Target{Coordinator: true}}},
		{"flow of a link", "00 53 13 c0 17 0b 52 01 70 00 00 13 88 52 01 70 00 00 ff ff 43 43 52 64 43 42 42 40",
			Flow{NextIncomingID: Some[uint32](1), IncomingWindow: 5000, NextOutgoingID: 1, OutgoingWindow: 65535,
				Handle: Some[uint32](0), DeliveryCount: Some[uint32](0), LinkCredit: Some[uint32](100), Available: Some[uint32](0)}},
		{"flow of a session", "00 53 13 c0 0d 0b 52 01 43 43 43 40 40 40 40 41 41 40",
			Flow{NextIncomingID: Some[uint32](1), Drain: true, Echo: true}},
		{"transfer of an event", "00 53 14 c0 10 0b 52 01 43 a0 02 0a 0b 43 41 42 40 40 40 42 40",
			Transfer{Handle: 1, DeliveryID: Some[uint32](0), DeliveryTag: []byte{10, 11}, MessageFormat: Some[uint32](0), Settled: Some(true)}},
		{"transfer of a batch's beginning", "00 53 14 c0 12 0b 43 52 07 a0 00 70 80 01 37 00 40 41 40 40 40 42 40",
			Transfer{DeliveryID: Some[uint32](7), DeliveryTag: []byte{}, MessageFormat: Some[uint32](0x80013700), More: true}},
		{"transfer of a part that ends in nothing", "00 53 14 c0 0c 0b 43 40 40 40 42 42 40 40 40 41 40",
			Transfer{Settled: Some(false), Aborted: true}},
		{"disposition accepted", "00 53 15 c0 0d 06 41 52 07 40 41 00 53 24 c0 01 00 40",
			Disposition{Role: RoleReceiver, First: 7, Settled: true, State: accepted}},
		{"disposition rejected", "00 53 15 c0 1c 06 41 43 52 03 41 00 53 25 c0 10 01 " + hexError + " 40",
			Disposition{Role: RoleReceiver, Last: Some[uint32](3), Settled: true, State: State{OutcomeRejected, failure}}},
		{"disposition rejected without a reason", "00 53 15 c0 0e 06 41 52 07 40 41 00 53 25 c0 02 01 40 40",
			Disposition{Role: RoleReceiver, First: 7, Settled: true, State: State{Outcome: OutcomeRejected}}},
		{"disposition received", "00 53 15 c0 0f 06 42 52 07 40 42 00 53 23 c0 03 02 40 40 40",
			Disposition{First: 7, State: State{Outcome: OutcomeReceived}}},
		{"disposition released", "00 53 15 c0 0d 06 41 52 07 40 41 00 53 26 c0 01 00 40",
			Disposition{Role: RoleReceiver, First: 7, Settled: true, State: State{Outcome: OutcomeReleased}}},
		{"disposition modified", "00 53 15 c0 10 06 41 52 07 40 41 00 53 27 c0 04 03 40 40 40 40",
			Disposition{Role: RoleReceiver, First: 7, Settled: true, State: State{Outcome: OutcomeModified}}},
		{"disposition without a state", "00 53 15 c0 07 06 42 43 40 41 40 40", Disposition{Settled: true}},
		{"detach", "00 53 16 c0 04 03 43 41 40", Detach{Closed: true}},
		{"detach with an error", "00 53 16 c0 13 03 52 05 41 " + hexError, Detach{Handle: 5, Closed: true, Error: failure}},
		{"end", "00 53 17 c0 02 01 40", End{}},
		{"end with an error", "00 53 17 c0 10 01 " + hexError, End{failure}},
		{"close", "00 53 18 c0 02 01 40", Close{}},
		{"close with an error that has no text", "00 53 18 c0 0e 01 00 53 1d c0 08 03 a3 03 61 3a 62 40 40", Close{&Error{Condition: "a:b"}}},
		{"sasl-mechanisms", "00 53 40 c0 17 01 e0 14 02 a3 07 4d 53 53 42 43 42 53 09 41 4e 4f 4e 59 4d 4f 55 53",
			[]Symbol{"MSSBCBS", "ANONYMOUS"}},
		{"sasl-mechanisms with but one", "00 53 40 c0 0b 01 e0 08 01 a3 05 50 4c 41 49 4e", []Symbol{"PLAIN"}},
		{"sasl-init", "00 53 41 c0 0d 03 a3 05 50 4c 41 49 4e a0 00 a1 01 68",
			SASLInit{Mechanism: "PLAIN", InitialResponse: []byte{}, HasResponse: true, Hostname: "h"}},
		{"sasl-init without a response", "00 53 41 c0 0a 03 a3 05 50 4c 41 49 4e 40 40", SASLInit{Mechanism: "PLAIN"}},
		{"sasl-outcome", "00 53 44 c0 04 02 50 01 40", SASLAuth},
	}
}

func TestPerformativesAreWrittenAndReadAsTheStandardSays(t *testing.T) {
	seen := map[Descriptor]bool{}
	for _, v := range exactVectors() {
		t.Run(v.name, func(t *testing.T) {
			encoded := unhex(t, v.hex)
			got, c, rest, err := readBody(append(encoded, "payload"...))
			testkit.Must(t, err)
			testkit.Deep(t, got, v.value, "read")
			testkit.Equal(t, string(rest), "payload", "%q is left", rest)
			written := c.append([]byte("before"), v.value)
			testkit.Slices(t, written, append([]byte("before"), encoded...), "written")
			checkFullList(t, encoded, c.descriptor, c.fields)
			seen[c.descriptor] = true
		})
	}
	for _, c := range codecs() {
		testkit.Equal(t, seen[c.descriptor], true, "no vector for %s", c.name)
	}
}

// What we do not write ourselves, but clients do.
func TestPerformativesAreReadInEveryForm(t *testing.T) {
	failure := &Error{Condition: "a:b", Description: "d"}
	for _, v := range []exact{
		{"trailing nulls left out", "00 53 10 c0 04 01 a1 01 63", Open{ContainerID: "c"}},
		{"a list of the long form", "00 53 10 d0 00 00 00 07 00 00 00 01 a1 01 63", Open{ContainerID: "c"}},
		{"a descriptor by name", "00 a3 0e 61 6d 71 70 3a 6f 70 65 6e 3a 6c 69 73 74 c0 04 01 a1 01 63", Open{ContainerID: "c"}},
		{"a descriptor of the long form", "00 80 00 00 00 00 00 00 00 10 c0 04 01 a1 01 63", Open{ContainerID: "c"}},
		{"fields of a later version", "00 53 18 c0 0a 03 40 00 53 99 c0 01 00 a1 00", Close{}},
		{"locales", "00 53 10 c0 12 07 a1 01 63 40 40 40 40 a3 02 65 6e e0 04 01 a3 01 78", Open{ContainerID: "c"}},
		{"a capability without an array", "00 53 11 c0 0c 07 40 43 43 43 40 40 a3 03 61 3a 62",
			Begin{DesiredCapabilities: []Symbol{"a:b"}}},
		{"capabilities in a list", "00 53 11 c0 0e 06 40 43 43 43 40 c0 06 02 a3 01 61 a3 00", Begin{OfferedCapabilities: []Symbol{"a", ""}}},
		{"an array of nothing", "00 53 11 c0 09 06 40 43 43 43 40 e0 01 00", Begin{OfferedCapabilities: []Symbol{}}},
		{"close without any field", "00 53 18 45", Close{}},
		{"end without any field", "00 53 17 c0 01 00", End{}},
		{"detach that does not say whether it closes", "00 53 16 c0 02 01 43", Detach{}},
		{"booleans of the long form", "00 53 16 c0 05 02 52 01 56 01", Detach{Handle: 1, Closed: true}},
		{"an error that is short", "00 53 17 c0 0b 01 00 53 1d c0 05 01 a3 02 61 3a", End{&Error{Condition: "a:"}}},
		{"an error with info", "00 53 17 c0 12 01 00 53 1d c0 0c 03 a3 03 61 3a 62 a1 01 64 c1 01 00", End{failure}},
		{"source and target without any field", "00 53 12 c0 10 07 a1 01 6e 43 41 40 40 00 53 28 45 00 53 29 45",
			Attach{Name: "n", Role: true, Source: &Source{}, Target: &Target{}}},
		{"unsettled deliveries", "00 53 12 c0 15 09 a1 01 6e 43 42 40 40 40 40 c1 08 02 a0 01 74 00 53 24 45 41",
			Attach{Name: "n"}},
		{"a flow with properties", "00 53 13 c0 11 0b 40 43 43 43 40 40 40 40 40 40 c1 04 02 a3 00 43", Flow{}},
		{"a transfer that is short", "00 53 14 c0 02 01 43", Transfer{}},
		{"a transfer with a state", "00 53 14 c0 10 0b 43 40 40 40 40 40 50 01 00 53 24 45 41 41 41", Transfer{Aborted: true}},
		{"accepted as list0", "00 53 15 c0 09 05 41 43 40 41 00 53 24 45", Disposition{Role: true, Settled: true, State: State{Outcome: OutcomeAccepted}}},
		{"rejected as list0", "00 53 15 c0 09 05 41 43 40 41 00 53 25 45", Disposition{Role: true, Settled: true, State: State{Outcome: OutcomeRejected}}},
		{"received with its fields", "00 53 15 c0 0d 05 41 43 40 41 00 53 23 c0 03 02 43 44",
			Disposition{Role: true, Settled: true, State: State{Outcome: OutcomeReceived}}},
		{"a state of a transaction", "00 53 15 c0 0e 05 41 43 40 41 00 53 34 c0 04 01 a0 01 74",
			Disposition{Role: true, Settled: true, State: State{Outcome: OutcomeOther}}},
		{"a state of unknown name", "00 53 15 c0 0a 05 41 43 40 41 00 a3 01 78 45",
			Disposition{Role: true, Settled: true, State: State{Outcome: OutcomeOther}}},
		{"sasl mechanisms without an array", "00 53 40 c0 08 01 a3 05 50 4c 41 49 4e", []Symbol{"PLAIN"}},
		{"sasl outcome that is short", "00 53 44 c0 03 01 50 00", SASLOK},
	} {
		t.Run(v.name, func(t *testing.T) {
			got, _, rest, err := readBody(append(unhex(t, v.hex), "payload"...))
			testkit.Must(t, err)
			testkit.Deep(t, got, v.value, "read")
			testkit.Equal(t, string(rest), "payload", "%q is left", rest)
		})
	}
}

// A delivery tag that is longer than the standard allows makes a longer list.
func TestLongDeliveryTags(t *testing.T) {
	want := Transfer{Handle: 1, DeliveryTag: make([]byte, maxSmallTag+1)}
	r := NewReader(AppendTransfer(nil, &want))
	testkit.Equal(t, testkit.Value(r.ReadDescriptor())(t), DescriptorTransfer)
	testkit.Deep(t, testkit.Value(r.ReadTransfer())(t), want)
}
