package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/paths"
)

const (
	defaultCheckRate = 32 << 20
	checkStep        = 1 << 20 // what is read at a time
	maxProblems      = 100     // that are listed
)

// checker reads all events in the background, one check at a time. run owns the goroutine that does.
type checker struct {
	engine eventlog.Engine
	log    *slog.Logger
	asked  chan int64 // rates; has room for one

	mu sync.Mutex
	// state is the check under way, or the last; nil: there was none. Guarded by mu.
	state *admin.StorageCheck
}

func newChecker(engine eventlog.Engine, log *slog.Logger) *checker {
	return &checker{engine: engine, log: log, asked: make(chan int64, 1)}
}

// last gives what is known of the check under way, or of the last; nil: there was none.
func (c *checker) last() *admin.StorageCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return nil
	}
	copied := *c.state
	copied.Problems = slices.Clone(copied.Problems)
	return &copied
}

// begin has a check done by run.
func (c *checker) begin(rate int64) (admin.StorageCheck, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != nil && c.state.Ended == nil {
		return admin.StorageCheck{}, &frame.Refusal{
			Status: http.StatusConflict, Code: "check-under-way", Title: "The storage is being checked",
			Detail: "this node reads its events already", Next: "look how far it is: GET /api/v1/storage",
		}
	}
	c.state = &admin.StorageCheck{Began: admin.Time{Time: time.Now().UTC()}, Problems: []string{}}
	c.asked <- cmp.Or(rate, defaultCheckRate) // there is room: the one before has ended
	return *c.state, nil
}

// run does what is asked for until ctx ends.
func (c *checker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case rate := <-c.asked:
			err := c.check(ctx, rate)
			c.change(func(s *admin.StorageCheck) {
				s.Ended = &admin.Time{Time: time.Now().UTC()}
				if err != nil {
					s.Failed = paths.Without(err)
					c.log.Warn("the storage could not be checked", "error", err)
				}
			})
		}
	}
}

func (c *checker) change(how func(*admin.StorageCheck)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how(c.state)
}

// check reads all logs there are when it begins.
func (c *checker) check(ctx context.Context, rate int64) error {
	archive, ok := c.engine.(eventlog.Archivable)
	if !ok {
		return errors.New("this storage does not tell which logs there are")
	}
	logs, err := archive.Logs(ctx)
	if err != nil {
		return err
	}
	c.change(func(s *admin.StorageCheck) {
		for _, log := range logs {
			s.TotalPartitions += log.Shape.Partitions
		}
	})
	for _, log := range logs {
		for number := range log.Shape.Partitions {
			err := c.checkPartition(ctx, eventlog.PartitionID{Log: log.Name, Number: number}, rate)
			if err != nil && !errors.Is(err, eventlog.ErrRemoved) { // else it was deleted meanwhile
				return err
			}
			c.change(func(s *admin.StorageCheck) { s.Partitions++ })
		}
	}
	return nil
}

// checkPartition reads one up to where it ends when its turn comes, and goes on behind damage.
func (c *checker) checkPartition(ctx context.Context, id eventlog.PartitionID, rate int64) error {
	p, err := c.engine.Partition(id)
	if err != nil {
		return err
	}
	bounds, err := p.Bounds(ctx)
	if err != nil || bounds.Empty() {
		return err
	}
	cursor, err := p.Cursor(ctx, eventlog.At(bounds.First))
	var runs []eventlog.Run
	for err == nil && cursor.At() < bounds.Next {
		runs, err = cursor.TryNextAll(ctx, runs[:0], checkStep)
		if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok {
			c.found(fmt.Sprintf("log %s, partition %d: %s", id.Log, id.Number, damage.Lost()))
			_ = cursor.Close()
			if damage.Next <= cursor.At() || damage.Next >= bounds.Next {
				return nil // nothing readable follows
			}
			cursor, err = p.Cursor(ctx, eventlog.At(damage.Next))
			continue
		}
		if err == nil && len(runs) == 0 {
			break
		}
		if err == nil {
			err = c.passed(ctx, runs, rate)
		}
	}
	if cursor != nil {
		_ = cursor.Close()
	}
	return err
}

func (c *checker) found(problem string) {
	c.change(func(s *admin.StorageCheck) {
		if len(s.Problems) < maxProblems {
			s.Problems = append(s.Problems, problem)
		} else {
			s.MoreProblems++
		}
	})
}

// passed counts what was read, and rests for as long as it may take.
func (c *checker) passed(ctx context.Context, runs []eventlog.Run, rate int64) error {
	var bytes, events int64
	for _, run := range runs {
		bytes += int64(eventlog.Batch{Events: run.Events, Raw: run.Raw}.Bytes())
		events += int64(run.Len())
	}
	c.change(func(s *admin.StorageCheck) { s.Bytes += bytes; s.Events += events })
	return sleep.For(ctx, time.Duration(float64(bytes)/float64(rate)*float64(time.Second)), nil)
}
