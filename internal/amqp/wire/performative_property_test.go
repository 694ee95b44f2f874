package wire

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func opt[T any](of *rapid.Generator[T]) *rapid.Generator[Opt[T]] {
	return rapid.Custom(func(t *rapid.T) Opt[T] {
		if !rapid.Bool().Draw(t, "set") {
			return Opt[T]{}
		}
		return Some(of.Draw(t, "value"))
	})
}

func text() *rapid.Generator[string] { return rapid.StringN(-1, -1, 300) }

// fieldMap draws a map, or nil.
func fieldMap() *rapid.Generator[Map] {
	return rapid.Custom(func(t *rapid.T) Map {
		n := rapid.IntRange(-1, 3).Draw(t, "pairs")
		if n < 0 {
			return nil
		}
		m := make(Map, n)
		for i := range m {
			m[i] = Pair{symbol().Draw(t, "key"), anyValue(2).Draw(t, "value")}
		}
		return m
	})
}

// capabilities draws some, or nil.
func capabilities() *rapid.Generator[[]Symbol] {
	return rapid.Custom(func(t *rapid.T) []Symbol {
		if s := rapid.SliceOfN(symbol(), 0, 12).Draw(t, "capabilities"); len(s) > 0 {
			return s
		}
		return nil
	})
}

// encodedValue draws the encoding of a value that is not null, or nil.
func encodedValue() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		v := anyValue(2).Draw(t, "value")
		if v == nil {
			return nil
		}
		return testkit.Value(AppendAny(nil, v))(t)
	})
}

func drawSource(t *rapid.T) *Source {
	s := &Source{
		Address: opt(text()).Draw(t, "address"), Durable: opt(rapid.Uint32()).Draw(t, "durable"),
		ExpiryPolicy: opt(symbol()).Draw(t, "expiry"), Timeout: opt(rapid.Uint32()).Draw(t, "timeout"),
		Dynamic: opt(rapid.Bool()).Draw(t, "dynamic"), DynamicNodeProperties: encodedValue().Draw(t, "node"),
		DistributionMode: opt(symbol()).Draw(t, "mode"), Filter: fieldMap().Draw(t, "filter"),
		DefaultOutcome: encodedValue().Draw(t, "outcome"), Outcomes: encodedValue().Draw(t, "outcomes"),
		Capabilities: encodedValue().Draw(t, "capabilities"),
	}
	if s.Filter != nil {
		s.FilterBytes, _ = AppendAny(nil, s.Filter)
	}
	return s
}

func drawTarget(t *rapid.T) *Target {
	if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
		return &Target{Coordinator: true}
	}
	return &Target{
		Address: opt(text()).Draw(t, "address"), Durable: opt(rapid.Uint32()).Draw(t, "durable"),
		ExpiryPolicy: opt(symbol()).Draw(t, "expiry"), Timeout: opt(rapid.Uint32()).Draw(t, "timeout"),
		Dynamic: opt(rapid.Bool()).Draw(t, "dynamic"), DynamicNodeProperties: encodedValue().Draw(t, "node"),
		Capabilities: encodedValue().Draw(t, "capabilities"),
	}
}

func drawAttach(t *rapid.T) any {
	a := Attach{
		Name: text().Draw(t, "name"), Handle: rapid.Uint32().Draw(t, "handle"), Role: Role(rapid.Bool().Draw(t, "role")),
		SenderSettleMode:     opt(rapid.SampledFrom([]SettleMode{SenderUnsettled, SenderSettled, SenderMixed})).Draw(t, "snd"),
		ReceiverSettleMode:   opt(rapid.SampledFrom([]SettleMode{ReceiverFirst, ReceiverSecond})).Draw(t, "rcv"),
		InitialDeliveryCount: opt(rapid.Uint32()).Draw(t, "count"), MaxMessageSize: opt(rapid.Uint64()).Draw(t, "size"),
		OfferedCapabilities: capabilities().Draw(t, "offered"), DesiredCapabilities: capabilities().Draw(t, "desired"),
		Properties: fieldMap().Draw(t, "properties"),
	}
	if rapid.Bool().Draw(t, "source") {
		a.Source = drawSource(t)
	}
	if rapid.Bool().Draw(t, "target") {
		a.Target = drawTarget(t)
	}
	return a
}

func drawError(t *rapid.T) *Error {
	if rapid.Bool().Draw(t, "no error") {
		return nil
	}
	return &Error{Condition: symbol().Draw(t, "condition"), Description: text().Draw(t, "description")}
}

func drawDisposition(t *rapid.T) any {
	d := Disposition{
		Role: Role(rapid.Bool().Draw(t, "role")), First: rapid.Uint32().Draw(t, "first"), Last: opt(rapid.Uint32()).Draw(t, "last"),
		Settled: rapid.Bool().Draw(t, "settled"),
		State:   State{Outcome: Outcome(rapid.IntRange(int(OutcomeNone), int(OutcomeModified)).Draw(t, "outcome"))},
	}
	if d.State.Outcome == OutcomeRejected {
		d.State.Error = drawError(t)
	}
	return d
}

func drawTransfer(t *rapid.T) any {
	tr := Transfer{
		Handle: rapid.Uint32().Draw(t, "handle"), DeliveryID: opt(rapid.Uint32()).Draw(t, "id"),
		MessageFormat: opt(rapid.Uint32()).Draw(t, "format"), Settled: opt(rapid.Bool()).Draw(t, "settled"),
		More: rapid.Bool().Draw(t, "more"), Aborted: rapid.Bool().Draw(t, "aborted"),
	}
	if rapid.Bool().Draw(t, "tagged") {
		tr.DeliveryTag = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "tag")
	}
	return tr
}

func drawFlow(t *rapid.T) any {
	number := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 300))
	return Flow{
		NextIncomingID: opt(number).Draw(t, "incoming id"), IncomingWindow: number.Draw(t, "incoming window"),
		NextOutgoingID: number.Draw(t, "outgoing id"), OutgoingWindow: number.Draw(t, "outgoing window"),
		Handle: opt(number).Draw(t, "handle"), DeliveryCount: opt(number).Draw(t, "count"), LinkCredit: opt(number).Draw(t, "credit"),
		Available: opt(number).Draw(t, "available"), Drain: rapid.Bool().Draw(t, "drain"), Echo: rapid.Bool().Draw(t, "echo"),
	}
}

func drawSASLInit(t *rapid.T) any {
	i := SASLInit{Mechanism: symbol().Draw(t, "mechanism"), Hostname: text().Draw(t, "host")}
	if i.HasResponse = rapid.Bool().Draw(t, "response"); i.HasResponse {
		i.InitialResponse = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "response")
	}
	return i
}

// draws has a generator for each codec.
func draws() map[Descriptor]func(*rapid.T) any {
	return map[Descriptor]func(*rapid.T) any{
		DescriptorOpen: func(t *rapid.T) any {
			return Open{
				ContainerID: text().Draw(t, "container"), Hostname: opt(text()).Draw(t, "host"), MaxFrameSize: opt(rapid.Uint32()).Draw(t, "frame"),
				ChannelMax: opt(rapid.Uint16()).Draw(t, "channel"), IdleTimeout: opt(rapid.Uint32()).Draw(t, "idle"),
				OfferedCapabilities: capabilities().Draw(t, "offered"), DesiredCapabilities: capabilities().Draw(t, "desired"),
				Properties: fieldMap().Draw(t, "properties"),
			}
		},
		DescriptorBegin: func(t *rapid.T) any {
			return Begin{
				RemoteChannel: opt(rapid.Uint16()).Draw(t, "channel"), NextOutgoingID: rapid.Uint32().Draw(t, "id"),
				IncomingWindow: rapid.Uint32().Draw(t, "in"), OutgoingWindow: rapid.Uint32().Draw(t, "out"),
				HandleMax:           opt(rapid.Uint32()).Draw(t, "handle"),
				OfferedCapabilities: capabilities().Draw(t, "offered"), DesiredCapabilities: capabilities().Draw(t, "desired"),
				Properties: fieldMap().Draw(t, "properties"),
			}
		},
		DescriptorAttach:      drawAttach,
		DescriptorFlow:        drawFlow,
		DescriptorTransfer:    drawTransfer,
		DescriptorDisposition: drawDisposition,
		DescriptorDetach: func(t *rapid.T) any {
			return Detach{rapid.Uint32().Draw(t, "handle"), rapid.Bool().Draw(t, "closed"), drawError(t)}
		},
		DescriptorEnd:   func(t *rapid.T) any { return End{drawError(t)} },
		DescriptorClose: func(t *rapid.T) any { return Close{drawError(t)} },
		DescriptorSASLMechanisms: func(t *rapid.T) any {
			return rapid.SliceOfN(symbol(), 0, 12).Draw(t, "mechanisms")
		},
		DescriptorSASLInit:    drawSASLInit,
		DescriptorSASLOutcome: func(t *rapid.T) any { return rapid.Uint8().Draw(t, "code") },
	}
}

// Whatever is written is read as it was, up to its end, and has every field.
func TestPerformativesSurviveTheWire(t *testing.T) {
	all := draws()
	for _, c := range codecs() {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := all[c.descriptor](t)
				encoded := c.append(nil, want)
				got, read, rest, err := readBody(append(encoded, 0x3f))
				if err != nil || read.descriptor != c.descriptor || !reflect.DeepEqual(got, want) {
					t.Fatalf("read %#v, %v; want %#v", got, err, want)
				}
				testkit.MustEqual(t, len(rest), 1, "% x is left", rest)
				checkFullList(t, encoded, c.descriptor, c.fields)
				cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")
				if got, _, _, err := readBody(encoded[:cut:cut]); err == nil {
					t.Fatalf("the first %d bytes of % x read as %+v", cut, encoded, got)
				}
			})
		})
	}
}
