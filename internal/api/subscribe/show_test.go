package subscribe

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

func subscription() topics.Subscription {
	return topics.Subscription{
		Name: "billing", ID: "abc", Source: topics.Source{Topic: "orders"}, State: topics.Pending, Why: "because",
		Created: never, Updated: never, Settings: full(),
	}
}

func TestShowGivesEverythingButSecrets(t *testing.T) {
	want := admin.Subscription{
		Name: "billing", ID: "abc", Topic: "orders", State: "pending", Why: "because", Created: never, Updated: never,
		Endpoint: "https://example.com/hook?...", Schema: "cloudevents", Binary: true,
		Filter: json.RawMessage(`{"includedEventTypes":["old"],"subjectBeginsWith":"/old","subjectEndsWith":".old","isSubjectCaseSensitive":true,` +
			`"enableAdvancedFilteringOnArrays":true,"advancedFilters":[{"operatorType":"IsNotNull","key":"data.old"}]}`),
		Retry: admin.RetryPolicy{
			Attempts: 7, TTL: "1h", Schedule: []string{"1s"}, Floors: map[string]string{"503": "1s"}, NoRetry: []int{418}, MaxRetryAfter: "1m",
		},
		MaxEvents: 9, PreferredKiB: 10, DeadLetter: "blob:https://account/dead?...", Expires: &never,
		Headers:   []admin.Header{{Name: "X-Old", Value: "old"}, {Name: "X-Secret", Secret: true}, {Name: "X-Field", Field: "data.region"}},
		OAuth:     &admin.OAuth{TokenURL: "https://login/token?...", ClientID: "me", Scope: "s", Audience: "a"},
		MutualTLS: true, CustomCA: true, SkipVerify: true, MinTLS: "1.3", Timeout: "1s", Concurrency: 3, Rate: 2.5, OrderBy: "subject",
		Description: "about", Labels: []string{"old"}, SkipValidation: true, DisableOnGone: true,
	}
	public, err := signature.Key{Text: privateKey}.Public()
	testkit.Must(t, err)
	want.Signing = []admin.SigningKey{{Algorithm: "hmac", Expires: &never}, {Algorithm: "ed25519", Text: public}}
	shown := Show(subscription(), false)
	testkit.Diff(t, want, shown)
	text, err := json.Marshal(shown)
	testkit.Must(t, err)
	for _, secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s shows", secret)
		}
	}
}

// What a receiver needs can be asked for; what gets one in elsewhere cannot.
func TestSecretsAreShownOnRequest(t *testing.T) {
	text, err := json.Marshal(Show(subscription(), true))
	testkit.Must(t, err)
	for _, secret := range secrets {
		wanted := secret == "QUERYSECRET" || secret == "HEADERSECRET" || secret == hmacKey
		testkit.Equal(t, strings.Contains(string(text), secret), wanted, "%s shows: %v", secret, !wanted)
	}
}

func TestShowingFillsInDefaults(t *testing.T) {
	shown := Show(topics.Subscription{Source: topics.Source{Hub: "h"}, Settings: topics.Settings{Pull: &topics.Pull{Lock: 90 * time.Second, MaxDeliveries: 3}}}, false)
	want := admin.Subscription{SourceHub: "h", Pull: &admin.Pull{Lock: "1m30s", MaxDeliveries: new(3)}, Retry: admin.RetryPolicy{Attempts: 30, TTL: "24h"}}
	testkit.Diff(t, want, shown)
	// That nothing is given up is told from what is usual.
	none := showPolicy(retry.Policy{NoRetry: []int{}, Floors: map[int]time.Duration{0: time.Second}})
	if none.NoRetry == nil || none.Floors["other"] != "1s" {
		t.Errorf("shown is %+v", none)
	}
}
