package wire

// The performatives of a connection's life (§2.7). Each Append writes the descriptor in
// its short form and every field, nulls included: one client reads fields by their position
// and knows no shortened list. Each Read takes a list that may be shorter, as the
// standard allows, or longer, as a later one might; fields that are missing are null.
//
// On the hot path are Transfer, Flow and Disposition: reading and writing them allocates
// nothing (but for the error of a rejection), and a delivery tag shares the reader's bytes.
// Nothing else that is read does, so that it may be kept.

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

// Role is which end of a link speaks (§2.8.1). On the wire it is a boolean.
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

// beginPerformative opens a described list.
func beginPerformative(dst []byte, d Descriptor) ([]byte, Mark) {
	return BeginList(AppendDescriptor(dst, d))
}

// beginSmall opens a described list of count fields that is known to take few bytes. What
// goes out for each event or answer is written this way, in one go, with nothing to move.
func beginSmall(dst []byte, d Descriptor, count byte) ([]byte, Mark) {
	return append(dst, byte(CodeDescribed), byte(CodeSmallUlong), byte(d), byte(CodeList8), 0, count), Mark(len(dst))
}

// endSmall fills in the size of such a list, or of a map begun like it.
func endSmall(dst []byte, m Mark) []byte {
	at := int(m) + smallSizeAt
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// smallSizeAt is where the size stands: behind 00 53 xx c0.
const smallSizeAt = 4

// appendOpt writes a field that may be null.
func appendOpt[T any](dst []byte, o Opt[T], write func([]byte, T) []byte) []byte {
	if !o.Set {
		return AppendNull(dst)
	}
	return write(dst, o.Value)
}

func appendSettleMode(dst []byte, m SettleMode) []byte { return AppendUbyte(dst, uint8(m)) }

// appendCapabilities writes an array, or null when there are none.
func appendCapabilities(dst []byte, v []Symbol) []byte {
	if len(v) == 0 {
		return AppendNull(dst)
	}
	return AppendSymbolArray(dst, v)
}

// appendFieldMap writes a map. One that has no encoding, because some text in it is not
// valid, is as good as none: its sender is a stranger whose text came through us.
func appendFieldMap(dst []byte, m Map) []byte {
	if m == nil {
		return AppendNull(dst)
	}
	out, err := AppendAny(dst, m)
	if err != nil {
		return AppendNull(dst)
	}
	return out
}

// appendEncoded writes what is kept as its encoding.
func appendEncoded(dst, encoded []byte) []byte {
	if encoded == nil {
		return AppendNull(dst)
	}
	return append(dst, encoded...)
}
