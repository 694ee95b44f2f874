package wire

// Flow announces windows and credit (§2.7.4). Its properties are not read, and null is written.
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

// AppendFlow writes a flow.
func AppendFlow(dst []byte, f *Flow) []byte {
	dst, list := beginSmall(dst, DescriptorFlow, 11)
	dst = appendOpt(dst, f.NextIncomingID, AppendUint)
	dst = AppendUint(dst, f.IncomingWindow)
	dst = AppendUint(dst, f.NextOutgoingID)
	dst = AppendUint(dst, f.OutgoingWindow)
	dst = appendOpt(dst, f.Handle, AppendUint)
	dst = appendOpt(dst, f.DeliveryCount, AppendUint)
	dst = appendOpt(dst, f.LinkCredit, AppendUint)
	dst = appendOpt(dst, f.Available, AppendUint)
	dst = AppendBool(dst, f.Drain)
	dst = AppendBool(dst, f.Echo)
	dst = AppendNull(dst) // properties
	return endSmall(dst, list)
}

// ReadFlow reads a flow, its descriptor already read.
func (r *Reader) ReadFlow() (Flow, error) {
	var flow Flow
	f := r.fields()
	flow.NextIncomingID = f.uint()
	flow.IncomingWindow = must(&f, f.uint(), "incoming-window")
	flow.NextOutgoingID = must(&f, f.uint(), "next-outgoing-id")
	flow.OutgoingWindow = must(&f, f.uint(), "outgoing-window")
	flow.Handle = f.uint()
	flow.DeliveryCount = f.uint()
	flow.LinkCredit = f.uint()
	flow.Available = f.uint()
	flow.Drain = f.bool().Value
	flow.Echo = f.bool().Value
	return flow, f.done(r, "flow")
}
