package eventhubs

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

func epoch(n int64) *int64 { return &n }

// H5, H6, H7: the texts that clients and their tests know, word for word.
func TestTextsOfTheEpochRules(t *testing.T) {
	tests := []struct {
		what      string
		err       error
		condition wire.Symbol
		text      string
	}{
		{"A: robbed by an epoch", &broker.EvictedError{Name: "old", Epoch: epoch(1), NewName: "new", NewEpoch: 2}, condStolen,
			"New receiver 'new' with higher epoch of '2' is created hence current receiver 'old' with epoch '1' is getting disconnected. " +
				"If you are recreating the receiver, make sure a higher epoch is used."},
		{"A: robbed without having had an epoch", &broker.EvictedError{NewEpoch: 0}, condStolen,
			"New receiver 'nil' with higher epoch of '0' is created hence current receiver 'nil' with epoch '' is getting disconnected. " +
				"If you are recreating the receiver, make sure a higher epoch is used."},
		{"B: a lower epoch", &broker.EpochError{Name: "new", Epoch: epoch(1), OldName: "old", OldEpoch: 2}, condStolen,
			"Receiver 'old' with a higher epoch '2' already exists. Receiver 'new' with epoch 1 cannot be created. " +
				"Make sure you are creating receiver with increasing epoch value to ensure connectivity, " +
				"or ensure all old epoch receivers are closed or disconnected."},
		{"C: no epoch beside one", &broker.EpochError{OldName: "old", OldEpoch: 2}, condStolen,
			"At least one receiver for the endpoint is created with epoch of '2', and so non-epoch receiver is not allowed. " +
				"Either reconnect with a higher epoch, or make sure all epoch receivers are closed or disconnected."},
		{"D: one too many", &broker.ReceiverQuotaError{Limit: 5, Names: []string{"", "a", "", "", ""}}, condLimit,
			"Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5. " +
				"List of connected receivers - nil, a, nil, nil, nil."},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			reported, known := judge(somewhere, tt.err)
			if !known || reported.Condition != tt.condition || reported.Description != tt.text {
				t.Errorf("told as %s:\n%s\nwant %s:\n%s", reported.Condition, reported.Description, tt.condition, tt.text)
			}
		})
	}
}

func TestTheTextOfMissingRights(t *testing.T) {
	const want = "Unauthorized access. 'Send' claim(s) are required to perform this operation. Resource: 'sb://localhost:5672/orders/Partitions/3'."
	at := somewhere
	at.group = ""
	testkit.Equal(t, at.textUnauthorized(auth.Send), want, "text")
	at.host = ""
	if got := at.textUnauthorized(auth.Listen); !strings.Contains(got, "'Listen' claim(s)") || !strings.Contains(got, "'sb://yard/orders") {
		t.Errorf("text is\n%s", got)
	}
}

var trackingEnd = regexp.MustCompile(` TrackingId:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_G0, SystemTracker:\S+, Timestamp:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`)

func TestTextsEndAsTheServiceEndsThem(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	got := somewhere.describe("Something.", "id_G0", now)
	if want := "Something. TrackingId:id_G0, SystemTracker:yard:eventhub:orders~3|billing, Timestamp:2026-01-02T02:04:05"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
	if got := (entity{namespace: "yard"}).describe("Something.", newTrackingID(), now); !trackingEnd.MatchString(got) {
		t.Errorf("text is %q", got)
	}
	if first, second := newTrackingID(), newTrackingID(); first == second {
		t.Error("two ids are the same")
	}
}

func TestAStrangersTextIsFitToBeShown(t *testing.T) {
	tests := map[string]string{
		"plain":                        "plain",
		"":                             "",
		"bad\xffbytes":                 "bad\uFFFDbytes",
		strings.Repeat("x", 300):       strings.Repeat("x", 256) + "…",
		strings.Repeat("é", 200):       strings.Repeat("é", 128) + "…",
		"x" + strings.Repeat("é", 200): "x" + strings.Repeat("é", 127) + "…",
		strings.Repeat("\x80", 300):    "\uFFFD…",
	}
	for text, want := range tests {
		if got := shown(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q… is shown as %q, want %q", text, got, want)
		}
	}
}
