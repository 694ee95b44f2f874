package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// staff are the children other than the yard. Any goroutine may use it.
type staff struct {
	program, dir string
	settings     settings
	ledger       *ledger

	mu        sync.Mutex
	gateway   *child
	watchers  []*child
	consumers []*child // those that have ended, too
}

// hire starts a process of the demo.
func (s *staff) hire(role, name string) (*child, error) {
	c, err := launch(s.program, s.dir, name, func(line []byte) {
		var a account
		if json.Unmarshal(line, &a) == nil {
			s.ledger.hear(name, a, time.Now())
		}
	}, "demo", role)
	if err != nil {
		return nil, err
	}
	own := s.settings
	own.Name = name
	c.order(own)
	return c, nil
}

// begin starts everybody, consumers and watchers first.
func (s *staff) begin(consumers, watchers int) error {
	for range consumers {
		if _, err := s.addConsumer(); err != nil {
			return err
		}
	}
	for i := range watchers {
		w, err := s.hire("watcher", fmt.Sprintf("watcher-%d", i+1))
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.watchers = append(s.watchers, w)
		s.mu.Unlock()
	}
	g, err := s.hire("gateway", "gateway")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway = g
	return err
}

// addConsumer starts one more, under a name that none had before.
func (s *staff) addConsumer() (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.hire("consumer", fmt.Sprintf("consumer-%d", len(s.consumers)+1))
	if err != nil {
		return nil, err
	}
	s.consumers = append(s.consumers, c)
	return c, nil
}

// all are the consumers, in the order in which they were started.
func (s *staff) all() []*child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.consumers)
}

// working are the consumers that nobody has ended.
func (s *staff) working() []*child {
	return slices.DeleteFunc(s.all(), func(c *child) bool { why, _ := c.fate(); return why != "" })
}

// consumer gives a working one by its name; an empty name gives the newest but one, which has worked
// for longer.
func (s *staff) consumer(name string) (*child, error) {
	working := s.working()
	if len(working) == 0 {
		return nil, fmt.Errorf("there is no consumer left: add one")
	}
	if name == "" {
		return working[max(0, len(working)-2)], nil
	}
	i := slices.IndexFunc(working, func(c *child) bool { return c.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s does not work any more", name)
	}
	return working[i], nil
}

// order tells the gateway, or the consumers, what to do.
func (s *staff) orderGateway(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateway != nil {
		s.gateway.order(o)
	}
}

func (s *staff) orderConsumers(o order) {
	for _, c := range s.working() {
		c.order(o)
	}
}

// leave ends everybody in good order, all at once.
func (s *staff) leave(patience time.Duration) {
	s.mu.Lock()
	everybody := append(slices.Clone(s.consumers), s.watchers...)
	if s.gateway != nil {
		everybody = append(everybody, s.gateway)
	}
	s.mu.Unlock()
	var gone sync.WaitGroup
	for _, c := range everybody {
		gone.Go(func() {
			if c.running() {
				c.leave(patience)
			}
		})
	}
	gone.Wait()
}

// await waits until the gateway and the consumers have begun, or one of them has ended.
func (s *staff) await(ctx context.Context) error {
	for _, c := range append(s.all(), s.gateway) {
		for !s.ledger.isReady(c.name) {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-c.done:
				return fmt.Errorf("%s did not start: %s", c.name, lastWords(s.dir, c.name))
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
