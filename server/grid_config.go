package server

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// Grid says how events are pushed to webhooks. The zero value works.
type Grid struct {
	// Allow are networks that webhooks may be in although they are private, loopback or
	// otherwise special. While every listener is on loopback this machine may be reached anyway.
	Allow []netip.Prefix
	// Timeout is how long a webhook's answer may take; zero means 30 s. LateWindow is how long
	// after its beginning an unanswered request may still succeed; zero means 3 min, negative no
	// longer than Timeout.
	Timeout, LateWindow time.Duration
	// Jitter lengthens the waits between attempts at random, by up to this share of them; zero
	// means 0.1, negative none.
	Jitter float64
	// ProbationAfter so many failed deliveries in a row an endpoint is put on probation; zero
	// means 10, negative never. ProbationCap is the longest it waits for a probe; zero means 3 h.
	ProbationAfter int
	ProbationCap   time.Duration
	// ValidationWindow is how long a validation link is valid; zero means 10 min.
	ValidationWindow time.Duration
	// Origin is how the yard names itself to CloudEvents endpoints; empty means
	// eventgrid.azure.net, which receivers written for Azure allow.
	Origin string
	// TopicRetention is how long topics keep events; zero means 48 h.
	TopicRetention time.Duration
	// DeadLetterDelay is how long dead letters are gathered; zero means 5 min, negative not at
	// all. DeadLetterGiveUp is how long their target may be out of reach; zero means 4 h.
	// DeadLetterKeep is how long the yard keeps its own copies; zero means 30 days.
	DeadLetterDelay, DeadLetterGiveUp, DeadLetterKeep time.Duration
	// DeadLetterFolders are those outside the data folder that may be written to.
	DeadLetterFolders []string
	// DeadLetterAccounts are connection strings of storage accounts that dead letters may be
	// written to by the account's name. The yard's own account need not be here.
	DeadLetterAccounts []string
}

// validateGrid looks at what can be wrong with topics and subscriptions by themselves.
func (c Config) validateGrid() error {
	if c.Grid.Jitter > maxJitter {
		return fmt.Errorf("a jitter of %v: give at most %v, a share of the waits", c.Grid.Jitter, maxJitter)
	}
	if _, err := c.Grid.accounts(); err != nil {
		return err
	}
	for _, t := range c.Topics {
		want := topics.Topic{Name: t.Name}
		err := subscribe.ApplyTopic(admin.TopicRequest(t), &want)
		if err == nil {
			err = topics.TopicConfig{Topic: want}.Check()
		}
		if err != nil {
			return fmt.Errorf("topic %s: %w", t.Name, err)
		}
	}
	for _, s := range c.Subscriptions {
		if _, err := settingsOf(s); err != nil {
			return fmt.Errorf("subscription %s: %w", s.Name, err)
		}
	}
	return nil
}

// accounts reads DeadLetterAccounts.
func (g Grid) accounts() (list []deadletter.Account, err error) {
	for _, connection := range g.DeadLetterAccounts {
		account, err := deadletter.ParseAccount(connection)
		if err != nil {
			return nil, fmt.Errorf("storage accounts of dead letters: %w", err)
		}
		list = append(list, account)
	}
	return list, nil
}

// maxJitter leaves half of a wait at least.
const maxJitter = 0.5

// defaultOrigin is the name that receivers written for Azure know.
const defaultOrigin = "eventgrid.azure.net"
