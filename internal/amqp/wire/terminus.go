package wire

import "bytes"

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

// appendSource writes a source, null when nil.
func appendSource(dst []byte, s *Source) []byte {
	if s == nil {
		return AppendNull(dst)
	}
	dst, list := beginPerformative(dst, DescriptorSource)
	dst = appendOpt(dst, s.Address, AppendString)
	dst = appendOpt(dst, s.Durable, AppendUint)
	dst = appendOpt(dst, s.ExpiryPolicy, AppendSymbol)
	dst = appendOpt(dst, s.Timeout, AppendUint)
	dst = appendOpt(dst, s.Dynamic, AppendBool)
	dst = appendEncoded(dst, s.DynamicNodeProperties)
	dst = appendOpt(dst, s.DistributionMode, AppendSymbol)
	if s.FilterBytes != nil {
		dst = append(dst, s.FilterBytes...)
	} else {
		dst = appendFieldMap(dst, s.Filter)
	}
	dst = appendEncoded(dst, s.DefaultOutcome)
	dst = appendEncoded(dst, s.Outcomes)
	dst = appendEncoded(dst, s.Capabilities)
	return EndList(dst, list, 11)
}

// source reads a source, nil for null.
func (f *fields) source() *Source {
	if !f.described(DescriptorSource, "source") {
		return nil
	}
	var s Source
	in := f.r.fields()
	s.Address = in.string()
	s.Durable = in.uint()
	s.ExpiryPolicy = in.symbol()
	s.Timeout = in.uint()
	s.Dynamic = in.bool()
	s.DynamicNodeProperties = in.encoded()
	s.DistributionMode = in.symbol()
	s.Filter, s.FilterBytes = in.fieldMap()
	s.FilterBytes = bytes.Clone(s.FilterBytes)
	s.DefaultOutcome = in.encoded()
	s.Outcomes = in.encoded()
	s.Capabilities = in.encoded()
	f.within(&in, "source")
	return &s
}

// appendTarget writes a target, null when nil.
func appendTarget(dst []byte, t *Target) []byte {
	if t == nil {
		return AppendNull(dst)
	}
	if t.Coordinator {
		dst, list := beginPerformative(dst, DescriptorCoordinator)
		return EndList(AppendNull(dst), list, 1)
	}
	dst, list := beginPerformative(dst, DescriptorTarget)
	dst = appendOpt(dst, t.Address, AppendString)
	dst = appendOpt(dst, t.Durable, AppendUint)
	dst = appendOpt(dst, t.ExpiryPolicy, AppendSymbol)
	dst = appendOpt(dst, t.Timeout, AppendUint)
	dst = appendOpt(dst, t.Dynamic, AppendBool)
	dst = appendEncoded(dst, t.DynamicNodeProperties)
	dst = appendEncoded(dst, t.Capabilities)
	return EndList(dst, list, 7)
}

// target reads a target or a coordinator, nil for null.
func (f *fields) target() *Target {
	if !f.next() {
		return nil
	}
	at := f.r.off
	d, err := f.r.ReadDescriptor()
	switch {
	case err != nil:
		f.fail(err)
		return nil
	case d == DescriptorCoordinator:
		in := f.r.fields()
		f.within(&in, "coordinator")
		return &Target{Coordinator: true}
	case d != DescriptorTarget:
		f.fail(f.r.fail(at, "target", ErrMalformed))
		return nil
	}
	var t Target
	in := f.r.fields()
	t.Address = in.string()
	t.Durable = in.uint()
	t.ExpiryPolicy = in.symbol()
	t.Timeout = in.uint()
	t.Dynamic = in.bool()
	t.DynamicNodeProperties = in.encoded()
	t.Capabilities = in.encoded()
	f.within(&in, "target")
	return &t
}
