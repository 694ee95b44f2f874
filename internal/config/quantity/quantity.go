// Package quantity reads and writes durations and sizes as people write them: 7d, 1m30s, 64MiB. It
// knows no setting.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Duration is a length of time written as 90s, 24h or 7d.
type Duration time.Duration

// ParseDuration reads what Go's durations allow and also days (d) and weeks (w).
// Only zero goes without a unit, and nothing is negative.
func ParseDuration(text string) (time.Duration, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "0" {
		return 0, nil
	}
	var total time.Duration
	for rest := trimmed; ; {
		number, unit, after, err := nextQuantity(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: write it like 90s, 24h or 7d", text)
		}
		part, err := durationOf(number, unit)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: %w", text, err)
		}
		if total += part; total < 0 {
			return 0, fmt.Errorf("%q is too long: the most is 290 years", text)
		}
		if rest = after; rest == "" {
			return total, nil
		}
	}
}

// ParseSigned is ParseDuration for what may also be below zero. Days and weeks are whole.
func ParseSigned(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	d, err := ParseDuration(rest)
	switch {
	case err != nil || strings.ContainsAny(rest, "dw") && strings.Contains(rest, "."):
		return 0, fmt.Errorf("%q is no duration: write it like 500ms, 30s, 5m, 24h or 2d", text)
	case negative:
		return -d, nil
	}
	return d, nil
}

// nextQuantity splits "1d12h" into 1, "d" and "12h".
func nextQuantity(text string) (number, unit, rest string, err error) {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end <= 0 {
		return "", "", "", errors.New("a number and a unit are needed")
	}
	number, rest = text[:end], text[end:]
	end = strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' || r == '.' })
	if end < 0 {
		end = len(rest)
	}
	return number, rest[:end], rest[end:], nil
}

func durationOf(number, unit string) (time.Duration, error) {
	scale, ok := map[string]time.Duration{"d": day, "w": 7 * day}[unit]
	if !ok {
		d, err := time.ParseDuration(number + unit)
		if err != nil {
			return 0, fmt.Errorf("the units are ms, s, m, h, d and w")
		}
		return d, nil
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", number)
	}
	if n > float64(math.MaxInt64/int64(scale)) {
		return 0, errors.New("it is too long: the most is 290 years")
	}
	return time.Duration(n * float64(scale)), nil
}

// FormatDuration writes a duration so that ParseDuration reads it back: 7d, 36h, 1m30s.
func FormatDuration(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return FormatHours(d)
}

// FormatSpan writes how long something took, lasts or is ago, to what matters of it, so that ParseDuration reads
// it: 6d, 3h12m, 1m30s, 2.5s, 12ms, 250µs. All such spans in answers of the API and of commands are written by it;
// settings, of which every unit matters, by FormatDuration.
func FormatSpan(d time.Duration) string {
	for _, step := range [...]struct{ least, unit time.Duration }{
		{2 * day, day}, {time.Hour, time.Minute}, {10 * time.Second, time.Second}, {time.Second, 100 * time.Millisecond},
		{10 * time.Millisecond, time.Millisecond}, {0, 10 * time.Microsecond},
	} {
		if d >= step.least {
			return FormatDuration(d.Truncate(step.unit))
		}
	}
	return FormatDuration(0) // the clock was set back
}

// FormatHours writes a duration without days, and without units that say nothing: 24h and not
// 24h0m0s.
func FormatHours(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (d Duration) String() string { return FormatDuration(time.Duration(d)) }

// UnmarshalText reads the written form.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err == nil {
		*d = Duration(parsed)
	}
	return err
}

// Set and Type make a Duration a command-line flag.
func (d *Duration) Set(text string) error { return d.UnmarshalText([]byte(text)) }

// Type is the word that stands for the value in help.
func (d *Duration) Type() string { return "duration" }

// Size is a number of bytes written as 1048576, 64MiB or 1GB.
type Size int64

// sizeUnits has the binary and the decimal units, large ones first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}, {"", 1},
}

// ParseSize reads a number of bytes with a unit of 1,024 (KiB, MiB, GiB, TiB) or of
// 1,000 (KB, MB, GB, TB), in any case, or without one.
func ParseSize(text string) (int64, error) {
	trimmed := strings.TrimSpace(text)
	number := strings.TrimRight(trimmed, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit := trimmed[len(number):]
	number = strings.TrimSpace(number)
	for _, u := range sizeUnits {
		if strings.EqualFold(u.name, unit) {
			return scaleSize(text, number, u.bytes)
		}
	}
	return 0, fmt.Errorf("%q is no size: the units are B, KiB, MiB, GiB, TiB and KB, MB, GB, TB", text)
}

func scaleSize(text, number string, unit int64) (int64, error) {
	tooLarge := fmt.Errorf("%q is too large", text)
	if n, err := strconv.ParseUint(number, 10, 63); err == nil {
		if int64(n) > math.MaxInt64/unit {
			return 0, tooLarge
		}
		return int64(n) * unit, nil
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || math.IsNaN(n) || strings.ContainsAny(number, "eExXpP_") {
		return 0, fmt.Errorf("%q is no size: write it like 1048576, 64MiB or 1GB", text)
	}
	if n *= float64(unit); n >= math.MaxInt64 {
		return 0, tooLarge
	}
	if n != math.Trunc(n) {
		return 0, fmt.Errorf("%q is no whole number of bytes", text)
	}
	return int64(n), nil
}

// FormatSize writes a size so that ParseSize reads back the same: 64MiB, or plain
// bytes where no unit divides it.
func FormatSize(bytes int64) string {
	for _, u := range sizeUnits[:4] {
		if bytes >= u.bytes && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

func (s Size) String() string { return FormatSize(int64(s)) }

// UnmarshalText reads the written form.
func (s *Size) UnmarshalText(text []byte) error {
	parsed, err := ParseSize(string(text))
	if err == nil {
		*s = Size(parsed)
	}
	return err
}

// Set and Type make a Size a command-line flag.
func (s *Size) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// Type is the word that stands for the value in help.
func (s *Size) Type() string { return "size" }
