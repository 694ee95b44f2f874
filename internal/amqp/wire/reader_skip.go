package wire

// Skip reads a value without decoding it. It looks at every byte that ReadAny would
// look at: whatever Skip passes, ReadAny can read.
func (r *Reader) Skip() error { return r.skip(0) }

// skip has depth values around it.
func (r *Reader) skip(depth int) error {
	if r.skipFixed() {
		return nil
	}
	c, err := r.code("value")
	if err != nil {
		return err
	}
	if c != CodeDescribed {
		return r.skipBody(c, depth)
	}
	if err := r.tooDeep(depth); err != nil {
		return err
	}
	if err := r.skipDescriptor(); err != nil {
		return err
	}
	return r.skip(depth + 1)
}

// skipFixed passes a value if nothing more has to be looked at than its constructor. That
// is most values of most messages.
func (r *Reader) skipFixed() bool {
	if r.off == len(r.buf) {
		return false
	}
	n := int(fixedLengths[r.buf[r.off]])
	if n == 0 || n > r.Len() {
		return false
	}
	r.off += n
	return true
}

// fixedLengths is the length, constructor included, of the encodings in which every value is
// valid and of the same length.
var fixedLengths = [256]uint8{
	CodeNull: 1, CodeTrue: 1, CodeFalse: 1, CodeUint0: 1, CodeUlong0: 1,
	CodeUbyte: 2, CodeByte: 2, CodeSmallUint: 2, CodeSmallUlong: 2, CodeSmallInt: 2, CodeSmallLong: 2,
	CodeUshort: 3, CodeShort: 3,
	CodeUint: 5, CodeInt: 5, CodeFloat: 5, CodeChar: 5, CodeDecimal32: 5,
	CodeUlong: 9, CodeLong: 9, CodeDouble: 9, CodeTimestamp: 9, CodeDecimal64: 9,
	CodeDecimal128: 17, CodeUUID: 17,
}

// skipBody passes what stands behind a constructor.
func (r *Reader) skipBody(c Code, depth int) (err error) {
	if !c.valid() {
		return r.fail(r.off-1, "constructor", ErrMalformed)
	}
	switch c >> 4 {
	case widthNone:
		if c == CodeList0 {
			return r.tooDeep(depth)
		}
	case widthOne:
		if c == CodeBoolean {
			_, err = r.bool(c)
			return err
		}
		_, err = r.take(1, "value")
	case widthTwo:
		_, err = r.take(2, "value")
	case widthFour:
		_, err = r.take(4, "value")
	case widthEight:
		_, err = r.take(8, "value")
	case widthSixteen:
		_, err = r.take(16, "value")
	case widthVariable8, widthVariable32:
		_, err = r.variable(c)
	case widthArray8, widthArray32:
		err = r.skipArray(c, depth)
	default:
		err = r.skipCompound(c, depth)
	}
	return err
}

func (r *Reader) skipCompound(c Code, depth int) error {
	if err := r.tooDeep(depth); err != nil {
		return err
	}
	s, err := r.compound(c)
	if err != nil {
		return err
	}
	keys := r.incoming && c.widest() == CodeMap32
	for i := range s.Count {
		if keys && i%2 == 0 {
			if err := r.checkKey(); err != nil {
				return err
			}
		}
		if err := r.skip(depth + 1); err != nil {
			return err
		}
	}
	return r.Leave(s)
}

// checkKey refuses a map's key that is described or holds other values. In many languages such a
// thing cannot be the key of a map: their clients stop at it for good.
func (r *Reader) checkKey() error {
	c, err := r.Peek()
	if err != nil {
		return err
	}
	switch c.widest() {
	case 0, CodeList32, CodeMap32, CodeArray32:
		return r.wrong(r.off, c, "simple value as the key of a map")
	}
	return nil
}

func (r *Reader) skipArray(c Code, depth int) error {
	if err := r.tooDeep(depth); err != nil {
		return err
	}
	a, err := r.array(c)
	if err != nil {
		return err
	}
	for range a.Count {
		if err := r.skipBody(a.of, depth+1); err != nil {
			return err
		}
	}
	return r.Leave(a.Span)
}

// skipDescriptor passes a descriptor, its leading zero byte already read.
func (r *Reader) skipDescriptor() error {
	c, err := r.descriptorCode()
	if err != nil {
		return err
	}
	return r.skipBody(c, 0)
}

// descriptorCode reads the constructor of a descriptor. The standard has symbols and ulongs, and
// reserves all else (§1.2); clients write ints, too, and every simple value harms as little. Null
// is none, and what holds other values is refused: nobody writes it, and it could nest without end.
func (r *Reader) descriptorCode() (Code, error) {
	c, err := r.code("descriptor")
	if err != nil {
		return 0, err
	}
	switch c.widest() {
	case 0, CodeNull, CodeList32, CodeMap32, CodeArray32:
		return 0, r.wrong(r.off-1, c, "descriptor that is a simple value")
	}
	return c, nil
}

// tooDeep refuses to go inside one more value.
func (r *Reader) tooDeep(depth int) error {
	if depth >= MaxDepth {
		return r.fail(r.off-1, "simple value", ErrTooDeep)
	}
	return nil
}
