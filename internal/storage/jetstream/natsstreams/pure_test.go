package natsstreams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1: an answer that leaves doubt is told as doubt.
func TestJudge(t *testing.T) {
	refused := func(code int, text string) string {
		return fmt.Sprintf(`{"error":{"code":503,"err_code":%d,"description":%q},"stream":"s","seq":0}`, code, text)
	}
	for _, tt := range []struct {
		name, status, answer string
		seq                  streams.Seq
		want                 error
	}{
		{"stored", "", `{"stream":"s","seq":7}`, 7, nil},
		{"no responders", "503", "", 0, streams.ErrUnavailable},
		{"another empty answer", "", "", 0, streams.ErrUncertain},
		{"no JSON", "", "+OK", 0, streams.ErrUncertain},
		{"full by its own limit", "", refused(10077, "maximum bytes exceeded"), 0, streams.ErrNoSpace},
		{"full by the account's limit", "", refused(10002, "resource limits exceeded for account"), 0, streams.ErrNoSpace},
		{"full servers", "", refused(10023, "insufficient resources"), 0, streams.ErrNoSpace},
		{"full disks", "", refused(10047, "insufficient storage resources available"), 0, streams.ErrNoSpace},
		{"a leader that stops", "", refused(10077, "store is closed"), 0, streams.ErrUncertain},
		{"overrun", "429", refused(10167, "too many requests"), 0, streams.ErrUnavailable},
		{"no stream", "", refused(10059, "stream not found"), 0, streams.ErrNoStream},
		{"not there for now", "", refused(10008, "JetStream system temporarily unavailable"), 0, streams.ErrUncertain},
		{"no leader", "", refused(10009, "JetStream cluster can not handle request"), 0, streams.ErrUncertain},
		{"something new", "", refused(10999, "something new"), 0, streams.ErrUncertain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			msg := &nats.Msg{Data: []byte(tt.answer)}
			if tt.status != "" {
				msg.Header = nats.Header{"Status": {tt.status}}
			}
			seq, err := judge(msg)
			testkit.Equal(t, seq, tt.seq)
			testkit.ErrorIs(t, err, tt.want)
		})
	}
}

func TestReadAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		want         error
	}{
		{"done", `{"name":"x"}`, nil},
		{"no stream", `{"error":{"code":404,"err_code":10059}}`, streams.ErrNoStream},
		{"no message", `{"error":{"code":404,"err_code":10037}}`, streams.ErrNoMessage},
		{"no leader", `{"error":{"code":503,"err_code":10008}}`, streams.ErrUnavailable},
		{"not the leader", `{"error":{"code":500,"err_code":10009}}`, streams.ErrUnavailable},
		{"no room", `{"error":{"code":500,"err_code":10047}}`, streams.ErrNoSpace},
		{"too many streams", `{"error":{"code":400,"err_code":10027}}`, streams.ErrNoSpace},
		{"no JSON", `+OK`, streams.ErrUnavailable},
		{"other JSON", `{"name":7}`, streams.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var answer struct {
				Name string `json:"name"`
			}
			testkit.ErrorIs(t, readAnswer([]byte(tt.answer), &answer), tt.want)
			testkit.Equal(t, answer.Name == "x", tt.want == nil)
		})
	}
	err := readAnswer([]byte(`{"error":{"code":400,"err_code":10052,"description":"for a person"}}`), nil)
	testkit.That(t, err != nil && strings.Contains(err.Error(), "for a person"), "got %v", err)
}

func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, yard := range []string{"a", "a_l", "a-", "A"} {
		n := names{yard}
		testkit.Must(t, n.check())
		for _, stream := range []string{"b", "l_b", "_l", "e_d"} {
			testkit.Must(t, checkStream(stream))
			name := n.stream(stream)
			testkit.That(t, seen[name] == "", "%s of %s is also of %s", name, yard, seen[name])
			seen[name] = yard
			own, ours := n.ours(name)
			testkit.That(t, ours && own == stream, "%s is %q, %t", name, own, ours)
		}
	}
	_, ours := names{"a"}.ours("Y_a_e_d")
	testkit.That(t, !ours, "a bucket of entries is taken for a log")
	for _, yard := range []string{"", "a.b", "a=b", "a b", strings.Repeat("x", 33)} {
		testkit.That(t, names{yard}.check() != nil, "yard %q is allowed", yard)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	s := subjects{names: names{"a"}}
	for _, tt := range []struct{ stream, subject string }{
		{"", "0"}, {"a.b", "0"}, {"a=b", "0"}, {strings.Repeat("x", 201), "0"},
		{"s", ""}, {"s", "$x"}, {"s", "a.b"}, {"s", "*"}, {"s", ">"}, {"s", "a b"}, {"s", "a\r\nb"}, {"s", strings.Repeat("x", 513)},
	} {
		_, err := s.of(tt.stream, tt.subject)
		testkit.ErrorIs(t, err, streams.ErrNoStream, "%q", tt)
	}
	for range 2 {
		testkit.Equal(t, testkit.Value(s.of("s", "0"))(t), "y.a.l.s.0")
	}
}

func TestAStreamThatIsNotAsALogNeedsIt(t *testing.T) {
	s := &Storage{names: names{"a"}, cfg: Config{Replicas: 3}}
	want := s.streamConfig("s", streams.Config{})
	for what, spoil := range map[string]func(*jetstream.StreamConfig){
		"it takes in":                         func(c *jetstream.StreamConfig) { c.Subjects = []string{"y.a.l.s.>"} },
		"it is not kept in files":             func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"its retention is not by limits":      func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"it discards old messages":            func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"it has a maximum age":                func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"it has a maximum number of messages": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 },
		"it limits the size of messages":      func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 },
		"it has no direct reads":              func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"messages can be deleted from it":     func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"it cannot be purged":                 func(c *jetstream.StreamConfig) { c.DenyPurge = true },
		"it does not acknowledge":             func(c *jetstream.StreamConfig) { c.NoAck = true },
		"it is fed by others":                 func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{} },
	} {
		t.Run(what, func(t *testing.T) {
			have := want
			spoil(&have)
			err := unfit(want, have)
			testkit.That(t, err != nil && strings.Contains(err.Error(), what) && !strings.Contains(err.Error(), ";"), "got %v", err)
		})
	}
	have := want
	have.Replicas, have.MaxBytes, have.Description, have.Duplicates = 1, 1<<30, "mine", time.Minute
	testkit.Check(t, unfit(want, have), "what a stream may differ in")
}

// C1: an answer of which a part was lost is none, whichever part it was.
func TestPartsOfAnAnswer(t *testing.T) {
	message := func(seq, previous int) nats.Header {
		return nats.Header{"Nats-Sequence": {fmt.Sprint(seq)}, "Nats-Last-Sequence": {fmt.Sprint(previous)}, "Nats-Subject": {"y.a.l.s." + fmt.Sprint(seq%2)}}
	}
	end := func(previous, pending int) nats.Header {
		return nats.Header{"Status": {"204"}, "Nats-Last-Sequence": {fmt.Sprint(previous)}, "Nats-Num-Pending": {fmt.Sprint(pending)}}
	}
	for _, tt := range []struct {
		name  string
		parts []nats.Header
		got   string // sequences and subjects
		more  bool
		want  error
	}{
		{"whole", []nats.Header{message(3, 0), message(5, 3), end(5, 0)}, "[3:1 5:1]", false, nil},
		{"more behind", []nats.Header{message(4, 0), end(4, 9)}, "[4:0]", true, nil},
		{"nothing", []nats.Header{{"Status": {"404"}}}, "[]", false, nil},
		{"the first is lost", []nats.Header{message(5, 3)}, "", false, streams.ErrUnavailable},
		{"one is lost", []nats.Header{message(3, 0), message(6, 5)}, "", false, streams.ErrUnavailable},
		{"the last is lost", []nats.Header{message(3, 0), end(5, 0)}, "", false, streams.ErrUnavailable},
		{"all are lost", []nats.Header{end(5, 0)}, "", false, streams.ErrUnavailable},
		{"nobody", []nats.Header{{"Status": {"503"}}}, "", false, answers.ErrNobody},
		{"refused", []nats.Header{{"Status": {"408"}}}, "", false, streams.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &reading{of: &gathering{prefix: "y.a.l.s."}}
			for i, h := range tt.parts {
				testkit.Equal(t, g.take(&nats.Msg{Header: h}), i == len(tt.parts)-1, "the end at part %d", i)
			}
			testkit.ErrorIs(t, g.err, tt.want)
			if tt.want == nil {
				got := []string{}
				for _, m := range g.messages {
					got = append(got, fmt.Sprint(m.Seq, ":", m.Subject))
				}
				testkit.Equal(t, fmt.Sprint(got), tt.got)
				testkit.Equal(t, g.more, tt.more)
			}
		})
	}
	foreign := &reading{of: &gathering{prefix: "y.b.l.s."}}
	testkit.That(t, foreign.take(&nats.Msg{Header: message(1, 0)}) && foreign.err != nil, "a message of another stream is taken")
}
