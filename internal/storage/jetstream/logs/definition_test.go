package logs

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestDefinitionsComeBack(t *testing.T) {
	for kind := eventlog.KindHub; kind <= eventlog.KindDeadLetters; kind++ {
		d := definition{}.provide(eventlog.Shape{Partitions: 40, Kind: kind, Retention: eventlog.Retention{Age: time.Hour, Bytes: 7}}, 3)
		got, err := decodeDefinition(d.encode())
		testkit.Must(t, err)
		testkit.Equal(t, got, d)
	}
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":          `x`,
		"an unknown kind":  `{"kind":"none","partitions":1,"streams":1,"state":"live"}`,
		"an unknown state": `{"kind":"hub","partitions":1,"streams":1,"state":"sold"}`,
		"no streams":       `{"kind":"hub","partitions":1,"state":"live"}`,
		"no partitions":    `{"kind":"hub","streams":1,"state":"live"}`,
		"no time":          `{"kind":"hub","partitions":1,"streams":1,"maxAge":"soon","state":"live"}`,
	} {
		if d, err := decodeDefinition([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestNamesOfStreamsAndSubjects(t *testing.T) {
	hub := definition{kind: eventlog.KindHub, partitions: 40, streams: 3}
	topic := definition{kind: eventlog.KindTopic, partitions: 2, streams: 1}
	for _, tt := range []struct {
		log    string
		d      definition
		number int
		want   address
	}{
		{"orders-1", hub, 0, address{"h-orders-1-0", "0"}},
		{"orders-1", hub, 38, address{"h-orders-1-2", "38"}},
		{"mails_7", topic, 1, address{"p-topic-13", "mails_7/1"}},
	} {
		at := addressOf(tt.log, tt.d, tt.number)
		testkit.Equal(t, at, tt.want)
		log, ok := logOf(at.stream, at.subject)
		testkit.Equal(t, ok, true)
		testkit.Equal(t, log, tt.log)
	}
	testkit.Slices(t, streamsOf("orders-1", hub), []string{"h-orders-1-0", "h-orders-1-1", "h-orders-1-2"})
	for _, stream := range []string{"h-orders-1-0", "p-topic-3", "x"} {
		if _, ok := logOf(stream, markSubject); ok {
			t.Errorf("the marks of %s are a log's", stream)
		}
	}
	for partitions, want := range map[int]int{1: 1, 16: 1, 17: 2, 32: 2, 1024: 16} {
		testkit.Equal(t, hubStreams(partitions), want, "streams of %d partitions", partitions)
	}
}
