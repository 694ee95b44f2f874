package spec

import (
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// Bounds of the names of topics and subscriptions.
const (
	minGridName         = 3
	maxTopicName        = 50
	MaxSubscriptionName = 64
)

// reservedBeginnings are those that no topic's name has, in any case (reference §4).
var reservedBeginnings = []string{"microsoft", "eventgrid", "system"}

// CheckTopicName says what is wrong with a topic's name.
func CheckTopicName(name string) error {
	if err := checkGridName(name, maxTopicName); err != nil {
		return err
	}
	for _, beginning := range reservedBeginnings {
		if strings.HasPrefix(strings.ToLower(name), beginning) {
			return &ValueError{Value: fmt.Sprintf("%q", name), Reason: fmt.Sprintf("names do not begin with %q, choose another beginning", beginning)}
		}
	}
	return nil
}

// CheckSubscriptionName says what is wrong with a subscription's name.
func CheckSubscriptionName(name string) error { return checkGridName(name, MaxSubscriptionName) }

func checkGridName(name string, most int) error {
	unfit := func(r rune) bool { return !alphanumeric(r) && r != '-' }
	if len(name) < minGridName || len(name) > most || strings.ContainsFunc(name, unfit) {
		return &ValueError{Value: fmt.Sprintf("%.80q", name), Reason: "use " + gridName(most)}
	}
	return nil
}

func gridName(most int) string {
	return fmt.Sprintf("%d to %d letters, digits and '-'", minGridName, most)
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// CheckDomainTopic says what is wrong with the name of a domain topic.
func CheckDomainTopic(name string) error {
	if schema.IsDomainTopic(name) {
		return nil
	}
	return &ValueError{
		Value:  fmt.Sprintf("%.80q", name),
		Reason: fmt.Sprintf("use %d to %d letters, digits, '-', '_' and single dots within", schema.MinDomainTopic, schema.MaxDomainTopic),
	}
}
