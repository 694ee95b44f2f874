package wire

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

// AppendAttach writes an attach.
func AppendAttach(dst []byte, a *Attach) []byte {
	dst, list := beginPerformative(dst, DescriptorAttach)
	dst = AppendString(dst, a.Name)
	dst = AppendUint(dst, a.Handle)
	dst = AppendBool(dst, bool(a.Role))
	dst = appendOpt(dst, a.SenderSettleMode, appendSettleMode)
	dst = appendOpt(dst, a.ReceiverSettleMode, appendSettleMode)
	dst = appendSource(dst, a.Source)
	dst = appendTarget(dst, a.Target)
	dst = AppendNull(dst) // unsettled
	dst = AppendNull(dst) // incomplete-unsettled
	dst = appendOpt(dst, a.InitialDeliveryCount, AppendUint)
	dst = appendOpt(dst, a.MaxMessageSize, AppendUlong)
	dst = appendCapabilities(dst, a.OfferedCapabilities)
	dst = appendCapabilities(dst, a.DesiredCapabilities)
	dst = appendFieldMap(dst, a.Properties)
	return EndList(dst, list, 14)
}

// ReadAttach reads an attach, its descriptor already read.
func (r *Reader) ReadAttach() (Attach, error) {
	var a Attach
	f := r.fields()
	a.Name = must(&f, f.string(), "name")
	a.Handle = must(&f, f.uint(), "handle")
	a.Role = Role(must(&f, f.bool(), "role"))
	a.SenderSettleMode = f.settleMode(SenderMixed)
	a.ReceiverSettleMode = f.settleMode(ReceiverSecond)
	a.Source = f.source()
	a.Target = f.target()
	f.skip(2) // unsettled, incomplete-unsettled
	a.InitialDeliveryCount = f.uint()
	a.MaxMessageSize = f.ulong()
	a.OfferedCapabilities = f.symbols()
	a.DesiredCapabilities = f.symbols()
	a.Properties = f.properties()
	return a, f.done(r, "attach")
}

// Detach ends a link (§2.7.7).
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

// AppendDetach writes a detach.
func AppendDetach(dst []byte, d *Detach) []byte {
	dst, list := beginPerformative(dst, DescriptorDetach)
	dst = AppendUint(dst, d.Handle)
	dst = AppendBool(dst, d.Closed)
	return EndList(AppendError(dst, d.Error), list, 3)
}

// ReadDetach reads a detach, its descriptor already read.
func (r *Reader) ReadDetach() (Detach, error) {
	var d Detach
	f := r.fields()
	d.Handle = must(&f, f.uint(), "handle")
	d.Closed = f.bool().Value
	d.Error = f.error()
	return d, f.done(r, "detach")
}
