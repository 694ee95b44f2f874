package wire

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

// AppendOpen writes an open.
func AppendOpen(dst []byte, o *Open) []byte {
	dst, list := beginPerformative(dst, DescriptorOpen)
	dst = AppendString(dst, o.ContainerID)
	dst = appendOpt(dst, o.Hostname, AppendString)
	dst = appendOpt(dst, o.MaxFrameSize, AppendUint)
	dst = appendOpt(dst, o.ChannelMax, AppendUshort)
	dst = appendOpt(dst, o.IdleTimeout, AppendUint)
	dst = AppendNull(dst) // outgoing-locales
	dst = AppendNull(dst) // incoming-locales
	dst = appendCapabilities(dst, o.OfferedCapabilities)
	dst = appendCapabilities(dst, o.DesiredCapabilities)
	dst = appendFieldMap(dst, o.Properties)
	return EndList(dst, list, 10)
}

// ReadOpen reads an open, its descriptor already read.
func (r *Reader) ReadOpen() (Open, error) {
	var o Open
	f := r.fields()
	o.ContainerID = must(&f, f.string(), "container-id")
	o.Hostname = f.string()
	o.MaxFrameSize = f.uint()
	o.ChannelMax = f.ushort()
	o.IdleTimeout = f.uint()
	f.skip(2) // outgoing-locales, incoming-locales
	o.OfferedCapabilities = f.symbols()
	o.DesiredCapabilities = f.symbols()
	o.Properties = f.properties()
	return o, f.done(r, "open")
}

// Close ends a connection (§2.7.9).
type Close struct{ Error *Error }

// AppendClose writes a close.
func AppendClose(dst []byte, c *Close) []byte {
	dst, list := beginPerformative(dst, DescriptorClose)
	return EndList(AppendError(dst, c.Error), list, 1)
}

// ReadClose reads a close, its descriptor already read.
func (r *Reader) ReadClose() (Close, error) {
	f := r.fields()
	c := Close{Error: f.error()}
	return c, f.done(r, "close")
}
