package admin

import (
	"bufio"
	"bytes"
)

// sseEvent is one server-sent event.
type sseEvent struct {
	id, kind string
	data     []byte
}

// sseReader reads the part of server-sent events that the yard's tail uses.
type sseReader struct {
	lines *bufio.Reader
	// heard is called for every line, comments too.
	heard func()
}

// next gives the next event that is complete, which an empty line makes it. One with an
// id and nothing else moves the place that reading would be resumed at.
func (r *sseReader) next() (sseEvent, error) {
	var ev sseEvent
	for {
		line, err := readLine(r.lines)
		if err != nil {
			return sseEvent{}, err
		}
		r.heard()
		if len(line) == 0 {
			if ev.data != nil || ev.id != "" {
				return ev, nil
			}
			ev = sseEvent{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			ev.id = string(value)
		case "event":
			ev.kind = string(value)
		case "data":
			ev.data = value
		}
	}
}
