package wire

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

// maxSmallTag is the longest delivery tag with which a transfer is still a small list. The
// standard allows 32 bytes.
const maxSmallTag = 128

// AppendTransfer writes a transfer.
func AppendTransfer(dst []byte, t *Transfer) []byte {
	if len(t.DeliveryTag) > maxSmallTag {
		dst, list := beginPerformative(dst, DescriptorTransfer)
		return EndList(appendTransferFields(dst, t), list, transferFields)
	}
	dst, list := beginSmall(dst, DescriptorTransfer, transferFields)
	return endSmall(appendTransferFields(dst, t), list)
}

// transferFields is how many there are.
const transferFields = 11

func appendTransferFields(dst []byte, t *Transfer) []byte {
	dst = AppendUint(dst, t.Handle)
	dst = appendOpt(dst, t.DeliveryID, AppendUint)
	dst = appendOpt(dst, Opt[[]byte]{t.DeliveryTag, t.DeliveryTag != nil}, AppendBinary)
	dst = appendOpt(dst, t.MessageFormat, AppendUint)
	dst = appendOpt(dst, t.Settled, AppendBool)
	dst = AppendBool(dst, t.More)
	dst = AppendNull(dst) // rcv-settle-mode
	dst = AppendNull(dst) // state
	dst = AppendNull(dst) // resume
	dst = AppendBool(dst, t.Aborted)
	return AppendNull(dst) // batchable
}

// ReadTransfer reads a transfer, its descriptor already read. The message, or its part, is
// the rest of the frame.
func (r *Reader) ReadTransfer() (Transfer, error) {
	var t Transfer
	f := r.fields()
	t.Handle = must(&f, f.uint(), "handle")
	t.DeliveryID = f.uint()
	t.DeliveryTag = f.binary()
	t.MessageFormat = f.uint()
	t.Settled = f.bool()
	t.More = f.bool().Value
	f.skip(3) // rcv-settle-mode, state, resume
	t.Aborted = f.bool().Value
	return t, f.done(r, "transfer")
}
