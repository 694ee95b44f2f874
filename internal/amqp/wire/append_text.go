package wire

import "math"

// AppendStringArray writes an array of string, empty when nil.
func AppendStringArray(dst []byte, v []string) []byte {
	return appendTexts(dst, v, CodeString8, CodeString32)
}

// AppendSymbolArray writes an array of symbol, empty when nil.
func AppendSymbolArray(dst []byte, v []Symbol) []byte {
	return appendTexts(dst, v, CodeSymbol8, CodeSymbol32)
}

// appendTexts takes the smaller encoding when every element fits.
func appendTexts[T ~string](dst []byte, v []T, small, large Code) []byte {
	of := small
	for _, s := range v {
		if len(s) > math.MaxUint8 {
			of = large
		}
	}
	dst, array := BeginArray(dst, of)
	for _, s := range v {
		dst = append(appendElementLength(dst, of, len(s)), s...)
	}
	return EndArray(dst, array, len(v))
}
