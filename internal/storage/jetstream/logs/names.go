package logs

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// The streams of a yard, and the subjects in them; the storage puts the yard's name before both:
//
//	h-LOG-I      a hub's log, part I of its k streams; partition N is subject N, where I = N mod k
//	p-KIND-I     pool I of the logs of one kind; partition N of a log is subject LOG/N
//
// In each stream the subject mark has its marks.
const (
	hubPrefix   = "h-"
	poolPrefix  = "p-"
	markSubject = "mark"
)

// partitionsPerStream and maxStreams bound how many streams a hub's log gets.
const (
	partitionsPerStream = 16
	maxStreams          = 16
)

// pools is how many streams the logs of a kind share; a hub's log has its own.
var pools = map[eventlog.Kind]int{
	eventlog.KindTopic: 16, eventlog.KindRetryShort: 4, eventlog.KindRetryMedium: 4,
	eventlog.KindRetryLong: 4, eventlog.KindParked: 4, eventlog.KindDeadLetters: 4,
}

// hubStreams is how many streams a new hub's log gets.
func hubStreams(partitions int) int {
	return min((partitions+partitionsPerStream-1)/partitionsPerStream, maxStreams)
}

// address is where a partition is kept.
type address struct{ stream, subject string }

// addressOf gives it. What it says of a log must never change.
func addressOf(log string, d definition, number int) address {
	if d.kind == eventlog.KindHub {
		return address{hubStream(log, number%d.streams), strconv.Itoa(number)}
	}
	return address{poolStream(log, d.kind), fmt.Sprintf("%s/%d", log, number)}
}

// streamsOf are all streams that a log uses.
func streamsOf(log string, d definition) (names []string) {
	if d.kind != eventlog.KindHub {
		return []string{poolStream(log, d.kind)}
	}
	for i := range d.streams {
		names = append(names, hubStream(log, i))
	}
	return names
}

func hubStream(log string, i int) string { return fmt.Sprint(hubPrefix, log, "-", i) }

func poolStream(log string, kind eventlog.Kind) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(log)) // it does not fail
	return fmt.Sprint(poolPrefix, kind, "-", h.Sum32()%uint32(pools[kind]))
}

// hubLog gives the log of a hub's stream; it is false for pools.
func hubLog(stream string) (log string, ok bool) {
	rest, ok := strings.CutPrefix(stream, hubPrefix)
	i := strings.LastIndexByte(rest, '-')
	if !ok || i < 1 || !isDecimal(rest[i+1:]) {
		return "", false
	}
	return rest[:i], isLogName(rest[:i])
}

// logOf gives the log that a subject of a stream is of; it is false for marks and what is not known.
func logOf(stream, subject string) (log string, ok bool) {
	if log, ok := hubLog(stream); ok {
		return log, isDecimal(subject)
	}
	log, number, ok := strings.Cut(subject, "/")
	return log, ok && isDecimal(number)
}

func isDecimal(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func checkID(id eventlog.PartitionID) error {
	if !isLogName(id.Log) || id.Number < 0 {
		return fmt.Errorf("partition %s: a log has 1 to 120 of a-z, 0-9, '-' and '_', a partition a number from 0", id)
	}
	return nil
}

func isLogName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 120
}
