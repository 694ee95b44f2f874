package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/quota"
)

// noted is an entry that waits to be written, with how long it is.
type noted struct {
	activity.Entry
	bytes int
}

// fit gives an entry that is no longer than one may be: what moved is left out if that is too much.
func fit(e activity.Entry) noted {
	n := noted{e, sizeOf(e)}
	if n.bytes <= maxEntryBytes {
		return n
	}
	if n.Count == 0 {
		for _, m := range e.Moves {
			n.Count += len(m.Partitions)
		}
	}
	n.Moves, n.Detail = nil, fmt.Sprintf("%d partitions, with names of owners too long to be kept", n.Count)
	n.bytes = sizeOf(n.Entry)
	return n
}

func sizeOf(e activity.Entry) int {
	text, _ := json.Marshal(e) // what cannot be written is told when it is
	return len(text)
}

// What clients do by the right to listen, coming and going and taking partitions, is noted as well. So that
// nobody drives out by it what operators did, it has a part of the journal only: of all that is kept, on
// each of five nodes, and within it a group has a part of its own.
var (
	paceOfClients = quota.Rate{PerSecond: 7, Burst: 2 << 20} // 6 MiB within KeepFor
	paceOfGroup   = quota.Rate{PerSecond: 4, Burst: 512 << 10}
)

// maxGroups is of how many groups the parts are known; the others share what there is for all.
const maxGroups = 1024

// clients is what clients may have noted, in bytes.
type clients struct {
	all *quota.Bucket
	of  map[string]*quota.Bucket // by group
}

func newClients() clients { return clients{quota.New(paceOfClients), map[string]*quota.Bucket{}} }

// take takes an entry's bytes; not ok: clients have had theirs.
func (c clients) take(n noted, now time.Time) (ok bool) {
	if family := n.Kind.Family(); family != "ownership" && family != "instance" {
		return true
	}
	group := c.group(n.Object, now)
	if c.all.Wait(now) > 0 || group.Wait(now) > 0 {
		return false
	}
	c.all.Charge(float64(n.bytes), now)
	group.Charge(float64(n.bytes), now)
	return true
}

// group finds the part of the group that an object, hubs/HUB/groups/GROUP or more, belongs to.
func (c clients) group(object string, now time.Time) *quota.Bucket {
	parts := strings.SplitN(object, "/", 5)
	name := strings.Join(parts[:min(len(parts), 4)], "/")
	if b := c.of[name]; b != nil {
		return b
	}
	if len(c.of) >= maxGroups {
		maps.DeleteFunc(c.of, func(_ string, b *quota.Bucket) bool { return b.IsFull(now) })
	}
	b := quota.New(paceOfGroup)
	if len(c.of) < maxGroups {
		c.of[name] = b
	}
	return b
}
