package wire

import (
	"bytes"
	"fmt"
)

// fields reads the list of a performative, field by field. Behind the end of the list, and
// after an error, every field is null; the error comes out at the end.
//
// It has a reader of its own, set back into the one it was made from when it is done: a
// pointer, next to an error that goes who knows where, would move every Reader to the heap.
type fields struct {
	r    Reader
	span Span
	left int
	err  error
}

func (r *Reader) fields() fields {
	s, err := r.EnterList()
	return fields{r: *r, span: s, left: s.Count, err: err}
}

// next reports whether there is a value to read for the next field.
func (f *fields) next() bool {
	if f.left == 0 {
		return false
	}
	f.left--
	return !f.r.TryNull()
}

// fail ends the reading.
func (f *fields) fail(err error) {
	f.left, f.err = 0, err
}

// done passes the fields that nobody asked for, such as those of a later version, and has
// the reader that the list came from go on behind it.
func (f *fields) done(r *Reader, what string) error {
	f.skip(f.left)
	if f.err == nil {
		f.err = f.r.Leave(f.span)
	}
	*r = f.r
	if f.err != nil {
		return fmt.Errorf("read %s: %w", what, f.err)
	}
	return nil
}

// must gives the value of a field that may not be null.
func must[T any](f *fields, field Opt[T], name string) T {
	if !field.Set && f.err == nil {
		f.fail(f.r.fail(f.r.off, name, ErrMissing))
	}
	return field.Value
}

// skip passes so many fields, whatever they are.
func (f *fields) skip(n int) {
	for range n {
		if !f.next() || f.r.skipFixed() {
			continue
		}
		if err := f.r.Skip(); err != nil {
			f.fail(err)
		}
	}
}

// field makes a field of what was read.
func field[T any](f *fields, v T, err error) Opt[T] {
	if err != nil {
		f.fail(err)
		return Opt[T]{}
	}
	return Some(v)
}

func (f *fields) bool() (o Opt[bool]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadBool()
	return field(f, v, err)
}

func (f *fields) ubyte() (o Opt[uint8]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadUbyte()
	return field(f, v, err)
}

func (f *fields) ushort() (o Opt[uint16]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadUshort()
	return field(f, v, err)
}

func (f *fields) uint() (o Opt[uint32]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadUint()
	return field(f, v, err)
}

func (f *fields) ulong() (o Opt[uint64]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadUlong()
	return field(f, v, err)
}

func (f *fields) string() (o Opt[string]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadString()
	return field(f, v, err)
}

func (f *fields) symbol() (o Opt[Symbol]) {
	if !f.next() {
		return o
	}
	v, err := f.r.ReadSymbol()
	return field(f, v, err)
}

// binary shares the reader's bytes, and is nil for null.
func (f *fields) binary() []byte {
	if !f.next() {
		return nil
	}
	b, err := f.r.ReadBinary()
	return field(f, b, err).Value
}

func (f *fields) symbols() []Symbol {
	if !f.next() {
		return nil
	}
	s, err := f.r.ReadSymbols()
	return field(f, s, err).Value
}

// settleMode refuses a mode past the last that there is.
func (f *fields) settleMode(last SettleMode) (o Opt[SettleMode]) {
	m := f.ubyte()
	if SettleMode(m.Value) > last {
		f.fail(f.r.fail(f.r.off-1, "settle mode", ErrMalformed))
		return o
	}
	return Opt[SettleMode]{Value: SettleMode(m.Value), Set: m.Set}
}

// fieldMap decodes a map, and gives its encoding too; both are nil for null.
func (f *fields) fieldMap() (m Map, encoded []byte) {
	if !f.next() {
		return nil, nil
	}
	start := f.r.off
	v, err := f.r.ReadAny()
	if err != nil {
		f.fail(err)
		return nil, nil
	}
	m, ok := v.(Map)
	if !ok {
		f.fail(f.r.wrong(start, Code(f.r.buf[start]), "map"))
		return nil, nil
	}
	return m, f.r.buf[start:f.r.off]
}

func (f *fields) properties() Map {
	m, _ := f.fieldMap()
	return m
}

// encoded copies a value of any type as it is, nil for null.
func (f *fields) encoded() []byte {
	if !f.next() {
		return nil
	}
	start := f.r.off
	if err := f.r.Skip(); err != nil {
		f.fail(err)
		return nil
	}
	return bytes.Clone(f.r.buf[start:f.r.off])
}

// described begins a field of a described type, and reports whether it is there. Its list is
// read by fields of their own, which go on behind it when they are done.
func (f *fields) described(want Descriptor, name string) bool {
	if !f.next() {
		return false
	}
	at := f.r.off
	d, err := f.r.ReadDescriptor()
	if err == nil && d != want {
		err = f.r.fail(at, name, ErrMalformed)
	}
	if err != nil {
		f.fail(err)
	}
	return err == nil
}

// within takes over how the reading of a field's own fields has ended.
func (f *fields) within(inner *fields, what string) {
	if err := inner.done(&f.r, what); err != nil {
		f.fail(err)
	}
}
