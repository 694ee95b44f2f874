package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// maxEventBytes is the most that a publication over AMQP may measure: what is put away here can be
// sent on by everybody.
const maxEventBytes = 1 << 20

// producer publishes to one partition under the caller's numbers. What failed is the caller's to
// send again, under the same number.
type producer struct {
	source *source
	cfg    hub.ProducerConfig

	mu     sync.Mutex
	open   *broker.Producer // guarded by mu; nil: it has not begun, or something failed since
	closed bool             // guarded by mu
}

// Producer gives one; nothing is begun before it is needed.
func (s *source) Producer(cfg hub.ProducerConfig) functions.Producer {
	return &producer{source: s, cfg: cfg}
}

// Send stores one event under a number; nil: it is durable, now or since an earlier sending.
func (p *producer) Send(ctx context.Context, number int32, ev event.Event) error {
	err := p.send(ctx, number, ev)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		err = translate(err)
	}
	p.forget()
	return fmt.Errorf("producer %d of %s/%s: send number %d: %w", p.cfg.ID, p.source.name, p.cfg.Partition, number, err)
}

var errNegative = errors.New("a producer's id, epoch and numbers begin at 0")

func (p *producer) send(ctx context.Context, number int32, ev event.Event) error {
	if number < 0 || p.cfg.ID < 0 || p.cfg.Epoch < 0 {
		return errNegative
	}
	stored := eventlog.Event{}
	if ev.Key != "" {
		stored.Key = []byte(ev.Key)
	}
	var err error
	if stored.Message, err = message.Append(nil, ev); err != nil {
		return err
	}
	if n := len(stored.Key) + len(stored.Message); n > maxEventBytes {
		return fmt.Errorf("%w: %d bytes, and %d are allowed", hub.ErrTooLarge, n, maxEventBytes)
	}
	to, err := p.begin(ctx)
	if err != nil {
		return err
	}
	pending, err := to.Submit(ctx, counted(number), []eventlog.Event{stored})
	if err != nil {
		return err
	}
	_, err = pending.Wait(ctx)
	return err
}

// counted is how the broker counts a number, and package hub shows it: one higher, as a producer
// that has stored nothing is told 0.
func counted(number int32) int32 { return int32((int64(number) + 1) & math.MaxInt32) }

// begin begins the producer's epoch, or goes on with it.
func (p *producer) begin(ctx context.Context) (*broker.Producer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, hub.ErrClosed
	}
	if p.open != nil {
		return p.open, nil
	}
	open, err := p.source.broker.Producer(ctx, p.source.name, p.cfg.Partition, broker.ProducerConfig{ID: &p.cfg.ID, Epoch: &p.cfg.Epoch, Yard: true})
	p.open = open
	return open, err
}

// forget lets the next Send begin anew: the hub may have been made anew.
func (p *producer) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = nil
}

func (p *producer) Close(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.open = true, nil
	return nil
}
