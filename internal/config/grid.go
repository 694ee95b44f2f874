package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/quantity"
)

// Networks reads Allow.
func (g Grid) Networks() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range splitList(g.Allow) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, wrong := netip.ParseAddr(text)
			if wrong != nil {
				return nil, fmt.Errorf("%q is no network: write it like 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		networks = append(networks, prefix.Masked())
	}
	return networks, nil
}

// Folders reads DeadLetterFolders.
func (g Grid) Folders() []string { return splitList(g.DeadLetterFolders) }

// Accounts reads DeadLetterAccounts.
func (g Grid) Accounts() []string { return splitList(g.DeadLetterAccounts) }

func splitList(text string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func (c Config) validateGrid(found *complaints) {
	if _, err := c.Grid.Networks(); err != nil {
		found.addError("grid.allow", err)
	}
	for _, dir := range c.Grid.Folders() {
		if !filepath.IsAbs(dir) {
			found.add("grid.deadFolders", "%q is no absolute path", dir)
		}
	}
	if c.Grid.JitterPercent < 0 || c.Grid.JitterPercent > 50 {
		found.add("grid.jitterPercent", "%d is not between 0 and 50", c.Grid.JitterPercent)
	}
	if c.Grid.ProbationAfter < 0 {
		found.add("grid.probationAfter", "%d is below 0", c.Grid.ProbationAfter)
	}
	between(found, "grid.timeout", c.Grid.Timeout, 100*time.Millisecond, 30*time.Minute)
	between(found, "grid.lateWindow", c.Grid.LateWindow, 0, time.Hour)
	between(found, "grid.probationCap", c.Grid.ProbationCap, 100*time.Millisecond, 24*time.Hour)
	between(found, "grid.validationWindow", c.Grid.ValidationWindow, time.Second, 24*time.Hour)
	between(found, "grid.topicRetention", c.Grid.TopicRetention, time.Hour, 365*24*time.Hour)
	between(found, "grid.deadDelay", c.Grid.DeadLetterDelay, 0, time.Hour)
	between(found, "grid.deadGiveUp", c.Grid.DeadLetterGiveUp, time.Second, 7*24*time.Hour)
	between(found, "grid.deadKeep", c.Grid.DeadLetterKeep, time.Hour, 10*365*24*time.Hour)
	c.validateTopics(found)
	c.validateSubscriptions(found)
}

func between(found *complaints, key string, d quantity.Duration, least, most time.Duration) {
	if time.Duration(d) < least || time.Duration(d) > most {
		found.add(key, "%s is not between %s and %s", d, quantity.Duration(least), quantity.Duration(most))
	}
}

// validateTopics finds what is missing or there twice, and looks at names; the rest is judged where
// definitions are kept.
func (c Config) validateTopics(found *complaints) {
	first := map[string]int{}
	for i, t := range c.Topics {
		at := fmt.Sprintf("topics[%d]", i)
		if t.Name == "" {
			found.add(at, "it needs a name")
			continue
		}
		checkDefinition(found, at, spec.Topic, &t)
		name := strings.ToLower(t.Name)
		if j, twice := first[name]; twice {
			found.add(at+".name", "topic %q is already topics[%d]; case makes no difference", t.Name, j)
			continue
		}
		first[name] = i
	}
}

// validateSubscriptions does the same, and looks at ranges.
func (c Config) validateSubscriptions(found *complaints) {
	type identity struct{ topic, domainTopic, hub, name string }
	first := map[identity]int{}
	for i, s := range c.Subscriptions {
		at := fmt.Sprintf("subscriptions[%d]", i)
		if s.Name == "" {
			found.add(at, "it needs a name")
			continue
		}
		if (s.Topic == "") == (s.SourceHub == "") {
			found.add(at, "%s needs a topic or a sourceHub", s.Name)
		}
		targets := 0
		for _, given := range []bool{deref(s.Endpoint) != "", deref(s.Hub) != "", s.Pull != nil} {
			if given {
				targets++
			}
		}
		if targets != 1 {
			found.add(at, "%s needs one of endpoint, hub and pull", s.Name)
		}
		checkDefinition(found, at, spec.Subscription, &s)
		is := identity{strings.ToLower(s.Topic), strings.ToLower(s.DomainTopic), strings.ToLower(s.SourceHub), strings.ToLower(s.Name)}
		if j, twice := first[is]; twice {
			found.add(at+".name", "%s is already subscriptions[%d], of the same source; case makes no difference", s.Name, j)
			continue
		}
		first[is] = i
	}
}

// deref gives the zero value for what was not given.
func deref[T any](given *T) (value T) {
	if given != nil {
		value = *given
	}
	return value
}
