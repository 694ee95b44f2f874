package scrub

import (
	"context"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

const (
	// asksEach is how often a question is asked for each server until all have answered: of five, one
	// stays silent by chance once in ten million times.
	asksEach = 16
	// attendPause is the pause between two rounds in which not all have answered.
	attendPause = 500 * time.Millisecond
)

// attend finds out which servers answer, for little. Where it is not known who has a copy, whoever answers
// first is all that there is.
func (c *comparison) attend(ctx context.Context) error {
	heard := map[string]bool{}
	for late := time.Now().Add(c.Patience); ; {
		for asked := 0; asked < asksEach*max(1, len(c.Servers)); asked++ {
			server, err := c.Reader.Who(ctx)
			if err != nil {
				return err
			}
			if len(c.Servers) == 0 {
				c.Servers = []string{server}
			}
			if heard[server] = true; !slices.ContainsFunc(c.Servers, func(s string) bool { return !heard[s] }) {
				return nil
			}
		}
		if !time.Now().Before(late) {
			break
		}
		if err := sleep.For(ctx, attendPause, nil); err != nil {
			return err
		}
	}
	c.silence(heard)
	return nil
}

// silence goes on without the servers that were not heard. Where none is left, one is as good as another.
func (c *comparison) silence(heard map[string]bool) {
	var left []string
	for _, server := range c.Servers {
		if heard[server] {
			left = append(left, server)
			continue
		}
		c.close(server)
		c.done.Silent = append(c.done.Silent, server)
	}
	c.Servers = left
	for server := range heard {
		if len(c.Servers) == 0 {
			c.Servers = []string{server}
		}
	}
}

// gather asks until each server has answered, and goes on without those that do not.
func (c *comparison) gather(ctx context.Context, ask func(context.Context) (Answer, error)) (map[string]Answer, error) {
	answers, heard := map[string]Answer{}, map[string]bool{}
	for asked := 0; len(answers) < len(c.Servers) && asked < asksEach*len(c.Servers); asked++ {
		a, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		bytes := int64(0)
		for _, m := range a.Messages {
			bytes += int64(len(m.Subject) + len(m.Data))
		}
		if err := c.Pace.wait(ctx, bytes); err != nil {
			return nil, err
		}
		if answers[a.Server].Server != "" || !slices.Contains(c.Servers, a.Server) {
			continue
		}
		answers[a.Server], heard[a.Server] = a, true
		if c.Progress != nil {
			c.Progress(int64(len(a.Messages)), bytes)
		}
	}
	if len(answers) < len(c.Servers) {
		c.silence(heard)
	}
	return answers, nil
}
