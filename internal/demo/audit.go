package demo

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/eventyard/eventyard/admin"
)

// auditor reads the container, for the books. Any goroutine may use it.
type auditor struct {
	storage *storage
	client  *admin.Client
	began   time.Time

	mu      sync.Mutex
	settled map[string]map[page]int64 // what an hour had that is long over, by its prefix
}

// settledAfter is how long after its end an hour is read for the last time.
const settledAfter = time.Hour

// look gives what the container says of itself, by the metadata of its blobs, and then where the
// hub's partitions end. States come before blobs: a period moves from the one to the other, and may
// be seen twice, but not be missed.
func (a *auditor) look(ctx context.Context) (holdings, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := newHoldings()
	if err := a.list(ctx, "state/", h.noteState); err != nil {
		return h, err
	}
	for hour := a.began.UTC().Add(-time.Hour).Truncate(time.Hour); !hour.After(time.Now()); hour = hour.Add(time.Hour) {
		prefix := hour.Format("2006/01/02/15/")
		if a.settled[prefix] == nil {
			found := map[page]int64{}
			if err := a.list(ctx, prefix, func(_ string, meta map[string]string) { noteBlob(found, meta) }); err != nil {
				return h, err
			}
			maps.Copy(h.blobs, found)
			if time.Since(hour) < time.Hour+settledAfter {
				continue
			}
			a.settled[prefix] = found
		}
		maps.Copy(h.blobs, a.settled[prefix])
	}
	return h, a.ends(ctx, h)
}

func (a *auditor) ends(ctx context.Context, h holdings) error {
	partitions, err := a.client.Partitions(ctx, sensorsHub)
	for _, p := range partitions {
		h.ends[p.ID] = p.Last
	}
	return err
}

func (h holdings) noteState(name string, meta map[string]string) {
	partition := strconv.Itoa(number(strings.TrimPrefix(name, "state/")))
	h.saved[partition], _ = strconv.ParseInt(meta["sequence"], 10, 64)
	for pair := range strings.SplitSeq(meta["open"], ",") {
		period, readings, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		at, _ := strconv.ParseInt(period, 10, 64)
		h.open[page{partition, at}], _ = strconv.ParseInt(readings, 10, 64)
	}
}

func noteBlob(found map[page]int64, meta map[string]string) {
	at, _ := strconv.ParseInt(meta["period"], 10, 64)
	found[page{meta["partition"], at}], _ = strconv.ParseInt(meta["readings"], 10, 64)
}

func (a *auditor) list(ctx context.Context, prefix string, note func(name string, meta map[string]string)) error {
	pages := a.storage.container.NewListBlobsFlatPager(&azcontainer.ListBlobsFlatOptions{
		Prefix: &prefix, Include: azcontainer.ListBlobsInclude{Metadata: true},
		ResponseFormat: azcontainer.StorageResponseFormatXML,
	})
	for pages.More() {
		got, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, item := range got.Segment.BlobItems {
			meta := map[string]string{}
			for k, v := range item.Metadata {
				if v != nil {
					meta[strings.ToLower(k)] = *v
				}
			}
			note(*item.Name, meta)
		}
	}
	return nil
}

// read counts every line of every blob, whatever metadata and heads say.
func (a *auditor) read(ctx context.Context) (holdings, error) {
	h := newHoldings()
	if err := a.ends(ctx, h); err != nil {
		return h, err
	}
	var names []string
	if err := a.list(ctx, "", func(name string, _ map[string]string) { names = append(names, name) }); err != nil {
		return h, err
	}
	for _, name := range names {
		if err := a.readBlob(ctx, name, h); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (a *auditor) readBlob(ctx context.Context, name string, h holdings) error {
	if partition, ok := strings.CutPrefix(name, "state/"); ok {
		st, err := a.storage.load(ctx, strconv.Itoa(number(partition)))
		if err != nil {
			return err
		}
		h.saved[st.partition] = st.sequence
		for period, t := range st.open {
			h.open[page{st.partition, period}] = int64(t.readings)
		}
		return nil
	}
	w, err := a.storage.finished(ctx, name)
	if err != nil {
		return err
	}
	p := page{w.head.Partition, w.head.Period.Unix()}
	h.blobs[p] = int64(w.readings)
	h.repeats[p] = int64(w.repeats)
	return nil
}
