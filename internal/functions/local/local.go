// Package local is the hubs of a yard for the functions that run in its own process: what package
// hub is over AMQP, without a connection. Events come from the broker's cursors and are decoded
// where they lie; receivers take their slots at the broker, so that epochs, take-over and quotas
// (H5 to H7) are the same for all who read, by whatever way. Nobody is asked for rights.
//
// Errors are those of package hub that callers branch on, wrapped around the broker's own.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Namespace is all hubs of a yard.
type Namespace struct {
	broker *broker.Broker
	log    *slog.Logger
	tails  *tails
}

var _ functions.Namespace = (*Namespace)(nil)

// New makes one; log takes what readers carry on from.
func New(b *broker.Broker, log *slog.Logger) *Namespace {
	return &Namespace{b, log, &tails{broker: b, open: map[string]*tail{}}}
}

// Hub gives a hub by its name, without asking whether it exists.
func (n *Namespace) Hub(name string) functions.Source { return &source{n.broker, n.log, n.tails, name} }

// source is one hub. It is found by its name at each call, as it may be made anew.
type source struct {
	broker *broker.Broker
	log    *slog.Logger
	tails  *tails
	name   string
}

func (s *source) Namespace() string { return s.broker.Namespace() }
func (s *source) Name() string      { return s.name }

func (s *source) Info(context.Context) (hub.Info, error) {
	h, err := s.broker.Hub(s.name)
	if err != nil {
		return hub.Info{}, fmt.Errorf("ask for hub %s: %w", s.name, translate(err))
	}
	return hub.Info{Name: h.Name, Created: milliseconds(h.Created), Partitions: h.PartitionIDs()}, nil
}

// milliseconds is a time as hubs tell it over AMQP: checkpoints name their hub by it.
func milliseconds(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

func (s *source) Partition(ctx context.Context, id string) (hub.PartitionInfo, error) {
	p, err := s.broker.Partition(ctx, s.name, id)
	if err != nil {
		return hub.PartitionInfo{}, fmt.Errorf("ask for partition %s/%s: %w", s.name, id, translate(err))
	}
	return hub.PartitionInfo{
		Partition: p.ID, First: int64(p.First), Last: int64(p.Last), LastOffset: p.LastOffset, LastEnqueued: p.LastTime, Empty: p.Empty,
	}, nil
}

// meanings are the broker's and the log's errors in the words of package hub. What is not here may
// pass by waiting.
var meanings = []struct {
	match   func(error) bool
	meaning error
}{
	{as[*broker.NotFoundError], hub.ErrNotFound},
	{is(eventlog.ErrRemoved), hub.ErrNotFound},
	{as[*broker.EvictedError], hub.ErrEvicted},
	{as[*broker.EpochError], hub.ErrRefused},
	{as[*broker.ReceiverQuotaError], hub.ErrRefused},
	{as[*eventlog.PositionError], hub.ErrOutOfRange},
	{is(eventlog.ErrTooLarge), hub.ErrTooLarge},
	{is(broker.ErrOutOfOrder), hub.ErrOutOfOrder},
	{is(broker.ErrProducerFenced), hub.ErrProducerFenced},
	{is(eventlog.ErrClosed), hub.ErrClosed},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// meaning is the error of package hub that an error means; nil: it may pass by waiting.
func meaning(err error) error {
	for _, m := range meanings {
		if m.match(err) {
			return m.meaning
		}
	}
	return nil
}

// translate wraps an error with what it means. An append in doubt, or a context that has ended,
// means nothing more.
func translate(err error) error {
	if m := meaning(err); m != nil && !errors.Is(err, eventlog.ErrUncertain) {
		return fmt.Errorf("%w: %w", m, err)
	}
	return err
}
