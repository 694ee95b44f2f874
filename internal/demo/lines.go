package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// settings are the first line that a child reads.
type settings struct {
	Name       string        `json:"name"`
	Connection string        `json:"connection"` // of the yard
	Blobs      string        `json:"blobs"`      // connection string of the account
	Container  string        `json:"container"`
	Homes      int           `json:"homes"`
	Every      time.Duration `json:"every"`
	Lease      time.Duration `json:"lease"`
	Topic      string        `json:"topic"` // where alarms are published
	TopicKey   string        `json:"topicKey"`
}

// order is a later line.
type order struct {
	Halve  bool `json:"halve,omitempty"`  // gateway: every second home falls silent
	Carbon bool `json:"carbon,omitempty"` // gateway: each home gets a sensor for carbon monoxide
	Finish bool `json:"finish,omitempty"` // gateway: nothing more is sent; consumer: all periods are finished
}

// account is a line that a child writes: one of these.
type account struct {
	Ready   bool          `json:"ready,omitempty"`
	Sending *sending      `json:"sending,omitempty"`
	Read    *read         `json:"read,omitempty"`
	Serving string        `json:"serving,omitempty"` // watcher: the address that it answers at
	Seen    time.Duration `json:"seen,omitempty"`    // watcher: how old a reading was when it was seen
	Trouble string        `json:"trouble,omitempty"` // an error that it carries on from
}

// sending is how far the gateway is, once a second and at its end.
type sending struct {
	Homes   int    `json:"homes"`
	Sensors int    `json:"sensors"`
	Due     int64  `json:"due"`     // readings whose moment has come
	Periods counts `json:"periods"` // those that have changed
	Alarms  int64  `json:"alarms"`  // published to the topic
	Odd     int64  `json:"odd"`     // sent to the scorer's hub
	Ended   bool   `json:"ended,omitempty"`
}

// read is a batch that a consumer was given.
type read struct {
	Partition string        `json:"partition"`
	From      int64         `json:"from"`
	To        int64         `json:"to"`
	Behind    time.Duration `json:"behind"` // since the newest of them was stored
}

// mouth writes a child's lines, whole, from any number of goroutines.
type mouth struct {
	mu sync.Mutex
	w  io.Writer
}

// say writes a line. When nobody listens any more the child ends by itself.
func (m *mouth) say(a account) {
	text, _ := json.Marshal(a) // of plain fields
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.w.Write(append(text, '\n'))
}

func (m *mouth) trouble(err error) { m.say(account{Trouble: err.Error()}) }

// listen reads a child's settings, then its orders. The context ends with the input.
func listen(ctx context.Context, r io.Reader) (context.Context, settings, <-chan order, error) {
	ctx, cancel := context.WithCancel(ctx)
	decoder := json.NewDecoder(bufio.NewReader(r))
	var s settings
	if err := decoder.Decode(&s); err != nil {
		cancel()
		return ctx, s, nil, err
	}
	orders := make(chan order, 4)
	go func() { // until the input ends, or the process
		defer cancel()
		for {
			var o order
			if decoder.Decode(&o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, s, orders, nil
}
