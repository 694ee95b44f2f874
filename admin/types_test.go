package admin

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G13: nil leaves and empty takes away, also when it has been on the wire.
func TestEmptyListsTravel(t *testing.T) {
	sent := SubscriptionRequest{
		Types: []string{}, Filters: []Filter{}, RetryFloors: map[string]string{}, NoRetry: []int{},
		Headers: []Header{}, SigningKeys: []string{}, Labels: []string{},
	}
	testkit.Diff(t, sent, overTheWire(t, sent))
	nothing, err := json.Marshal(SubscriptionRequest{})
	if err != nil || string(nothing) != "{}" {
		t.Errorf("a request for nothing is %s, %v", nothing, err)
	}
}

// A pointer to something empty is told from none, for each field that has one.
func TestEmptyFieldsTravel(t *testing.T) {
	fields := reflect.TypeFor[SubscriptionRequest]()
	for i := range fields.NumField() {
		if fields.Field(i).Type.Kind() != reflect.Pointer {
			continue
		}
		var sent SubscriptionRequest
		reflect.ValueOf(&sent).Elem().Field(i).Set(reflect.New(fields.Field(i).Type.Elem()))
		if got := overTheWire(t, sent); reflect.ValueOf(got).Field(i).IsNil() {
			t.Errorf("an empty %s is lost on the way", fields.Field(i).Name)
		}
	}
}

func overTheWire(t *testing.T, sent SubscriptionRequest) (got SubscriptionRequest) {
	t.Helper()
	text, err := json.Marshal(sent)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	testkit.Must(t, err)
	return got
}
