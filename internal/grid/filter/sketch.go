package filter

// sketch is which pairs of neighbouring bytes a text has, roughly. A text that has no
// pair of another's cannot contain it, and this shows it faster than looking.
type sketch uint64

func newSketch(text []byte) sketch {
	var s sketch
	for i := 1; i < len(text); i++ {
		s |= 1 << ((uint(text[i-1])*7 + uint(text[i])*13) & 63)
	}
	return s
}

// mayContain says false only if it is certain.
func (s sketch) mayContain(part sketch) bool { return part&^s == 0 }
