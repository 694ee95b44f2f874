package broker

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// definition is a hub as the store keeps it.
type definition struct {
	// Name is the spelling it was created with.
	Name string `json:"name"`
	// Log is the engine's name for its events, another for each incarnation.
	Log        string          `json:"log"`
	Partitions int             `json:"partitions"`
	Created    time.Time       `json:"created"`
	Retention  storedRetention `json:"retention"`
	Quota      quota.Limit     `json:"quota,omitzero"`
	Frames     FrameRules      `json:"frames,omitzero"`
	// Starts are where partitions begin of which events were deleted by number; see start.go.
	Starts map[int]eventlog.Sequence `json:"starts,omitempty"`
	// State is empty, or stateDeleting from the moment a deletion is decided.
	State string `json:"state,omitempty"`
}

const stateDeleting = "deleting"

// storedRetention is a Retention with its age written as people write it; what is
// left out keeps for ever.
type storedRetention struct {
	Age   string `json:"age,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

func storeRetention(r Retention) storedRetention {
	stored := storedRetention{Bytes: r.Bytes}
	if r.Age > 0 {
		stored.Age = r.Age.String()
	}
	return stored
}

func (r storedRetention) retention() (Retention, error) {
	if r.Age == "" {
		return Retention{Bytes: r.Bytes}, nil
	}
	age, err := time.ParseDuration(r.Age)
	return Retention{Age: age, Bytes: r.Bytes}, err
}

func (d definition) deleting() bool { return d.State == stateDeleting }

// hub is what users are shown. decodeDefinition has seen to it that all can be read.
func (d definition) hub() Hub {
	retention, _ := d.Retention.retention()
	return Hub{Name: d.Name, ID: d.id(), Partitions: d.Partitions, Created: d.Created, Retention: retention, Quota: d.Quota, Frames: d.Frames}
}

// id is made of the name of its log, since that is never used again: nothing has to be stored.
func (d definition) id() [16]byte {
	sum := sha256.Sum256([]byte(d.Log))
	return [16]byte(sum[:16])
}

func decodeDefinition(e meta.Entry) (definition, error) {
	var d definition
	if err := json.Unmarshal(e.Value, &d); err != nil {
		return d, fmt.Errorf("read definition %s: %w", e.Key, err)
	}
	if fold(d.Name) != nameOfHubKey(e.Key) {
		return d, fmt.Errorf("read definition %s: it names hub %q", e.Key, d.Name)
	}
	if d.Log == "" || d.Partitions < 1 || d.Partitions > MaxPartitions {
		return d, fmt.Errorf("read definition %s: log %q with %d partitions cannot be", e.Key, d.Log, d.Partitions)
	}
	if _, err := d.Retention.retention(); err != nil {
		return d, fmt.Errorf("read definition %s: retention: %w", e.Key, err)
	}
	return d, nil
}

// encode cannot fail: the fields are plain values.
func encode[T any](v T) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return value
}
