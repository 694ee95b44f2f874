// Package legacy reads the checkpoints that older programs for Event Hubs have left behind: the
// Event Processor Hosts for .NET, Java, Go and Python, Azure Functions before version 5, Dapr, and
// the dialects of the SDKs' blob metadata. It only parses; package azblob reads the blobs.
package legacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/processor"
)

// NoOffset is what some releases for .NET wrote for an offset that they did not know.
const NoOffset = "no offset"

// Lease is what a host keeps in one blob: who owns a partition and how far it has come.
type Lease struct {
	Partition string // empty where the text does not say
	Owner     string
	Epoch     int64
	// Offset and Sequence are as they were written; Sequence is math.MinInt64 where nothing was.
	Offset   string
	Sequence int64
}

// Parse reads the JSON text of a host's lease. The dialects differ in the spelling of names
// and in that the host for Go keeps the position one level deeper:
//
//	.NET    PartitionId   Owner Epoch Offset SequenceNumber
//	Java    partitionId   owner epoch offset sequenceNumber
//	Python  partition_id  owner epoch offset sequence_number
//	Go      partitionID   owner epoch checkpoint: {offset sequenceNumber enqueueTime}
//
// so names are compared without regard to case and underscores.
func Parse(text []byte) (Lease, error) {
	fields, err := object(text)
	if err != nil {
		return Lease{}, err
	}
	l := Lease{Sequence: math.MinInt64}
	if nested, has := fields["checkpoint"]; has && !null(nested) {
		position, err := object(nested)
		if err != nil {
			return Lease{}, fmt.Errorf("checkpoint: %w", err)
		}
		for _, name := range []string{"offset", "sequencenumber"} {
			if value, has := position[name]; has {
				fields[name] = value
			}
		}
	}
	err = errors.Join(
		readText(fields, "partitionid", &l.Partition),
		readText(fields, "owner", &l.Owner),
		readText(fields, "offset", &l.Offset),
		readNumber(fields, "epoch", &l.Epoch),
		readNumber(fields, "sequencenumber", &l.Sequence),
	)
	if err != nil {
		return Lease{}, err
	}
	return l, nil
}

// Checkpoint gives the checkpoint of a partition that the lease has, and whether it has
// one. A host that has not made a checkpoint yet has written an empty offset, or the
// mark of an end of the stream, beside the number 0.
func (l Lease) Checkpoint(partition string) (processor.Checkpoint, bool) {
	c := processor.Checkpoint{Partition: partition, Sequence: max(l.Sequence, -1), Offset: offset(l.Offset)}
	if c.Offset == "" && c.Sequence <= 0 {
		return processor.Checkpoint{Partition: partition, Sequence: -1}, false
	}
	return c, true
}

// offset leaves out what is none: nothing, and the marks for the two ends of the stream.
func offset(text string) string {
	switch {
	case text == "-1", text == "@latest", strings.EqualFold(strings.TrimSpace(text), NoOffset):
		return ""
	}
	return text
}

var byteOrderMark = []byte("\ufeff")

// object reads a JSON object; its names lose case and underscores.
func object(text []byte) (map[string]json.RawMessage, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(text, byteOrderMark), &raw); err != nil {
		return nil, fmt.Errorf("no lease of a host: %w", err)
	}
	if raw == nil {
		return nil, errors.New("no lease of a host: null")
	}
	fields := make(map[string]json.RawMessage, len(raw))
	for name, value := range raw {
		plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
		if _, twice := fields[plain]; twice {
			return nil, fmt.Errorf("no lease of a host: %s is there in two spellings", plain)
		}
		fields[plain] = value
	}
	return fields, nil
}

func null(value json.RawMessage) bool { return string(bytes.TrimSpace(value)) == "null" }

// readText reads a text, or a number as its digits; some hosts wrote offsets so.
func readText(fields map[string]json.RawMessage, name string, into *string) error {
	value, has := fields[name]
	if !has || null(value) {
		return nil
	}
	if json.Unmarshal(value, into) == nil {
		return nil
	}
	var number json.Number
	if err := json.Unmarshal(value, &number); err != nil {
		return fmt.Errorf("%s: neither text nor number: %s", name, value)
	}
	*into = number.String()
	return nil
}

// readNumber reads a whole number, also from a text.
func readNumber(fields map[string]json.RawMessage, name string, into *int64) error {
	var text string
	if err := readText(fields, name, &text); err != nil || text == "" {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: no whole number: %q", name, text)
	}
	*into = n
	return nil
}

// Metadata reads a checkpoint from the metadata of a blob in the SDKs' layout, in any of its
// dialects: keys in any case (some releases for Java wrote capitals), keys that are missing, "no
// offset" for an offset and the least int64 for a number that was not known, and offsets that are
// no numbers, as geo-replicated namespaces have.
func Metadata(partition string, meta map[string]string) (processor.Checkpoint, error) {
	c := processor.Checkpoint{Partition: partition, Sequence: -1}
	if offset := valueOf(meta, "offset"); !strings.EqualFold(offset, NoOffset) {
		c.Offset = offset
	}
	if text := valueOf(meta, "sequencenumber"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return processor.Checkpoint{}, fmt.Errorf("sequence number %q is none", text)
		}
		c.Sequence = max(n, -1)
	}
	return c, nil
}

// valueOf gives the value of a key in lower case, or else in any other.
func valueOf(meta map[string]string, key string) string {
	if value, has := meta[key]; has {
		return value
	}
	for _, other := range slices.Sorted(maps.Keys(meta)) {
		if strings.EqualFold(other, key) {
			return meta[other]
		}
	}
	return ""
}

// DaprBlob names the blob in which Dapr keeps a partition's lease, a text of the host for Go.
func DaprBlob(hub, group, partition string) string {
	return "dapr-" + hub + "-" + group + "-" + partition
}

// DaprPartition gives the partition of which a blob of Dapr's is. Hub and group have to be known,
// as their own hyphens cannot be distinguished from those between them.
func DaprPartition(blob, hub, group string) (string, bool) {
	p, found := strings.CutPrefix(blob, DaprBlob(hub, group, ""))
	return p, found && p != "" && !strings.ContainsAny(p, "-/")
}
