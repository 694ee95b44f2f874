package eventgrid

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// grace is how much longer than its wait a long poll may take in all.
const grace = 30 * time.Second

// longPoll is how long a wait has to be for what was shown at its beginning to be checked
// again at its end.
const longPoll = time.Second

// maxLate is how long giving back may take what nobody is there to take.
const maxLate = 5 * time.Second

// receive gives events to who asks for them, at once or when one comes (reference §19). By the
// book the wait is 10 s at least; shorter ones do no harm.
func (c *call) receive() error {
	most, err := c.number("maxEvents", 1, 100, 1)
	if err != nil {
		return err
	}
	seconds, err := c.number("maxWaitTime", 1, 120, 60)
	if err != nil {
		return err
	}
	s, err := c.subscription()
	if err != nil {
		return err
	}
	if _, err := c.body(); err != nil { // it has none; but who leaves is noticed only behind it
		return err
	}
	began, wait := time.Now(), time.Duration(seconds)*time.Second
	c.takeUntil(began.Add(wait + grace))
	events, err := c.wait(s.ID, most, wait)
	if err != nil {
		return err
	}
	if time.Since(began) > longPoll {
		err = c.Admit() // the key may have been made anew meanwhile
	}
	if err == nil {
		err = c.R.Context().Err()
	}
	if err != nil {
		c.giveBack(s.ID, events)
		return err
	}
	return c.reply(http.StatusOK, "application/json", c.appendReceived(nil, events))
}

// wait is a long poll that ends, with nothing, when the yard begins to stop.
func (c *call) wait(subscription string, most int, wait time.Duration) ([]delivery.Received, error) {
	ctx, cancel := context.WithCancel(caller.With(c.R.Context(), c.caller))
	defer cancel()
	defer context.AfterFunc(c.handler.cfg.Stopping, cancel)()
	events, err := c.handler.cfg.Pull.Receive(ctx, subscription, most, wait)
	if err != nil && len(events) == 0 && ctx.Err() != nil && c.R.Context().Err() == nil {
		return nil, nil
	}
	return events, err
}

// giveBack releases what was received for somebody who has left, rather than let it wait for
// its lock to end. It is best effort: the lock does end.
func (c *call) giveBack(subscription string, events []delivery.Received) {
	if len(events) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.R.Context()), maxLate)
	defer cancel()
	tokens := make([]string, len(events))
	for i, e := range events {
		tokens[i] = e.Token
	}
	_ = c.handler.cfg.Pull.GiveBack(ctx, subscription, tokens)
}

// appendReceived writes the answer to receive. Events of other schemas are converted. One that
// cannot be written is left out: its lock ends, and in time it is dead-lettered as any that
// nobody takes.
func (c *call) appendReceived(dst []byte, events []delivery.Received) []byte {
	dst = append(dst, `{"value":[`...)
	var envelope schema.Envelope
	first := true
	for _, e := range events {
		before := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"brokerProperties":{"lockToken":`...)
		token, _ := json.Marshal(e.Token) // a text always has a form
		dst = append(dst, token...)
		dst = append(dst, `,"deliveryCount":`...)
		dst = strconv.AppendInt(dst, int64(e.Delivery), 10)
		dst = append(dst, `},"event":`...)
		written, err := dst, envelope.Scan(e.Form, e.Event)
		if err == nil {
			envelope.Topic, envelope.Trace = cmp.Or(e.Topic, c.topic.Resource), e.Trace
			written, err = schema.AppendEvent(dst, &envelope, schema.CloudEvents)
		}
		if err != nil {
			c.handler.cfg.Log.Error("an event that was received cannot be written", "topic", c.topic.Name, "subscription", c.names.subscription, "error", err)
			dst = dst[:before]
			continue
		}
		dst, first = append(written, '}'), false
	}
	return append(dst, `]}`...)
}
