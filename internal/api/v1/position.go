package v1

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const positionHelp = "from is earliest, latest, a sequence number, after:N, a time such as 2026-01-02T15:04:05Z, time:MS in Unix milliseconds, or the id of a tail's event such as 0:17,1:4"

// start says where a reading of several partitions begins: all alike, or each at its own number.
type start struct {
	at eventlog.Position
	// positions holds the next number by partition id; nil when all begin alike.
	positions map[string]eventlog.Sequence
}

// parseStart reads the from parameter. Empty means earliest.
func parseStart(s string) (start, error) {
	switch s {
	case "", "earliest":
		return start{at: eventlog.Earliest()}, nil
	case "latest":
		return start{at: eventlog.Latest()}, nil
	}
	if n, ok := parseSequence(s); ok {
		return start{at: eventlog.At(n)}, nil
	}
	if after, ok := strings.CutPrefix(s, "after:"); ok {
		if n, ok := parseSequence(after); ok {
			return start{at: eventlog.After(n)}, nil
		}
	}
	if ms, ok := strings.CutPrefix(s, "time:"); ok {
		if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
			return start{at: eventlog.Since(time.UnixMilli(n))}, nil
		}
	}
	// A plus sign that was not escaped in a query arrives as a blank.
	if t, err := time.Parse(time.RFC3339, strings.ReplaceAll(s, " ", "+")); err == nil {
		return start{at: eventlog.Since(t)}, nil
	}
	if positions, ok := parsePositions(s); ok {
		return start{positions: positions}, nil
	}
	return start{}, badRequest(positionHelp, "%q is no position", s)
}

// of gives the position for one partition. One that the id does not name begins at
// the earliest: whoever resumes must not miss anything.
func (s start) of(partition string) eventlog.Position {
	if n, ok := s.positions[partition]; ok {
		return eventlog.At(n)
	}
	return s.at
}

// check refuses a start that does not fit the partitions to be read: numbers count
// within one partition and mean nothing across several.
func (s start) check(partitions []string) error {
	if _, numbered := s.at.Sequence(); numbered && len(partitions) > 1 {
		return badRequest("name one partition with partition=, or give each its own number, as in from=0:17,1:4",
			"a sequence number alone cannot say where to begin in %d partitions", len(partitions))
	}
	for id := range s.positions {
		if !slices.Contains(partitions, id) {
			return badRequest("resume with the same hub and the same partition= as before",
				"the position names partition %q, which is not among those to be read", id)
		}
	}
	return nil
}
