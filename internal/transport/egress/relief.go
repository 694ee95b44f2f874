package egress

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/transport/share"
)

// reliefPeriod is how often room is made while somebody waits for a connection.
const reliefPeriod = 20 * time.Millisecond

// shortage has room made for who waits, until nobody does.
func (c *Client) shortage() {
	if c.relieving.CompareAndSwap(false, true) && !c.spawn(c.relieve) {
		c.relieving.Store(false)
	}
}

// relieve ends what is of less use than those who wait: requests that go on late, and connections
// that nobody uses, if an address waits that has less than is fair. One that has more is not worth
// the connections that others keep.
func (c *Client) relieve() {
	ticks := time.NewTicker(reliefPeriod)
	defer ticks.Stop()
	for {
		for c.share.Waiting() > 0 {
			c.endLate()
			if c.share.Tight() {
				for _, transport := range c.trusts.all() {
					closeIdle(transport)
				}
			}
			select {
			case <-ticks.C:
			case <-c.stopping.Done():
				return
			}
		}
		c.relieving.Store(false)
		// Who came to wait just now may have counted on this goroutine.
		if c.share.Waiting() == 0 || !c.relieving.CompareAndSwap(false, true) {
			return
		}
	}
}

// measure shows the share.
func measure(s *share.Share, metrics prometheus.Registerer) {
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "eventyard_outgoing_connections", Help: "Connections to webhooks, functions and token servers; while one is being made it counts twice.",
		}, func() float64 { return float64(s.Open()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "eventyard_outgoing_waiting", Help: "Requests to others that wait for a connection to be free.",
		}, func() float64 { return float64(s.Waiting()) }),
	)
}
