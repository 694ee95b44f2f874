package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAnEventOfJSONSaysWhatItIs(t *testing.T) {
	e, err := event.JSON("order.placed", map[string]any{"id": 42, "rush": true})
	testkit.Must(t, err)
	if e.Subject != "order.placed" || e.ContentType != "application/json" || string(e.Body) != `{"id":42,"rush":true}` {
		t.Errorf("made %+v", e)
	}
}

func TestAValueThatIsNoJSONIsNoEvent(t *testing.T) {
	e, err := event.JSON("order.placed", func() {})
	var unsupported *json.UnsupportedTypeError
	if !errors.As(err, &unsupported) || e.Body != nil {
		t.Errorf("made %+v with %v", e, err)
	}
}

func ExampleJSON() {
	placed, err := event.JSON("order.placed", struct {
		Customer string `json:"customer"`
		Total    int    `json:"total"`
	}{"customer-42", 1999})
	if err != nil {
		panic(err)
	}
	placed.Key = "customer-42" // same key, same partition, same order

	fmt.Printf("%s %s %s\n", placed.Subject, placed.ContentType, placed.Body)
	// Output: order.placed application/json {"customer":"customer-42","total":1999}
}
