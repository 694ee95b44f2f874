package wire

import "bytes"

// SASLInit is the mechanism that a client has chosen (§5.3.3.2).
type SASLInit struct {
	Mechanism Symbol
	// InitialResponse is the mechanism's own. HasResponse distinguishes an empty one from none.
	InitialResponse []byte
	HasResponse     bool
	Hostname        string
}

// The codes of an outcome (§5.3.3.6).
const (
	SASLOK   uint8 = 0
	SASLAuth uint8 = 1
	SASLTemp uint8 = 4
)

// AppendSASLMechanisms writes the mechanisms that a server offers (§5.3.3.1), as an array
// also when there is but one.
func AppendSASLMechanisms(dst []byte, mechanisms []Symbol) []byte {
	dst, list := beginPerformative(dst, DescriptorSASLMechanisms)
	return EndList(AppendSymbolArray(dst, mechanisms), list, 1)
}

// ReadSASLMechanisms reads the mechanisms, their descriptor already read.
func (r *Reader) ReadSASLMechanisms() ([]Symbol, error) {
	f := r.fields()
	offered := f.symbols()
	must(&f, Opt[[]Symbol]{offered, offered != nil}, "sasl-server-mechanisms")
	return offered, f.done(r, "sasl-mechanisms")
}

// AppendSASLInit writes a client's choice.
func AppendSASLInit(dst []byte, i *SASLInit) []byte {
	dst, list := beginPerformative(dst, DescriptorSASLInit)
	dst = AppendSymbol(dst, i.Mechanism)
	dst = appendOpt(dst, Opt[[]byte]{i.InitialResponse, i.HasResponse}, AppendBinary)
	dst = appendOpt(dst, Opt[string]{i.Hostname, i.Hostname != ""}, AppendString)
	return EndList(dst, list, 3)
}

// ReadSASLInit reads a client's choice, its descriptor already read.
func (r *Reader) ReadSASLInit() (SASLInit, error) {
	var i SASLInit
	f := r.fields()
	i.Mechanism = must(&f, f.symbol(), "mechanism")
	response := f.binary()
	i.InitialResponse, i.HasResponse = bytes.Clone(response), response != nil
	i.Hostname = f.string().Value
	return i, f.done(r, "sasl-init")
}

// AppendSASLOutcome writes how it went.
func AppendSASLOutcome(dst []byte, code uint8) []byte {
	dst, list := beginPerformative(dst, DescriptorSASLOutcome)
	dst = AppendUbyte(dst, code)
	return EndList(AppendNull(dst), list, 2) // additional-data
}

// ReadSASLOutcome reads how it went, its descriptor already read.
func (r *Reader) ReadSASLOutcome() (uint8, error) {
	f := r.fields()
	code := must(&f, f.ubyte(), "code")
	return code, f.done(r, "sasl-outcome")
}
