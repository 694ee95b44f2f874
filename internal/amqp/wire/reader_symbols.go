package wire

// ReadSymbols reads the several symbols of a field (§1.4): an array of them, a single one
// without an array, or null, which gives nil. Some clients write a list.
func (r *Reader) ReadSymbols() ([]Symbol, error) {
	at := r.off
	c, err := r.code("symbols")
	if err != nil {
		return nil, err
	}
	switch c.widest() {
	case CodeNull:
		return nil, nil
	case CodeSymbol32:
		b, err := r.variable(c)
		if err != nil {
			return nil, err
		}
		return []Symbol{Symbol(b)}, nil
	case CodeArray32:
		return r.symbolArray(c)
	case CodeList32:
		s, err := r.compound(c)
		if err != nil {
			return nil, err
		}
		symbols := make([]Symbol, s.Count)
		for i := range symbols {
			if symbols[i], err = r.ReadSymbol(); err != nil {
				return nil, err
			}
		}
		return symbols, r.Leave(s)
	default:
		return nil, r.wrong(at, c, "symbols")
	}
}

func (r *Reader) symbolArray(c Code) ([]Symbol, error) {
	a, err := r.array(c)
	if err != nil {
		return nil, err
	}
	if a.Count > 0 && (a.of.widest() != CodeSymbol32 || a.descriptor != 0) {
		return nil, r.wrong(r.off-1, a.of, "array of symbol")
	}
	symbols := make([]Symbol, a.Count)
	for i := range symbols {
		b, err := r.variable(a.of)
		if err != nil {
			return nil, err
		}
		symbols[i] = Symbol(b)
	}
	return symbols, r.Leave(a.Span)
}
