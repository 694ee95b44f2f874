package scrub

import (
	"context"
	"errors"
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
	// maxSilences is how often in a row a server may leave a question unanswered.
	maxSilences = 2
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
		c.waitFor(slices.DeleteFunc(slices.Clone(c.Servers), func(server string) bool { return heard[server] })...)
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

// waitFor says that servers are waited for.
func (c *comparison) waitFor(servers ...string) {
	if c.Waiting != nil {
		c.Waiting(servers)
	}
}

// gather asks until each server has answered, and goes on without those that do not. Others than those are
// not waited for: whoever is asked next may answer.
func (c *comparison) gather(ctx context.Context, ask func(context.Context, Wanted) (Answer, error)) (map[string]Answer, error) {
	answers, heard := map[string]Answer{}, map[string]bool{}
	wanted := func(server string) bool { return slices.Contains(c.Servers, server) }
	for asked := 0; len(answers) < len(c.Servers) && asked < asksEach*len(c.Servers); asked++ {
		a, err := ask(ctx, wanted)
		if errors.Is(err, ErrSilent) {
			if err := c.unanswered(a.Server, err); err != nil {
				return nil, err
			}
			if !wanted(a.Server) {
				delete(answers, a.Server)
			}
			continue
		}
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
		if answers[a.Server].Server != "" || !wanted(a.Server) {
			continue
		}
		answers[a.Server], heard[a.Server], c.silences[a.Server] = a, true, 0
		if c.Progress != nil {
			c.Progress(int64(len(a.Messages)), bytes)
		}
	}
	if len(answers) < len(c.Servers) {
		c.silence(heard)
	}
	return answers, nil
}

// unanswered takes in that a server has left a question unanswered, and goes on without it where it did so
// before, or where such a server was waited for already. The last one is not done without.
func (c *comparison) unanswered(server string, err error) error {
	if c.silences[server]++; c.silences[server] < maxSilences && c.Patience > 0 {
		c.waitFor(server)
		return nil
	}
	if len(c.Servers) < 2 {
		return err
	}
	heard := map[string]bool{}
	for _, other := range c.Servers {
		heard[other] = other != server
	}
	c.silence(heard)
	return nil
}
