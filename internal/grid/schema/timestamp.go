package schema

import "time"

// timeFormat is how times are written that the yard itself takes: as Event Grid does, in UTC
// with seven digits of the second (reference §15).
const timeFormat = "2006-01-02T15:04:05.0000000Z"

func appendTime(dst []byte, t time.Time) []byte { return t.UTC().AppendFormat(dst, timeFormat) }

// stamp is a date-time as somebody wrote it, taken apart.
type stamp struct {
	date   []byte // 2006-01-02
	minute []byte // 15:04
	second []byte // :05.67; nil: left out
	zone   []byte // Z, +01:00, +0100, +01; nil: left out
	// strict: it is what RFC 3339 has.
	strict bool
}

// parseStamp reads a date-time. Besides those of RFC 3339 it takes what clients of Event Grid
// send and it accepts: zones as date's %z has them, or none, which means UTC; a space before the
// time; no seconds.
func parseStamp(t []byte) (stamp, bool) {
	if len(t) < len("2006-01-02T15:04") || !isDate(t[:10]) || !isClock(t[11:16]) {
		return stamp{}, false
	}
	s := stamp{date: t[:10], minute: t[11:16]}
	separator := t[10]
	if separator != 'T' && separator != 't' && separator != ' ' {
		return stamp{}, false
	}
	n, ok := secondLen(t[16:])
	if !ok {
		return stamp{}, false
	}
	if n > 0 {
		s.second = t[16 : 16+n]
	}
	if t = t[16+n:]; len(t) > 0 {
		s.zone = t
	}
	s.strict = separator != ' ' && n > 0 && (len(s.zone) == 1 || len(s.zone) == len("+01:00"))
	return s, isZone(s.zone)
}

func isDate(t []byte) bool {
	year, ok1 := number(t[:4])
	month, ok2 := number(t[5:7])
	day, ok3 := number(t[8:])
	if !ok1 || !ok2 || !ok3 || t[4] != '-' || t[7] != '-' {
		return false
	}
	days := time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return month >= 1 && month <= 12 && day >= 1 && day <= days
}

// isClock takes 15:04.
func isClock(t []byte) bool {
	hour, ok1 := number(t[:2])
	minute, ok2 := number(t[3:])
	return ok1 && ok2 && t[2] == ':' && hour < 24 && minute < 60
}

// secondLen is how long the seconds with their fraction are, which may be left out.
func secondLen(t []byte) (int, bool) {
	if len(t) == 0 || t[0] != ':' {
		return 0, true
	}
	if len(t) < 3 {
		return 0, false
	}
	if second, ok := number(t[1:3]); !ok || second > 59 {
		return 0, false
	}
	if len(t) == 3 || t[3] != '.' {
		return 3, true
	}
	n := 4
	for n < len(t) && t[n] >= '0' && t[n] <= '9' {
		n++
	}
	return n, n > 4
}

func isZone(t []byte) bool {
	if len(t) == 0 {
		return true
	}
	if t[0] != '+' && t[0] != '-' {
		return len(t) == 1 && (t[0] == 'Z' || t[0] == 'z')
	}
	switch len(t) {
	case len("+01"):
		hour, ok := number(t[1:])
		return ok && hour < 24
	case len("+0100"):
		return isClock([]byte{t[1], t[2], ':', t[3], t[4]})
	default:
		return len(t) == len("+01:00") && isClock(t[1:])
	}
}

func number(t []byte) (n int, ok bool) {
	for _, c := range t {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// append writes it as RFC 3339 has it.
func (s stamp) append(dst []byte) []byte {
	dst = append(dst, s.date...)
	dst = append(dst, 'T')
	dst = append(dst, s.minute...)
	if s.second == nil {
		dst = append(dst, ":00"...)
	}
	dst = append(dst, s.second...)
	if len(s.zone) < len("+01") {
		return append(dst, 'Z')
	}
	dst = append(dst, s.zone[:3]...)
	dst = append(dst, ':')
	switch len(s.zone) {
	case len("+01"):
		return append(dst, "00"...)
	case len("+0100"):
		return append(dst, s.zone[3:]...)
	default:
		return append(dst, s.zone[4:]...)
	}
}
