package legacy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/processor"
)

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
