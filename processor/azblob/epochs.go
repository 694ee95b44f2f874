package azblob

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// epoch is an epoch blob: the last number that was drawn, by whom, and the number under
// which the partition was owned at that time.
type epoch struct {
	number int64
	owner  string

	heldNumber int64
	heldOwner  string // empty: nobody, or a foreign owner

	drawn   time.Time
	version processor.Version // empty: no number was ever drawn
}

func newEpoch(r record) (epoch, error) {
	e := epoch{owner: r.meta["owner"], heldOwner: r.meta["heldowner"], drawn: r.modified, version: r.version}
	if r.version == "" {
		return e, nil
	}
	var err error
	if e.number, err = strconv.ParseInt(r.meta["epoch"], 10, 64); err != nil {
		return epoch{}, fmt.Errorf("blob %s: metadata epoch: %w", r.name, err)
	}
	if e.heldOwner != "" {
		if e.heldNumber, err = strconv.ParseInt(r.meta["heldepoch"], 10, 64); err != nil {
			return epoch{}, fmt.Errorf("blob %s: metadata heldepoch: %w", r.name, err)
		}
	}
	return e, nil
}

// of gives the number under which an owner has the partition, and whether it drew one. For a
// foreign owner, or nobody, it is the highest drawn.
func (e epoch) of(owner string) (int64, bool) {
	switch {
	case owner == "":
		return e.number, false
	case owner == e.owner:
		return e.number, true
	case owner == e.heldOwner:
		return e.heldNumber, true
	}
	return e.number, false
}

// readEpoch reads a partition's epoch blob.
func (s *store) readEpoch(ctx context.Context, folder, partition string) (epoch, error) {
	r, err := s.blobs.head(ctx, epochBlob(folder, partition))
	if err != nil {
		return epoch{}, err
	}
	return newEpoch(r)
}

func (e epoch) meta() map[string]string {
	meta := map[string]string{"epoch": strconv.FormatInt(e.number, 10), "owner": e.owner}
	if e.heldOwner != "" {
		meta["heldowner"], meta["heldepoch"] = e.heldOwner, strconv.FormatInt(e.heldNumber, 10)
	}
	return meta
}

func epochBlob(folder, partition string) string { return folder + "eventyard/epoch/" + partition }
