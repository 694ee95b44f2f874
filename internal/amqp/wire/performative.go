package wire

// The performatives of a connection's life (§2.7). Each Append writes the descriptor in
// its short form and every field, nulls included: one client reads fields by their place
// and knows no shortened list. Each Read takes a list that may be shorter, as the
// standard allows; fields that are missing are null.
//
// On the hot path are Transfer, Flow and Disposition: reading and writing them allocates
// nothing, and what they hold of variable length shares the reader's bytes.

// Opt is a field that may be null.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some is a field that is not null.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Or gives the value, or another where there is none.
func (o Opt[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// Role tells which end of a link speaks (§2.8.1). On the wire it is a boolean.
type Role bool

const (
	RoleSender   Role = false
	RoleReceiver Role = true
)

// SettleMode is a sender's (§2.8.2) or a receiver's (§2.8.3) mode of settlement.
type SettleMode uint8

const (
	SenderUnsettled SettleMode = 0
	SenderSettled   SettleMode = 1
	SenderMixed     SettleMode = 2

	ReceiverFirst  SettleMode = 0
	ReceiverSecond SettleMode = 1
)

// Open begins a connection (§2.7.1).
type Open struct {
	ContainerID         string
	Hostname            Opt[string]
	MaxFrameSize        Opt[uint32]
	ChannelMax          Opt[uint16]
	IdleTimeout         Opt[uint32] // milliseconds
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

// Begin begins a session (§2.7.2).
type Begin struct {
	RemoteChannel       Opt[uint16]
	NextOutgoingID      uint32
	IncomingWindow      uint32
	OutgoingWindow      uint32
	HandleMax           Opt[uint32]
	OfferedCapabilities []Symbol
	DesiredCapabilities []Symbol
	Properties          Map
}

// Attach begins a link (§2.7.3).
type Attach struct {
	Name                 string
	Handle               uint32
	Role                 Role
	SenderSettleMode     Opt[SettleMode]
	ReceiverSettleMode   Opt[SettleMode]
	Source               *Source
	Target               *Target
	InitialDeliveryCount Opt[uint32]
	MaxMessageSize       Opt[uint64]
	OfferedCapabilities  []Symbol
	DesiredCapabilities  []Symbol
	Properties           Map
}

// Source is where messages come from (§3.5.3). What an echo has to repeat and nobody
// here looks into is kept as its encoding; nil means null.
type Source struct {
	Address               Opt[string]
	Durable               Opt[uint32]
	ExpiryPolicy          Opt[Symbol]
	Timeout               Opt[uint32]
	Dynamic               Opt[bool]
	DynamicNodeProperties []byte
	DistributionMode      Opt[Symbol]
	// Filter is decoded for who looks for a position; FilterBytes is its encoding.
	Filter         Map
	FilterBytes    []byte
	DefaultOutcome []byte
	Outcomes       []byte
	Capabilities   []byte
}

// Target is where messages go (§3.5.4).
type Target struct {
	Address               Opt[string]
	Durable               Opt[uint32]
	ExpiryPolicy          Opt[Symbol]
	Timeout               Opt[uint32]
	Dynamic               Opt[bool]
	DynamicNodeProperties []byte
	Capabilities          []byte
	// Coordinator: it is not a target at all but a transaction coordinator (§4.5.1),
	// which has other fields; they are not read.
	Coordinator bool
}

// Flow tells windows and credit (§2.7.4). Its properties are not read, and null is written.
type Flow struct {
	NextIncomingID Opt[uint32]
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         Opt[uint32]
	DeliveryCount  Opt[uint32]
	LinkCredit     Opt[uint32]
	Available      Opt[uint32]
	Drain          bool
	Echo           bool
}

// Transfer carries a message, or a part of one, which follows it in the frame (§2.7.5).
// A delivery state that a sender gives with it is not read, and null is written.
type Transfer struct {
	Handle        uint32
	DeliveryID    Opt[uint32]
	DeliveryTag   []byte
	MessageFormat Opt[uint32]
	Settled       Opt[bool]
	More          bool
	Aborted       bool
}

// Disposition tells what became of deliveries (§2.7.6).
type Disposition struct {
	Role    Role
	First   uint32
	Last    Opt[uint32]
	Settled bool
	State   State
}

// Outcome is the kind of a delivery state (§3.4).
type Outcome uint8

const (
	// OutcomeNone: no state at all.
	OutcomeNone Outcome = iota
	OutcomeReceived
	OutcomeAccepted
	OutcomeRejected
	OutcomeReleased
	OutcomeModified
	// OutcomeOther: a state that the standard's messaging part does not have, such as
	// a transactional one. It is read and never written.
	OutcomeOther
)

// State is a delivery state. Error belongs to OutcomeRejected, and may be nil; the
// fields of received and modified are not read, and null is written.
type State struct {
	Outcome Outcome
	Error   *Error
}

// Detach ends a link (§2.7.7).
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

// End ends a session (§2.7.8).
type End struct{ Error *Error }

// Close ends a connection (§2.7.9).
type Close struct{ Error *Error }

// Error is what one end tells the other when it gives up (§2.8.14). Its info map is not
// read, and null is written.
type Error struct {
	Condition   Symbol
	Description string
}

func (e *Error) Error() string {
	if e.Description == "" {
		return string(e.Condition)
	}
	return string(e.Condition) + ": " + e.Description
}
