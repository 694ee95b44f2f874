package groups

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// groupsPrefix is what the keys of all groups begin with.
const groupsPrefix = "kafka/groups/"

const (
	// shardPartitions is how many partitions of a hub have their offsets in one entry.
	shardPartitions = 128
	// maxShards is how many entries of offsets a group may have, over all hubs.
	maxShards = 1000
	// MaxMetadataBytes is what a client may say beside an offset. A full shard of these fits into an entry.
	MaxMetadataBytes = 1024
)

// The kinds of groups, as Kafka names them.
const (
	KindClassic  = "classic"
	KindConsumer = "consumer"
)

// entry is a group as the store keeps it.
type entry struct {
	Kind string `json:"kind"`
	// Node coordinates the group, and Epoch says that it does: it rises with each that begins to. Write
	// numbers what that coordinator has written.
	Node  string `json:"node,omitempty"`
	Epoch int64  `json:"epoch"`
	Write int64  `json:"write"`
	// By is the account of who made the group; empty: nobody is counted for it.
	By string `json:"by,omitempty"`
	// Empty is since when nobody is in the group; zero: somebody is.
	Empty time.Time `json:"empty,omitzero"`
	// Shards are those that may have offsets.
	Shards []shard `json:"shards,omitempty"`
	// Classic and Consumer are for groups of that kind each.
	Classic  *classic.Stored `json:"classic,omitempty"`
	Consumer *consumer.Group `json:"consumer,omitempty"`
}

// members is how many members are stored.
func (e entry) members() int {
	switch {
	case e.Consumer != nil:
		return e.Consumer.Len()
	case e.Classic != nil:
		return len(e.Classic.Members)
	}
	return 0
}

// shard is some partitions of a hub.
type shard struct {
	Log    string `json:"log"`
	Number int    `json:"number,omitempty"`
}

// shardOf is the one that a partition is in.
func shardOf(p Partition) shard { return shard{p.Log, int(p.Number) / shardPartitions} }

// offsets is a shard as the store keeps it.
type offsets struct {
	// Epoch is that of the coordinator that has written it, or has fenced it off from those before.
	Epoch int64 `json:"epoch"`
	// Partitions are by number.
	Partitions map[int32]Position `json:"partitions,omitempty"`
}

// Partition is one of a hub, which is named by its log.
type Partition struct {
	Log    string
	Number int32
}

// Position is what a group has committed of a partition.
type Position struct {
	Offset int64 `json:"offset"`
	// Epoch is the leader epoch that the client says the offset is of; -1: it does not.
	Epoch int32 `json:"epoch"`
	// Time is when it was committed.
	Time time.Time `json:"time"`
	// Metadata are what the client has to say beside it.
	Metadata []byte `json:"metadata,omitempty"`
}

// segment makes a segment of a key of a group's id, which is any text: what keys must not have is escaped.
func segment(id string) string {
	var b strings.Builder
	for at := 0; at < len(id); {
		r, size := utf8.DecodeRuneInString(id[at:])
		if r == '/' || r == '%' || unicode.IsControl(r) || r == utf8.RuneError && size == 1 {
			for i := range size {
				fmt.Fprintf(&b, "%%%02X", id[at+i])
			}
		} else {
			b.WriteString(id[at : at+size])
		}
		at += size
	}
	return b.String()
}

func groupKey(id string) string { return groupsPrefix + segment(id) }

// idOf is the group that a key is of.
func idOf(key string) (string, error) {
	id, err := url.PathUnescape(strings.TrimPrefix(key, groupsPrefix))
	if err != nil {
		return "", fmt.Errorf("read group %s: %w", key, err)
	}
	return id, nil
}

// offsetKeys is what the keys of a group's offsets in one hub begin with.
func offsetKeys(id, log string) string { return broker.KafkaOffsetKeys(log) + segment(id) + "/" }

func (s shard) key(id string) string { return offsetKeys(id, s.Log) + strconv.Itoa(s.Number) }

// checkID refuses what cannot be a group's id.
func checkID(id string) error {
	if id == "" || len(id) > member.MaxIDBytes {
		return ErrInvalidID
	}
	return nil
}

func decodeEntry(e meta.Entry) (entry, error) {
	var g entry
	if err := json.Unmarshal(e.Value, &g); err != nil {
		return g, fmt.Errorf("read group %s: %w", e.Key, err)
	}
	if g.Kind != KindClassic && g.Kind != KindConsumer {
		return g, fmt.Errorf("read group %s: a newer program has made it a group of kind %q", e.Key, g.Kind)
	}
	return g, nil
}

func decodeOffsets(e meta.Entry) (offsets, error) {
	var o offsets
	if err := json.Unmarshal(e.Value, &o); err != nil {
		return o, fmt.Errorf("read offsets %s: %w", e.Key, err)
	}
	if o.Partitions == nil {
		o.Partitions = make(map[int32]Position)
	}
	return o, nil
}

// encode writes an entry. There is nothing in one that JSON could not have.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
