package quantity

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "90s": 90 * time.Second, "24h": day, "7d": 7 * day, "2w": 14 * day, "1d12h": 36 * time.Hour,
		"1.5d": 36 * time.Hour, "500ms": 500 * time.Millisecond, " 1m30s ": 90 * time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-5s", "h", "5x", "1h-2m", "1..5h", "999999999d", "300000w", "106751d106751d", "1h 2m"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestDurationsBelowZeroAndWithoutDays(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", day: "24h", 90 * time.Minute: "1h30m", 100 * time.Second: "1m40s", time.Hour + time.Second: "1h0m1s",
		10 * time.Minute: "10m", 10 * time.Second: "10s", 500 * time.Millisecond: "500ms", -time.Minute: "-1m",
	} {
		testkit.Equal(t, FormatHours(d), want, "%v is written", d)
		got, err := ParseSigned(want)
		testkit.Equal(t, got, d, "%s is read, %v", want, err)
	}
	for text, want := range map[string]time.Duration{"+5s": 5 * time.Second, "-2d": -2 * day, "1d12h": 36 * time.Hour} {
		got, err := ParseSigned(text)
		testkit.Equal(t, got, want, "%s is read, %v", text, err)
	}
	for _, text := range []string{"", "-", "5", "--5s", "-+5s", "0.5d", "soon"} {
		if got, err := ParseSigned(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1048576": 1 << 20, "64MiB": 64 << 20, "1GiB": 1 << 30, "1gib": 1 << 30, "2 TiB": 2 << 40,
		"10KB": 10_000, "1.5KiB": 1536, "7B": 7, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1M", "MiB", "1.1B", "1e3", "nan", "0x10", "9999999TiB", "9e18GB", "1 2", "9223372036854775808"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

func TestWrittenQuantitiesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "duration"))
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%v is written %q and read %v, %v", d, FormatDuration(d), got, err)
		}
		n := rapid.Int64Range(0, 1<<62).Draw(t, "size") >> rapid.IntRange(0, 62).Draw(t, "shift")
		if got, err := ParseSize(FormatSize(n)); err != nil || got != n {
			t.Fatalf("%v is written %q and read %v, %v", n, FormatSize(n), got, err)
		}
	})
	for d, want := range map[time.Duration]string{0: "0s", day: "1d", 36 * time.Hour: "36h", time.Minute: "1m", 90 * time.Second: "1m30s"} {
		testkit.Equal(t, FormatDuration(d), want, "%v is written", d)
	}
}

// A quantity is a flag: it reads and writes itself, and names its kind in help.
func TestQuantitiesAreFlags(t *testing.T) {
	var d Duration
	var s Size
	if d.Set("7d") != nil || s.Set("64MiB") != nil || d.String() != "7d" || s.String() != "64MiB" || d.Type() != "duration" || s.Type() != "size" {
		t.Errorf("%v %s, %v %s", d, d.Type(), s, s.Type())
	}
	if d.Set("soon") == nil || s.Set("big") == nil || d.String() != "7d" || s.String() != "64MiB" {
		t.Errorf("what cannot be read leaves %v and %v", d, s)
	}
}

// V7: spans are written in one way, to what matters of them.
func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		149 * time.Hour: "6d", 47*time.Hour + 59*time.Minute + 59*time.Second: "47h59m", 3*time.Hour + 12*time.Minute + 9*time.Second: "3h12m", time.Hour: "1h",
		90500 * time.Millisecond: "1m30s", 2560 * time.Millisecond: "2.5s", 12340 * time.Microsecond: "12ms", 254 * time.Microsecond: "250µs", 0: "0s", -time.Second: "0s",
	} {
		if got := FormatSpan(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}
