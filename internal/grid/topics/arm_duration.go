package topics

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// isoUnits are the designators of ISO 8601 durations, in the order they come in. Years and months
// are left out: nobody knows how long they are.
var isoUnits = []struct {
	designator byte
	inTime     bool
	unit       time.Duration
}{
	{'W', false, 7 * 24 * time.Hour}, {'D', false, 24 * time.Hour},
	{'H', true, time.Hour}, {'M', true, time.Minute}, {'S', true, time.Second},
}

// parseISODuration reads PnWnDTnHnMnS, of which the last number may have a fraction.
func parseISODuration(text string) (time.Duration, bool) {
	rest, ok := strings.CutPrefix(strings.ToUpper(text), "P")
	if !ok || rest == "" || strings.HasSuffix(rest, "T") {
		return 0, false
	}
	total, inTime := 0.0, false
	for _, u := range isoUnits {
		if u.inTime && !inTime {
			if rest, inTime = strings.CutPrefix(rest, "T"); !inTime {
				break
			}
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 || rest[end] != u.designator {
			continue
		}
		n, err := strconv.ParseFloat(rest[:end], 64)
		if err != nil {
			return 0, false
		}
		total += n * float64(u.unit)
		rest = rest[end+1:]
	}
	if rest != "" || total > math.MaxInt64/2 {
		return 0, false
	}
	return time.Duration(math.Round(total)), true
}

// isoDuration writes a duration that is not negative.
func isoDuration(d time.Duration) string {
	date, clock := "P", ""
	for _, u := range isoUnits[1:] {
		if u.unit == time.Second {
			break
		}
		n := d / u.unit
		d -= n * u.unit
		switch part := strconv.FormatInt(int64(n), 10) + string(u.designator); {
		case n == 0:
		case u.inTime:
			clock += part
		default:
			date += part
		}
	}
	if d > 0 || date == "P" && clock == "" {
		clock += strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
	}
	if clock != "" {
		clock = "T" + clock
	}
	return date + clock
}
