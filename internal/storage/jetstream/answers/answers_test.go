package answers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestReadAck(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		seq    uint64
		lost   bool
	}{
		"the usual form":           {`{"stream":"Y_a_l=b","seq":7}`, 7, false},
		"of a domain":              {`{"stream":"s","domain":"d","seq":70}`, 70, false},
		"a duplicate":              {`{"stream":"s","seq":7,"duplicate":true}`, 7, false},
		"with spaces":              {`{ "seq" : 7 }`, 7, false},
		"the largest":              {`{"stream":"s","seq":18446744073709551615}`, 1<<64 - 1, false},
		"too large":                {`{"stream":"s","seq":18446744073709551616}`, 0, true},
		"a negative number":        {`{"stream":"s","seq":-1}`, 0, true},
		"no number":                {`{"stream":"s","seq":}`, 0, true},
		"zero":                     {`{"stream":"s","seq":0}`, 0, true},
		"without a sequence":       {`{"stream":"s"}`, 0, true},
		"cut off":                  {`{"stream":"s","seq":7`, 0, true},
		"nothing":                  {"", 0, true},
		"no JSON":                  {"+OK", 0, true},
		"a name that ends nowhere": {`{"stream":"s`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			seq, err := ReadAck([]byte(tt.answer))
			testkit.Equal(t, seq, tt.seq)
			testkit.Equal(t, errors.Is(err, ErrLost), tt.lost, "got %v", err)
		})
	}
}

// C1: only what servers say before they pass a message on is certain.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		code          int
		description   string
		full, certain bool
	}{
		{10002, "resource limits exceeded for account", true, true},
		{10023, "insufficient resources", true, true},
		{10047, "insufficient storage resources available", true, true},
		{10077, "maximum bytes exceeded", true, true},
		{10077, "message too large", true, true},
		{10077, "store is closed", false, false},
		{10077, "no space left on device", false, false},
		{10167, "too many requests", false, true},
		{10071, "wrong last sequence: 3", false, true},
		{10008, "JetStream system temporarily unavailable", false, false},
		{10009, "JetStream cluster can not handle request", false, false},
		{10999, "something new", false, false},
	} {
		t.Run(fmt.Sprint(tt.code, " ", tt.description), func(t *testing.T) {
			_, err := ReadAck(fmt.Appendf(nil, `{"error":{"code":503,"err_code":%d,"description":%q},"stream":"s","seq":0}`, tt.code, tt.description))
			r, is := errors.AsType[*Refusal](err)
			testkit.MustThat(t, is, "got %v", err)
			testkit.Equal(t, *r, Refusal{503, tt.code, tt.description})
			testkit.Equal(t, r.Full(), tt.full, "full")
			testkit.Equal(t, r.Certain(), tt.certain, "certain")
		})
	}
}

func TestReadPart(t *testing.T) {
	header := func(pairs string) nats.Header {
		h := nats.Header{}
		for _, pair := range strings.Fields(pairs) {
			name, v, _ := strings.Cut(pair, "=")
			h.Set(name, v)
		}
		return h
	}
	tests := []struct {
		name     string
		header   string
		previous uint64
		want     Part
		refused  bool
	}{
		{"the first message", "Nats-Sequence=4 Nats-Subject=a Nats-Last-Sequence=0 Nats-Num-Pending=2", 0, Part{Seq: 4, Subject: "a", Pending: 2}, false},
		{"one behind another", "Nats-Sequence=9 Nats-Subject=b Nats-Last-Sequence=4", 4, Part{Seq: 9, Subject: "b"}, false},
		{"one whose neighbour was lost", "Nats-Sequence=9 Nats-Subject=b Nats-Last-Sequence=7", 4, Part{}, true},
		{"the end", "Status=204 Nats-Last-Sequence=9 Nats-Num-Pending=0", 9, Part{Last: true}, false},
		{"the end of a part", "Status=204 Nats-Last-Sequence=9 Nats-Num-Pending=3", 9, Part{Last: true, Pending: 3}, false},
		{"the end, and the message before it was lost", "Status=204 Nats-Last-Sequence=9", 4, Part{}, true},
		{"nothing is there", "Status=404", 0, Part{Last: true}, false},
		{"an answer that breaks off", "Status=404", 4, Part{}, true},
		{"nobody is there", "Status=503", 0, Part{}, true},
		{"a request that is refused", "Status=408 Description=Bad", 0, Part{}, true},
		{"a message without a sequence", "Nats-Subject=a", 0, Part{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadPart(header(tt.header), tt.previous)
			if got != tt.want || (err != nil) != tt.refused {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// C8: servers that are missing for the moment are waited for; too few of them are not.
func TestRefusalsThatPass(t *testing.T) {
	for want, all := range map[bool][]Refusal{
		true: {{503, 10008, "JetStream system temporarily unavailable"}, {400, 10005, "no suitable peers for placement, peer offline"},
			{400, 10005, "no suitable peers for placement, miscellaneous issue"}, {400, 10009, ""}},
		false: {{400, 10005, "no suitable peers for placement"}, {400, 10074, "replicas > 1 not supported in non-clustered mode"}},
	} {
		for _, r := range all {
			testkit.Equal(t, r.Passing(), want, "%v", r.Error())
		}
	}
}
