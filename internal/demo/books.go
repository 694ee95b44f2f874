package demo

import (
	"cmp"
	"fmt"
	"maps"
	"time"
)

// count is what the gateway has of one period.
type count struct {
	Begun int64 `json:"begun"` // handed to the client for sending
	Acked int64 `json:"acked"` // stored, as the yard has said
}

// counts are those of all periods, by their beginning in seconds.
type counts map[int64]count

// total adds up all periods.
func (c counts) total() (all count) {
	for _, one := range c {
		all.Begun += one.Begun
		all.Acked += one.Acked
	}
	return all
}

// update takes newer figures of some periods.
func (c counts) update(newer counts) { maps.Copy(c, newer) }

// page is a period of a partition.
type page struct {
	partition string
	period    int64
}

// holdings are what the container and the hub held at one look.
type holdings struct {
	blobs   map[page]int64   // readings by finished blob
	repeats map[page]int64   // readings that stand there more than once
	open    map[page]int64   // readings by open period of a saved state
	saved   map[string]int64 // sequence number of each saved state
	ends    map[string]int64 // newest sequence number of each partition
}

func newHoldings() holdings {
	return holdings{
		blobs: map[page]int64{}, repeats: map[page]int64{}, open: map[page]int64{}, saved: map[string]int64{}, ends: map[string]int64{},
	}
}

// counted is how many readings there are by period, and how many of them are in finished blobs. A
// period that is in both is in the blob, once.
func (h holdings) counted() (byPeriod map[int64]int64, inBlobs, inAll int64) {
	byPeriod = map[int64]int64{}
	for p, n := range h.blobs {
		inBlobs += n
		byPeriod[p.period] += max(n, h.open[p])
		inAll += max(n, h.open[p])
	}
	for p, n := range h.open {
		if _, finished := h.blobs[p]; !finished {
			byPeriod[p.period] += n
			inAll += n
		}
	}
	return byPeriod, inBlobs, inAll
}

// unread is how many events no saved state has seen yet.
func (h holdings) unread() (n int64) {
	for partition, end := range h.ends {
		saved, ok := h.saved[partition]
		if !ok {
			saved = -1
		}
		n += max(0, end-saved)
	}
	return n
}

// drained tells whether every event is in a saved state.
func (h holdings) drained() bool { return len(h.ends) > 0 && h.unread() == 0 }

// Books say what became of the readings.
type Books struct {
	Acknowledged int64 `json:"acknowledged"`
	InBlobs      int64 `json:"inBlobs"`
	OnTheWay     int64 `json:"onTheWay"`
	Lost         int64 `json:"lost"`
	ReadTwice    int64 `json:"readTwice"`
	CountedTwice int64 `json:"countedTwice"`
}

// balanced tells whether nothing is lost and nothing is counted twice.
func (b Books) balanced() bool { return b.Lost == 0 && b.CountedTwice == 0 }

// String is the books in a sentence.
func (b Books) String() string {
	return fmt.Sprintf("acknowledged %s = in blobs %s + on their way %s; lost %s; read twice %s; counted twice %s",
		thousands(b.Acknowledged), thousands(b.InBlobs), thousands(b.OnTheWay), thousands(b.Lost), thousands(b.ReadTwice), thousands(b.CountedTwice))
}

// liveBooks are those of a running demo. before and after are what the gateway had counted before
// and after the container and the hub were looked at: what was acknowledged before the look must be
// found by it, and nothing may be found that was not begun after it. What is found may still be
// moving, so that a loss could hide behind events that are on their way, for as long as they are.
func liveBooks(before, after counts, h holdings, readTwice int64) Books {
	_, inBlobs, inAll := h.counted()
	b := Books{Acknowledged: before.total().Acked, InBlobs: inBlobs, ReadTwice: readTwice}
	b.Lost = max(0, b.Acknowledged-inAll-h.unread())
	b.OnTheWay = max(0, b.Acknowledged-b.InBlobs-b.Lost)
	b.CountedTwice = max(0, inAll-after.total().Begun)
	return b
}

// finalBooks are those at the end, when nothing moves any more. Each period has to balance by itself.
func finalBooks(sent counts, h holdings, readTwice int64) Books {
	byPeriod, inBlobs, _ := h.counted()
	b := Books{Acknowledged: sent.total().Acked, InBlobs: inBlobs, ReadTwice: readTwice}
	for period, c := range sent {
		found := byPeriod[period]
		b.Lost += max(0, c.Acked-found)
		b.CountedTwice += max(0, found-c.Begun)
	}
	for period, n := range byPeriod {
		if _, known := sent[period]; !known {
			b.CountedTwice += n
		}
	}
	for _, n := range h.repeats {
		b.CountedTwice += n
	}
	b.OnTheWay = max(0, b.Acknowledged-b.InBlobs-b.Lost)
	return b
}

// rereads tells events that were read for the first time from those that were read again, by their
// numbers.
type rereads struct {
	newest map[string]int64 // by partition
	twice  int64
}

// note takes that the events of a partition from one number to another were given to a consumer.
func (r *rereads) note(partition string, from, to int64) {
	if r.newest == nil {
		r.newest = map[string]int64{}
	}
	newest, ok := r.newest[partition]
	if !ok {
		newest = -1
	}
	r.twice += max(0, min(to, newest)-from+1)
	r.newest[partition] = max(newest, to)
}

// periodName is a period in the names of blobs: folders for year, month, day and hour, then the
// minute, with its second where periods are shorter.
func periodName(period time.Time, every time.Duration) string {
	if every%time.Minute == 0 {
		return period.UTC().Format("2006/01/02/15/04")
	}
	return period.UTC().Format("2006/01/02/15/04-05")
}

// blobName is that of a partition's blob of a period.
func blobName(partition string, period time.Time, every time.Duration) string {
	return fmt.Sprintf("%s/%02s.jsonl", periodName(period, every), cmp.Or(partition, "0"))
}
