package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ProducerInfo is what is known of an idempotent producer of a partition.
type ProducerInfo struct {
	ID    int64
	Epoch int16
	// Last is the newest of its numbers that is stored; -1: none is.
	Last int32
	// Used is when it last did something.
	Used time.Time
}

// Producers tells which idempotent producers a partition has, by id: those that are remembered. It may read what the log
// has of them since they were last written down. Errors as for Partition.
func (f *Frames) Producers(ctx context.Context, hub, partition string) ([]ProducerInfo, error) {
	b := f.broker
	h, number, err := b.locate(ctx, hub, partition)
	if err != nil {
		return nil, err
	}
	l, err := b.ledgers.used(ctx, h, number)
	if l == nil || err != nil {
		return nil, err
	}
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return nil, b.gone(h, fmt.Errorf("read the producers of %s/%s: %w", h.Name, partition, err))
	}
	if !l.accounts.sole {
		bounds, err := l.partition.Bounds(ctx)
		if err == nil {
			err = l.catchUp(ctx, l.accounts.unread(nil), bounds.Next)
		}
		if err != nil {
			return nil, b.gone(h, fmt.Errorf("read the producers of %s/%s: %w", h.Name, partition, err))
		}
	}
	return l.accounts.list(), nil
}

// used is the ledger of a partition that has ever had a producer; nil: it has not.
func (ls *ledgers) used(ctx context.Context, h *hub, number int) (*ledger, error) {
	ls.mu.Lock()
	l := ls.all[eventlog.PartitionID{Log: h.log, Number: number}]
	ls.mu.Unlock()
	if l != nil {
		return l, nil
	}
	_, err := ls.broker.meta.Get(ctx, producerKey(h.log, number))
	if errors.Is(err, meta.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read producers: %w", err)
	}
	return ls.of(h, number), nil
}

func (as *accounts) list() (all []ProducerInfo) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for id, a := range as.byID {
		if a.epoch == unknown {
			continue
		}
		one := ProducerInfo{ID: id, Epoch: a.epoch, Last: a.last, Used: time.Unix(a.used, 0).UTC()}
		if a.none {
			one.Last = -1
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b ProducerInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
