package filter

import (
	"encoding/json"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Numbers of up to 38 digits have the order that fractions have.
func TestNumbersHaveTheirOrder(t *testing.T) {
	text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3}|[1-9][0-9]{15,20})(\.(0{0,3}[0-9]{1,3}|[0-9]{10,14}))?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a + rapid.SampledFrom([]string{"", "e0", "0", "1"}).Draw(t, "behind")
			if !json.Valid([]byte(b)) {
				b = a
			}
		}
		x, okX := parseNum([]byte(a))
		y, okY := parseNum([]byte(b))
		testkit.MustSlices(t, []any{okX, okY}, []any{true, true}, "%q and %q are numbers", a, b)
		want := rat(t, json.Number(a)).Cmp(rat(t, json.Number(b)))
		testkit.MustEqual(t, x.compare(y), want, "%s to %s", a, b)
		testkit.MustEqual(t, (x == y), (want == 0), "%s and %s: equal values are equal numbers", a, b)
	})
}

func TestOneNumberInManyWays(t *testing.T) {
	for _, ways := range [][]string{
		{"0.001", "1e-3", "0.1E-2", "0.0010", "1000e-6"}, {"1200", "1.2e3", "12E+2", "0.0012e6"}, {"0", "-0", "0.00", "0e9"}, {"-0.05", "-5e-2", "-50e-3"},
		{"18446744073709551615", "1.8446744073709551615e19", "184467440737095516150e-1"},
	} {
		want, _ := parseNum([]byte(ways[0]))
		for _, way := range ways {
			if n, ok := parseNum([]byte(way)); !ok || n != want {
				t.Errorf("%s is not %s", way, ways[0])
			}
		}
	}
}

func TestDigitsBeyondAreDropped(t *testing.T) {
	same := "12345678901234567890123456789012345678"
	x, _ := parseNum([]byte(same + "1"))
	y, _ := parseNum([]byte(same + "2"))
	z, _ := parseNum([]byte(same + "0"))
	testkit.Slices(t, []any{x, y}, []any{y, z}, "only 38 digits count")
	huge, _ := parseNum([]byte("1e99999999999999999999"))
	tiny, _ := parseNum([]byte("1e-99999999999999999999"))
	if huge.compare(x) <= 0 || tiny.compare(x) >= 0 || tiny.compare(num{}) <= 0 || huge.compare(highest) >= 0 {
		t.Error("beyond all bounds, the order stays")
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range append([]string{"", "-", "1.", ".1", "1e", "1e+", "--1", "1e5x", "01"}, someNumbers...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := parseNum([]byte(text))
		var decoded json.Number
		if json.Unmarshal([]byte(text), &decoded) == nil && decoded.String() == text && !ok {
			t.Fatalf("%q is a number", text)
		}
		if r, isNumber := new(big.Rat).SetString(text); ok && isNumber && len(text) < 30 && r.Sign() != n.compare(num{}) {
			t.Fatalf("%q has another sign", text)
		}
	})
}
