package wire

// Disposition reports what became of deliveries (§2.7.6).
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

// AppendDisposition writes a disposition.
func AppendDisposition(dst []byte, d *Disposition) []byte {
	dst, list := beginPerformative(dst, DescriptorDisposition)
	dst = AppendBool(dst, bool(d.Role))
	dst = AppendUint(dst, d.First)
	dst = appendOpt(dst, d.Last, AppendUint)
	dst = AppendBool(dst, d.Settled)
	dst = appendState(dst, &d.State)
	dst = AppendNull(dst) // batchable
	return EndList(dst, list, 6)
}

// ReadDisposition reads a disposition, its descriptor already read.
func (r *Reader) ReadDisposition() (Disposition, error) {
	var d Disposition
	f := r.fields()
	d.Role = Role(must(&f, f.bool(), "role"))
	d.First = must(&f, f.uint(), "first")
	d.Last = f.uint()
	d.Settled = f.bool().Value
	d.State = f.state()
	return d, f.done(r, "disposition")
}

// AppendAccepted writes the state of a delivery that all is well with.
func AppendAccepted(dst []byte) []byte {
	return append(dst, byte(CodeDescribed), byte(CodeSmallUlong), byte(DescriptorAccepted), byte(CodeList8), 1, 0)
}

func appendState(dst []byte, s *State) []byte {
	switch s.Outcome {
	case OutcomeReceived:
		return appendNulls(dst, DescriptorReceived, 2)
	case OutcomeAccepted:
		return AppendAccepted(dst)
	case OutcomeRejected:
		dst, list := beginPerformative(dst, DescriptorRejected)
		return EndList(AppendError(dst, s.Error), list, 1)
	case OutcomeReleased:
		return appendNulls(dst, DescriptorReleased, 0)
	case OutcomeModified:
		return appendNulls(dst, DescriptorModified, 3)
	default:
		return AppendNull(dst)
	}
}

// appendNulls writes a described list of nulls.
func appendNulls(dst []byte, d Descriptor, count int) []byte {
	dst, list := beginPerformative(dst, d)
	for range count {
		dst = AppendNull(dst)
	}
	return EndList(dst, list, count)
}

// state reads a delivery state of whatever kind.
func (f *fields) state() State {
	if !f.next() {
		return State{}
	}
	d, known, err := f.r.readDescriptor()
	if err != nil {
		f.fail(err)
		return State{}
	}
	s := State{Outcome: OutcomeOther}
	if known {
		s.Outcome = outcomeOf(d)
	}
	if s.Outcome == OutcomeOther {
		if err := f.r.Skip(); err != nil {
			f.fail(err)
		}
		return s
	}
	in := f.r.fields()
	if s.Outcome == OutcomeRejected {
		s.Error = in.error()
	}
	f.within(&in, "delivery state")
	return s
}

func outcomeOf(d Descriptor) Outcome {
	switch d {
	case DescriptorReceived:
		return OutcomeReceived
	case DescriptorAccepted:
		return OutcomeAccepted
	case DescriptorRejected:
		return OutcomeRejected
	case DescriptorReleased:
		return OutcomeReleased
	case DescriptorModified:
		return OutcomeModified
	default:
		return OutcomeOther
	}
}
