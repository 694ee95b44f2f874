package broker

import (
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
)

// charge is what a publication has taken of quotas: once, however often it is handed to the engine.
// It is given back where nothing is stored for it, so that quotas count what hubs take in.
type charge struct {
	meters        [3]*quota.Meter // the hub's, the publisher's and the yard's
	events, bytes int
	taken         bool
}

// take takes it, if that was not done yet. Error: *quota.Error.
func (c *charge) take(p *Pending, by *quota.Meter) error {
	if c.taken {
		return nil
	}
	c.meters, c.events, c.bytes = [...]*quota.Meter{p.hub.quota, by, p.broker.quota}, p.count, p.bytes
	err := quota.Take(c.events, c.bytes, time.Now(), c.meters[:]...)
	c.taken = err == nil
	return err
}

// ended is for a publication that the engine was handed: what may be stored stays charged.
func (c *charge) ended(err error) {
	if _, missing := errors.AsType[*NotFoundError](err); missing || certain(err) {
		c.refund()
	}
}

func (c *charge) refund() {
	if c.taken {
		c.taken = false
		quota.Charge(-c.events, -c.bytes, time.Now(), c.meters[:]...)
	}
}
