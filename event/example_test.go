package event_test

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/event"
)

func ExampleText() {
	e := event.Text("door opened")
	e.Key = "home-42"
	e.Properties = map[string]any{"sensor": "front door"}

	fmt.Printf("%s: %s\n", e.Key, e.Body)
	// Output: home-42: door opened
}

func ExampleBytes() {
	e := event.Bytes([]byte{0xca, 0xfe})
	e.ContentType = "application/octet-stream"
	e.MessageID = uint64(7)

	fmt.Printf("%x %s %v\n", e.Body, e.ContentType, e.MessageID)
	// Output: cafe application/octet-stream 7
}

// Application properties keep their Go types, so a type switch tells them apart.
func ExampleEvent_properties() {
	e := event.Text("reading")
	e.Properties = map[string]any{"celsius": 21.5, "taken": time.Unix(0, 0).UTC()}

	for _, name := range []string{"celsius", "taken"} {
		switch v := e.Properties[name].(type) {
		case float64:
			fmt.Printf("%s: %.1f\n", name, v)
		case time.Time:
			fmt.Printf("%s: %s\n", name, v.Format(time.DateOnly))
		}
	}
	// Output:
	// celsius: 21.5
	// taken: 1970-01-01
}

// An event whose body is an AMQP value instead of bytes.
func ExampleEvent_value() {
	e := event.Event{Value: event.Map{
		{Key: "home", Value: int32(42)},
		{Key: event.Symbol("state"), Value: "armed"},
	}}

	for _, p := range e.Value.(event.Map) {
		fmt.Println(p.Key, p.Value)
	}
	// Output:
	// home 42
	// state armed
}
