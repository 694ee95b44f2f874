package ranges

import (
	"fmt"
	"strconv"
	"strings"
)

// String is "3-5,9".
func (s Set) String() string { return string(s.appendText(nil)) }

func (s Set) appendText(b []byte) []byte {
	for i, r := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, r.First, 10)
		if r.Last > r.First {
			b = append(b, '-')
			b = strconv.AppendInt(b, r.Last, 10)
		}
	}
	return b
}

// MarshalText is String.
func (s Set) MarshalText() ([]byte, error) { return s.appendText(nil), nil }

// UnmarshalText reads what String wrote, and nothing else: there is one spelling of each set.
func (s *Set) UnmarshalText(text []byte) error {
	*s = nil
	if len(text) == 0 {
		return nil
	}
	var set Set
	for word := range strings.SplitSeq(string(text), ",") {
		r, err := parseRange(word)
		if err != nil {
			return err
		}
		if len(set) > 0 && r.First-1 <= set.Last() {
			return fmt.Errorf("set %.64q: %.41q is not behind what comes before it", text, word)
		}
		set = append(set, r)
	}
	*s = set
	return nil
}

func parseRange(word string) (Range, error) {
	from, to, several := strings.Cut(word, "-")
	first, err := parseNumber(from)
	if err != nil || !several {
		return Range{first, first}, err
	}
	last, err := parseNumber(to)
	if err == nil && last <= first {
		err = fmt.Errorf("range %.41q does not rise", word)
	}
	return Range{first, last}, err
}

// parseNumber takes digits only, without leading zeros.
func parseNumber(word string) (int64, error) {
	n, err := strconv.ParseUint(word, 10, 63)
	if err != nil || len(word) > 1 && word[0] == '0' {
		return 0, fmt.Errorf("number %.41q is none of a sequence", word)
	}
	return int64(n), nil
}
