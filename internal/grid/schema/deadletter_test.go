package schema

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G8: reference §15.
func TestDeadLettersAreSpelledAsTheirSchemaDoes(t *testing.T) {
	died := DeadLetter{
		Reason: "MaxDeliveryAttemptsExceeded", Attempts: 30, LastOutcome: "TimedOut", LastStatus: 408,
		Published: now.In(time.FixedZone("", 3600)), LastAttempt: now.Add(time.Minute),
	}
	early := DeadLetter{Reason: "TimeToLiveExceeded", Published: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), LastOutcome: "Probation"}
	const (
		gridStored  = `{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":{"a": 1}}`
		cloudStored = `{"specversion":"1.0","id":"1","source":"/s","type":"t","n":5,"data":{"a": 1}}`
		gridHead    = `{"topic":"` + topicID + `","id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","dataVersion":"","metadataVersion":"1",`
		gridDied    = `"deadLetterReason":"MaxDeliveryAttemptsExceeded","deliveryAttempts":30,"lastDeliveryOutcome":"TimedOut","lastHttpStatusCode":408,"publishTime":"2026-11-15T12:00:00.1234567Z","lastDeliveryAttemptTime":"2026-11-15T12:01:00.1234567Z",`
		cloudDied   = `"deadletterreason":"MaxDeliveryAttemptsExceeded","deliveryattempts":30,"lastdeliveryoutcome":"TimedOut","lasthttpstatuscode":408,"publishtime":"2026-11-15T12:00:00.1234567Z"`
	)
	for _, c := range []struct {
		name   string
		form   Form
		stored string
		out    Kind
		died   DeadLetter
		want   string
	}{
		{"Event Grid", EventGridForm, gridStored, EventGrid, died, gridHead + gridDied + `"data":{"a": 1}}`},
		{"custom, in the Event Grid envelope", EventGridForm, gridStored, Custom, died, gridHead + gridDied + `"data":{"a": 1}}`},
		{
			"never tried", EventGridForm, gridStored, EventGrid, early,
			gridHead + `"deadLetterReason":"TimeToLiveExceeded","deliveryAttempts":0,"lastDeliveryOutcome":"Probation","publishTime":"2026-01-02T03:04:05.0000000Z","data":{"a": 1}}`,
		},
		{"a CloudEvent", CloudEventForm, cloudStored, CloudEvents, died, `{"specversion":"1.0","id":"1","source":"/s","type":"t","n":5,` + cloudDied + `,"data":{"a": 1}}`},
		{
			"a CloudEvent with bytes", CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AP8="}`, CloudEvents, died,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t",` + cloudDied + `,"data_base64":"AP8="}`,
		},
		{
			"one that was a dead letter before", CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","deadletterreason":"old","publishtime":"x","n":5}`, CloudEvents, died,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","n":5,` + cloudDied + `}`,
		},
		{
			"Event Grid as a CloudEvent", EventGridForm, gridStored, CloudEvents, early,
			`{"specversion":"1.0","id":"1","source":"` + topicID + `","type":"t","subject":"s","time":"2017-08-10T21:03:07Z","datacontenttype":"application/json",` +
				`"deadletterreason":"TimeToLiveExceeded","deliveryattempts":0,"lastdeliveryoutcome":"Probation","publishtime":"2026-01-02T03:04:05.0000000Z","data":{"a": 1}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Value(AppendDeadLetter([]byte("["), scanned(t, c.form, c.stored), c.out, c.died))(t)
			testkit.Equal(t, string(got), "["+c.want, "wrote")
			if !isValid(got[1:]) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
}
