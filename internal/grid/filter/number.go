package filter

import (
	"cmp"
	"math"
)

// halfDigits is how many decimal digits a word of a num holds.
const halfDigits = 19

// num is a decimal number of up to 38 digits, exact; further digits are dropped. Its fields
// are made so that their order, one after the other, is the order of numbers, and that
// equal numbers are equal values. The value is 0.DDD… times ten to the power of the rank,
// with the first 19 digits in high and the next ones in low, both filled up with zeros. A
// negative number has the rank negated and the digits inverted.
type num struct {
	rank      int64
	high, low uint64
}

const (
	// rankOffset keeps the ranks of positive numbers above zero's, which is 0.
	rankOffset = 1 << 40
	// maxMagnitude bounds the power of ten: what is beyond is taken for that.
	maxMagnitude = 1 << 39
)

var (
	lowest  = num{rank: math.MinInt64}
	highest = num{rank: math.MaxInt64}
)

func (n num) compare(other num) int {
	if n.rank != other.rank {
		return cmp.Compare(n.rank, other.rank)
	}
	if n.high != other.high {
		return cmp.Compare(n.high, other.high)
	}
	return cmp.Compare(n.low, other.low)
}

// parseNum reads a number as JSON writes it; false if it is none.
func parseNum(text []byte) (num, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	var d digits
	i := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if d.count > 0 || text[i] != '0' {
			d.push(text[i])
		}
	}
	if i == 0 {
		return num{}, false
	}
	magnitude := d.count // how many digits before the point the first one stands that is not zero
	if text = text[i:]; len(text) > 0 && text[0] == '.' {
		for i = 1; i < len(text) && isDigit(text[i]); i++ {
			if d.count == 0 && text[i] == '0' {
				magnitude--
				continue
			}
			d.push(text[i])
		}
		if i == 1 {
			return num{}, false
		}
		text = text[i:]
	}
	exponent, ok := parseExponent(text)
	return d.num(int64(magnitude)+exponent, negative), ok
}

// digits gathers the digits of a number from the first one that is not zero.
type digits struct {
	high, low uint64
	count     int
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (d *digits) push(c byte) {
	switch {
	case d.count < halfDigits:
		d.high = d.high*10 + uint64(c-'0')
	case d.count < 2*halfDigits:
		d.low = d.low*10 + uint64(c-'0')
	}
	d.count++
}

func parseExponent(text []byte) (int64, bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0]|0x20 != 'e' {
		return 0, false
	}
	text = text[1:]
	negative := len(text) > 0 && text[0] == '-'
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	exponent := int64(0)
	for _, c := range text {
		if !isDigit(c) {
			return 0, false
		}
		exponent = min(exponent*10+int64(c-'0'), 2*maxMagnitude)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, len(text) > 0
}

// num makes the number whose first digit stands magnitude digits before the point.
func (d *digits) num(magnitude int64, negative bool) num {
	if d.count == 0 {
		return num{}
	}
	n := num{
		rank: rankOffset + min(max(magnitude, -maxMagnitude), maxMagnitude),
		high: d.high * tens[halfDigits-min(d.count, halfDigits)],
		low:  d.low * tens[halfDigits-min(max(d.count-halfDigits, 0), halfDigits)],
	}
	if negative {
		n.rank, n.high, n.low = -n.rank, ^n.high, ^n.low
	}
	return n
}

var tens = func() (t [halfDigits + 1]uint64) {
	t[0] = 1
	for i := range halfDigits {
		t[i+1] = t[i] * 10
	}
	return t
}()
