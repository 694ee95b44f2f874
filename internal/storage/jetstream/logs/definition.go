package logs

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// keyPrefix is that of the logs' entries.
const keyPrefix = "logs/"

// definition is what the entry of a log says.
type definition struct {
	kind       eventlog.Kind
	partitions int
	streams    int // how many it is spread over; it never changes
	retention  eventlog.Retention
	state      state
	removedMS  int64 // when it was removed, in milliseconds; 0: it was not, or nobody has noted it
}

// state is how far a log's life has come. Streams are made while it is new, so that one which is
// missing later is known to be lost, and is not made anew, with numbers from 0. An entry that says
// removed stays until no node can bring the log back (see forget): its name is never used again.
type state string

const (
	isNew     state = "new"
	isLive    state = "live"
	isRemoved state = "removed"
)

// definitionJSON is an entry's value.
type definitionJSON struct {
	Kind       string `json:"kind"`
	Partitions int    `json:"partitions"`
	Streams    int    `json:"streams"`
	MaxAge     string `json:"maxAge,omitempty"`
	MaxBytes   int64  `json:"maxBytes,omitempty"`
	State      state  `json:"state"`
	RemovedMS  int64  `json:"removedMs,omitempty"`
}

func (d definition) encode() []byte {
	j := definitionJSON{Kind: d.kind.String(), Partitions: d.partitions, Streams: d.streams, MaxBytes: d.retention.Bytes, State: d.state, RemovedMS: d.removedMS}
	if d.retention.Age > 0 {
		j.MaxAge = d.retention.Age.String()
	}
	value, err := json.Marshal(j)
	if err != nil {
		panic(err) // texts and numbers
	}
	return value
}

// decodeDefinition reads an entry's value. It may have been written by a newer version.
func decodeDefinition(value []byte) (d definition, err error) {
	var j definitionJSON
	if err := json.Unmarshal(value, &j); err != nil {
		return definition{}, err
	}
	d = definition{partitions: j.Partitions, streams: j.Streams, state: j.State, removedMS: j.RemovedMS, retention: eventlog.Retention{Bytes: j.MaxBytes}}
	if j.MaxAge != "" {
		if d.retention.Age, err = time.ParseDuration(j.MaxAge); err != nil {
			return definition{}, err
		}
	}
	for d.kind = 0; d.kind.String() != j.Kind; d.kind++ {
		if int(d.kind) > len(pools) {
			return definition{}, fmt.Errorf("kind %q of a log is not known", j.Kind)
		}
	}
	switch {
	case d.state != isNew && d.state != isLive && d.state != isRemoved:
		return definition{}, fmt.Errorf("state %q of a log is not known", j.State)
	case d.streams < 1:
		return definition{}, fmt.Errorf("a log has %d streams", d.streams)
	}
	return d, eventlog.Shape{Partitions: d.partitions, Kind: d.kind, Retention: d.retention}.Check()
}

// provide gives the definition that a log gets by a call of Provide; streams is for a new hub.
func (d definition) provide(shape eventlog.Shape, streams int) definition {
	if d.state == "" {
		d = definition{kind: shape.Kind, streams: 1, state: isNew}
		if shape.Kind == eventlog.KindHub {
			d.streams = streams
		}
	}
	d.partitions = max(d.partitions, shape.Partitions)
	d.retention = shape.Retention
	return d
}
