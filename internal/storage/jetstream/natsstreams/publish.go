package natsstreams

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// publisher hands messages over and hears what became of them. doc.go has its design. It has two
// goroutines of its own, which close ends; the subscription's is the client library's.
type publisher struct {
	conn     *nats.Conn // used by run alone but for close
	inbox    string     // what subjects of answers begin with, before the number
	answers  *nats.Subscription
	wake     chan struct{} // something was published
	stop     chan struct{} // closed by close
	stopOnce sync.Once
	running  sync.WaitGroup

	mu     sync.Mutex
	table  table
	closed bool
}

func newPublisher(conn *nats.Conn) (*publisher, error) {
	p := &publisher{conn: conn, inbox: conn.NewInbox() + ".", wake: make(chan struct{}, 1), stop: make(chan struct{})}
	p.table.first, p.table.next, p.table.end = 1, 1, 1
	var err error
	if p.answers, err = listen(conn, p.inbox, p.heard); err != nil {
		return nil, err
	}
	p.running.Go(p.run)
	p.running.Go(p.watch)
	return p, nil
}

// listen subscribes to the answers to all requests that begin with an inbox. How many there are is
// bounded by those who ask, so none of them is dropped.
func listen(conn *nats.Conn, inbox string, heard nats.MsgHandler) (*nats.Subscription, error) {
	sub, err := conn.Subscribe(inbox+"*", heard)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	return sub, err
}

// numbered gives the number of an answer's subject.
func numbered(inbox, subject string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(subject, inbox), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// publish enters a message, or says why not. It does not wait.
func (p *publisher) publish(subject string, data []byte, done func(streams.Seq, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return streams.ErrClosed
	case !p.table.add(waiting{subject, data, time.Now().Add(patience), done}):
		return fmt.Errorf("%w: %d messages wait already", streams.ErrUnavailable, maxWaiting)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// run hands messages over.
func (p *publisher) run() {
	for {
		p.mu.Lock()
		number, w, ok := p.table.take()
		p.mu.Unlock()
		if ok {
			p.handOver(number, w)
			continue
		}
		select {
		case <-p.wake:
		case <-p.stop:
			return
		}
	}
}

// handOver gives a message to the client library. An error of the socket leaves doubt: the message
// may have been the whole of what was written before.
func (p *publisher) handOver(number uint64, w waiting) {
	if !p.conn.IsConnected() {
		p.settle(number, 0, p.unconnected())
		return
	}
	err := p.conn.PublishRequest(w.subject, p.inbox+strconv.FormatUint(number, 10), w.data)
	switch {
	case err == nil:
	case errors.Is(err, nats.ErrMaxPayload):
		p.settle(number, 0, fmt.Errorf("%w: a message of %d bytes, and the servers take %d (max_payload)", streams.ErrNoSpace, len(w.data), p.conn.MaxPayload()))
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrBadSubject):
		p.settle(number, 0, plain(err))
	default:
		p.settle(number, 0, fmt.Errorf("%w: %w", streams.ErrUncertain, err))
	}
}

func (p *publisher) unconnected() error {
	if p.conn.IsClosed() {
		return streams.ErrClosed
	}
	return errUnconnected
}

var errUnconnected = fmt.Errorf("%w: there is no connection", streams.ErrUnavailable)

// settle tells of a message's fate, unless that was done.
func (p *publisher) settle(number uint64, seq streams.Seq, err error) {
	p.mu.Lock()
	done := p.table.settle(number)
	p.mu.Unlock()
	if done != nil {
		done(seq, err)
	}
}

// heard takes in an answer.
func (p *publisher) heard(msg *nats.Msg) {
	seq, err := judge(msg)
	p.settle(numbered(p.inbox, msg.Subject), seq, err)
}

// errNobody: see doc.go.
var errNobody = fmt.Errorf("%w: nobody leads the stream, or it is not there", streams.ErrUnavailable)

// judge reads the answer to a publish.
func judge(msg *nats.Msg) (streams.Seq, error) {
	if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		return 0, errNobody
	}
	seq, err := answers.ReadAck(msg.Data)
	if err == nil {
		return streams.Seq(seq), nil
	}
	refusal, is := errors.AsType[*answers.Refusal](err)
	switch {
	case !is, !refusal.Certain():
		return 0, fmt.Errorf("%w: %w", streams.ErrUncertain, err)
	case refusal.Full():
		return 0, fmt.Errorf("%w: %w", streams.ErrNoSpace, refusal)
	case refusal.Code == answers.CodeNoStream:
		return 0, streams.ErrNoStream
	}
	return 0, fmt.Errorf("%w: %w", streams.ErrUnavailable, refusal)
}

// watch tells of messages whose patience has run out. Where none waits it sleeps for as long as the
// next one may.
func (p *publisher) watch() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
		}
		timer.Reset(p.expire(time.Now()))
	}
}

// expire settles what has waited too long, and says when the next one will have.
func (p *publisher) expire(now time.Time) time.Duration {
	for {
		p.mu.Lock()
		done, handedOver := p.table.expire(now)
		next, any := p.table.deadline()
		p.mu.Unlock()
		switch {
		case done != nil && handedOver:
			done(0, streams.ErrUncertain)
		case done != nil:
			done(0, errStuck)
		case any:
			return time.Until(next)
		default:
			return patience
		}
	}
}

// errStuck: the messages before it could not be written in time.
var errStuck = fmt.Errorf("%w: the connection takes nothing", streams.ErrUnavailable)

// close settles all that waits and ends the goroutines.
func (p *publisher) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stopOnce.Do(func() { close(p.stop) })
	for {
		p.mu.Lock()
		done, handedOver := p.table.oldest()
		p.mu.Unlock()
		switch {
		case done == nil:
			p.running.Wait()
			_ = p.answers.Unsubscribe()
			return
		case handedOver:
			done(0, streams.ErrUncertain)
		default:
			done(0, streams.ErrClosed)
		}
	}
}
