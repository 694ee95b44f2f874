package subscribe

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Keys of the tests: secrets that must not show.
const (
	hmacKey    = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	privateKey = "whsk_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
)

// secrets are in the settings that full makes.
var secrets = []string{"QUERYSECRET", "HEADERSECRET", "OAUTHSECRET", "KEYSECRET", "SASSECRET", "ACCOUNTSECRET", "TOKENURLSECRET", hmacKey, privateKey}

var never = time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)

// full is settings with something in each field, as it would be for a webhook.
func full() topics.Settings {
	return topics.Settings{
		Webhook: &egress.Endpoint{
			URL: "https://example.com/hook?code=QUERYSECRET", CA: "CAPEM", SkipVerify: true, Cert: "CERTPEM", Key: "KEYSECRET", MinTLS: "1.3",
			OAuth: &egress.OAuth{TokenURL: "https://login/token?code=TOKENURLSECRET", ClientID: "me", Secret: "OAUTHSECRET", Scope: "s", Audience: "a"},
		},
		Filter: filter.Config{
			EventTypes: []string{"old"}, SubjectBeginsWith: "/old", SubjectEndsWith: ".old", SubjectCaseSensitive: true, Arrays: true,
			Advanced: []filter.Condition{{Operator: "IsNotNull", Key: "data.old"}},
		},
		Output: schema.CloudEvents, Binary: true,
		Retry: retry.Policy{
			MaxAttempts: 7, TimeToLive: time.Hour, Schedule: []time.Duration{time.Second}, Floors: map[int]time.Duration{503: time.Second},
			NoRetry: []int{418}, MaxRetryAfter: time.Minute,
		},
		MaxEvents: 9, PreferredKiB: 10,
		DeadLetter: topics.Target{Kind: topics.TargetBlob, Where: "https://account/dead?sig=SASSECRET", Key: "ACCOUNTSECRET"},
		Expires:    never,
		Headers: []topics.Header{
			{Name: "X-Old", Value: "old"}, {Name: "X-Secret", Value: "HEADERSECRET", Secret: true}, {Name: "X-Field", Field: "data.region"},
		},
		Keys:    []signature.Key{{Text: hmacKey, Expires: never}, {Text: privateKey}},
		Timeout: time.Second, Concurrency: 3, Rate: 2.5, OrderBy: "subject", FromStart: true, SkipValidation: true, DisableOnGone: true, Paused: true,
		Description: "about", Labels: []string{"old"},
	}
}

// request reads JSON as the listener does.
func request(t testing.TB, text string) (r admin.SubscriptionRequest) {
	t.Helper()
	testkit.Must(t, json.Unmarshal([]byte(text), &r), "%s", text)
	return r
}

// applied applies JSON to settings.
func applied(t testing.TB, text string, to topics.Settings) topics.Settings {
	t.Helper()
	testkit.Must(t, Apply(request(t, text), &to), "%s", text)
	return to
}
