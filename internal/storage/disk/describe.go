package disk

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

var _ eventlog.Archivable = (*Engine)(nil)

// Logs gives the logs that are in the folder or were provided; see eventlog.Archivable.
func (e *Engine) Logs(ctx context.Context) ([]eventlog.Described, error) {
	stored, err := e.stored(ctx)
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, eventlog.ErrClosed
	}
	for name, l := range e.logs {
		if l.partitions > 0 {
			shape := eventlog.Shape{Partitions: max(l.partitions, stored[name].Shape.Partitions), Kind: l.kind, Retention: l.retention()}
			stored[name] = eventlog.Described{Name: name, Shape: shape, Known: true}
		}
	}
	all := make([]eventlog.Described, 0, len(stored))
	for name, described := range stored {
		if !e.removed[name] {
			all = append(all, described)
		}
	}
	slices.SortFunc(all, func(a, b eventlog.Described) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// stored gives the logs that have a folder, with as many partitions as there are folders for.
func (e *Engine) stored(ctx context.Context) (map[string]eventlog.Described, error) {
	found := map[string]eventlog.Described{}
	logs, err := e.fs.List(logDir)
	if vfs.IsNotExist(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, log := range logs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !log.Dir || !isLogName(log.Name) {
			continue
		}
		partitions, err := e.fs.List(path.Join(logDir, log.Name))
		if vfs.IsNotExist(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		number := 0
		for _, p := range partitions {
			if p.Dir && isPartitionName(p.Name) {
				n, _ := strconv.Atoi(p.Name)
				number = max(number, n+1)
			}
		}
		if number > 0 {
			found[log.Name] = eventlog.Described{Name: log.Name, Shape: eventlog.Shape{Partitions: number}}
		}
	}
	return found, nil
}

// Hold puts off what Trim allows; see eventlog.Archivable. Nobody else has the folder, so that it neither
// blocks nor fails.
func (e *Engine) Hold(context.Context) (release func(context.Context) error, err error) {
	e.holds.Add(1)
	end := sync.OnceFunc(func() { e.holds.Add(-1) })
	return func(context.Context) error {
		end()
		return nil
	}, nil
}
