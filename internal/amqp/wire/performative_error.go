package wire

import "strings"

// Error is what one end sends the other when it gives up (§2.8.14). Its info map is not
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

// AppendError writes an error, null when nil. A description may quote what a stranger sent;
// where that is not valid UTF-8, it is replaced.
func AppendError(dst []byte, e *Error) []byte {
	if e == nil {
		return AppendNull(dst)
	}
	dst, list := beginPerformative(dst, DescriptorError)
	dst = AppendSymbol(dst, e.Condition)
	if e.Description == "" {
		dst = AppendNull(dst)
	} else {
		dst = AppendString(dst, strings.ToValidUTF8(e.Description, "\ufffd"))
	}
	dst = AppendNull(dst) // info
	return EndList(dst, list, 3)
}

// error reads an error, nil for null.
func (f *fields) error() *Error {
	if !f.described(DescriptorError, "error") {
		return nil
	}
	var e Error
	in := f.r.fields()
	e.Condition = must(&in, in.symbol(), "condition")
	e.Description = in.string().Value
	f.within(&in, "error")
	return &e
}
