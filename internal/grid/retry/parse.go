package retry

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseSchedule reads "1s,2s,5s"; an empty text is no schedule, which means G5's.
func ParseSchedule(text string) ([]time.Duration, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var schedule []time.Duration
	for part := range strings.SplitSeq(text, ",") {
		d, err := parseWait(part)
		if err != nil {
			return nil, fmt.Errorf("wait %d of schedule %.100q: %w", len(schedule)+1, text, err)
		}
		if d == 0 {
			return nil, fmt.Errorf("wait %d of schedule %.100q is zero: give more, such as 100ms", len(schedule)+1, text)
		}
		schedule = append(schedule, d)
	}
	return schedule, nil
}

// ParseFloor reads "503=5s"; "other=1s" and "*=1s" give status 0.
func ParseFloor(text string) (status int, d time.Duration, err error) {
	name, wait, found := strings.Cut(text, "=")
	if !found {
		return 0, 0, fmt.Errorf("least wait %.100q: give it like 503=5s or other=1s", text)
	}
	if name = strings.TrimSpace(name); name != "*" && !strings.EqualFold(name, "other") {
		if status, err = strconv.Atoi(name); err != nil || !isStatus(status) {
			return 0, 0, fmt.Errorf("least wait %.100q: %.20q is no status: give 100 to 599, or other", text, name)
		}
	}
	if d, err = parseWait(wait); err != nil {
		return 0, 0, fmt.Errorf("least wait %.100q: %w", text, err)
	}
	return status, d, nil
}

func parseWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < 0 || d > MaxWait {
		return 0, fmt.Errorf("%.20q is no wait: give one like 500ms, 10s or 1h30m, at most %gh", text, MaxWait.Hours())
	}
	return d, nil
}
