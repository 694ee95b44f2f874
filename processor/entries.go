package processor

import (
	"encoding/json"
	"strings"
	"time"
)

// The keys of the processor's entries.
const (
	presencePrefix = "presence/" // + instance
	nextPrefix     = "next/"     // + partition
)

// presence says that an instance lives: it is rewritten every Config.Renew, and it is the
// change of its version that counts.
type presence struct {
	// Nonce distinguishes two processes that use one id.
	Nonce string `json:"nonce"`
	// Life is what leases name that hang on this entry. Whoever writes one knows such leases; it is
	// empty in entries of older instances. An instance whose life was ended begins another.
	Life string `json:"life,omitempty"`
	// Ended: others have found the entry unchanged for a whole lease time, and nothing is held by
	// this life any more.
	Ended bool `json:"ended,omitempty"`
	// Started is by the instance's clock, for show.
	Started time.Time `json:"started"`
	Version int       `json:"version"`
	// Leaving: it stops, takes nothing more, and is not counted any more.
	Leaving bool `json:"leaving,omitempty"`
}

// nextOwner says who has asked for a partition.
type nextOwner struct {
	Instance string `json:"instance"`
}

func presenceEntry(id string, p presence, v Version) Entry {
	return Entry{Key: presencePrefix + id, Value: encode(p), Version: v}
}

func nextEntry(partition, instance string, v Version) Entry {
	return Entry{Key: nextPrefix + partition, Value: encode(nextOwner{instance}), Version: v}
}

// encode is for the types above, which cannot fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// decodePresence takes a record that cannot be read for that of an instance with no nonce: it
// is there, and whoever wrote it renews it or dies.
func decodePresence(f Entry) (id string, p presence) {
	_ = json.Unmarshal(f.Value, &p)
	return strings.TrimPrefix(f.Key, presencePrefix), p
}

func decodeNext(f Entry) (partition, instance string) {
	var n nextOwner
	_ = json.Unmarshal(f.Value, &n)
	return strings.TrimPrefix(f.Key, nextPrefix), n.Instance
}
