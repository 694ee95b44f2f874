package wire

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

// AppendBegin writes a begin.
func AppendBegin(dst []byte, b *Begin) []byte {
	dst, list := beginPerformative(dst, DescriptorBegin)
	dst = appendOpt(dst, b.RemoteChannel, AppendUshort)
	dst = AppendUint(dst, b.NextOutgoingID)
	dst = AppendUint(dst, b.IncomingWindow)
	dst = AppendUint(dst, b.OutgoingWindow)
	dst = appendOpt(dst, b.HandleMax, AppendUint)
	dst = appendCapabilities(dst, b.OfferedCapabilities)
	dst = appendCapabilities(dst, b.DesiredCapabilities)
	dst = appendFieldMap(dst, b.Properties)
	return EndList(dst, list, 8)
}

// ReadBegin reads a begin, its descriptor already read.
func (r *Reader) ReadBegin() (Begin, error) {
	var b Begin
	f := r.fields()
	b.RemoteChannel = f.ushort()
	b.NextOutgoingID = must(&f, f.uint(), "next-outgoing-id")
	b.IncomingWindow = must(&f, f.uint(), "incoming-window")
	b.OutgoingWindow = must(&f, f.uint(), "outgoing-window")
	b.HandleMax = f.uint()
	b.OfferedCapabilities = f.symbols()
	b.DesiredCapabilities = f.symbols()
	b.Properties = f.properties()
	return b, f.done(r, "begin")
}

// End ends a session (§2.7.8).
type End struct{ Error *Error }

// AppendEnd writes an end.
func AppendEnd(dst []byte, e *End) []byte {
	dst, list := beginPerformative(dst, DescriptorEnd)
	return EndList(AppendError(dst, e.Error), list, 1)
}

// ReadEnd reads an end, its descriptor already read.
func (r *Reader) ReadEnd() (End, error) {
	f := r.fields()
	e := End{Error: f.error()}
	return e, f.done(r, "end")
}
