package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// thousands writes 1234567 as 1,234,567.
func thousands[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// seconds writes 40 ms, 1.9 s, 32 s, 12 min 2 s.
func seconds(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// listed writes 3, 9 and 14.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// clock is a time of day, as the views show it.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// periodWord is what a period is called.
func periodWord(every time.Duration) string {
	if every == time.Minute {
		return "minute"
	}
	return seconds(every)
}
