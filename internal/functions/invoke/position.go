package invoke

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const positionHelp = "give the id of an event of the batch, its sequence number or its index"

// position finds the event that a result is about. All that it says has to fit: to take one event
// for another would be to lose one.
func (r *reading) position(it *item) (int, error) {
	found := -1
	for _, way := range []struct {
		raw  json.RawMessage
		find func(json.RawMessage) (int, error)
	}{
		{it.ID, r.byID}, {it.Index, r.byIndex}, {it.Sequence, r.bySequence}, {it.SequenceNumber, r.bySequence},
	} {
		if absent(way.raw) {
			continue
		}
		position, err := way.find(way.raw)
		if err != nil {
			return 0, err
		}
		if found >= 0 && position != found {
			return 0, errors.New("its id, index and sequence are not of the same event")
		}
		found = position
	}
	if found < 0 {
		return 0, errors.New("it names no event: " + positionHelp)
	}
	return found, nil
}

// identified finds an event by AWS Lambda's itemIdentifier: an id, or a sequence number, as with
// Kinesis. An index would be mistaken for one.
func (r *reading) identified(raw json.RawMessage) (int, error) {
	if absent(raw) {
		return 0, errors.New("it has no itemIdentifier: give the id of an event of the batch, or its sequence number")
	}
	if position, err := r.byID(raw); err == nil {
		return position, nil
	}
	position, err := r.bySequence(raw)
	if err != nil {
		return 0, fmt.Errorf("the itemIdentifier %s is of no event of the batch: give its id, or its sequence number", headOf(raw))
	}
	return position, nil
}

func (r *reading) byID(raw json.RawMessage) (int, error) {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		if r.ids == nil {
			r.indexEvents()
		}
		if position, ok := r.ids[id]; ok {
			return position, nil
		}
	}
	return 0, fmt.Errorf("no event of the batch has the id %s: %s", headOf(raw), positionHelp)
}

func (r *reading) bySequence(raw json.RawMessage) (int, error) {
	if n, err := parseNumber(raw); err == nil {
		if r.sequences == nil {
			r.indexEvents()
		}
		if position, ok := r.sequences[n]; ok {
			return position, nil
		}
	}
	return 0, fmt.Errorf("no event of the batch has the sequence number %s: %s", headOf(raw), positionHelp)
}

func (r *reading) byIndex(raw json.RawMessage) (int, error) {
	n, err := parseNumber(raw)
	if err != nil || n < 0 || n >= int64(len(r.call.Events)) {
		return 0, fmt.Errorf("the index %s is of no event of the batch: it goes from 0 to %d", headOf(raw), len(r.call.Events)-1)
	}
	return int(n), nil
}

// parseNumber reads a whole number, be it in quotes.
func parseNumber(raw json.RawMessage) (int64, error) {
	text := string(raw)
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = strings.TrimSpace(quoted)
	}
	return strconv.ParseInt(text, 10, 64)
}

func (r *reading) indexEvents() {
	r.ids, r.sequences = make(map[string]int, len(r.call.Events)), make(map[int64]int, len(r.call.Events))
	for i, ev := range r.call.Events {
		r.ids[string(r.call.appendID(nil, ev.Sequence))] = i
		r.sequences[ev.Sequence] = i
	}
}
