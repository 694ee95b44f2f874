package natsstreams

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// asked is a request for messages as a server has it.
type asked struct {
	m      *nats.Msg
	prefix string
}

// part answers with a message that follows the one before it, and end says that there are no more.
func (a asked) part(seq int) {
	a.say(nats.Header{"Nats-Sequence": {strconv.Itoa(seq)}, "Nats-Last-Sequence": {strconv.Itoa(seq - 1)}, "Nats-Subject": {a.prefix + "0"}})
}

func (a asked) end(last int) {
	a.say(nats.Header{"Status": {"204"}, "Nats-Last-Sequence": {strconv.Itoa(last)}, "Nats-Num-Pending": {"0"}})
}

// say answers, unless the test has ended by then.
func (a asked) say(header nats.Header) { _ = a.m.RespondMsg(&nats.Msg{Header: header}) }

func (a asked) all() {
	a.part(1)
	a.part(2)
	a.end(2)
}

// readSlowly reads from a server that answers so, and gives how often it was asked.
func readSlowly(t *testing.T, servers *natstest.Servers, answer func([]asked)) int64 {
	s, server := open(t, servers, 0, natstest.Yard()), servers.Dial(t, 0)
	var requests atomic.Int64
	var got []asked
	// The yard has no streams, so that the server itself answers nothing.
	_, err := server.Subscribe("$JS.API.DIRECT.GET."+s.names.stream("s"), func(m *nats.Msg) {
		requests.Add(1)
		got = append(got, asked{m, s.names.prefix("s")})
		answer(got)
	})
	testkit.Must(t, err)
	testkit.Must(t, server.Flush())
	read, err := s.Read(t.Context(), "s", streams.Query{From: 1})
	testkit.Must(t, err)
	testkit.That(t, len(read.Messages) == 2 && read.Through == 2, "it reads %+v", read)
	return requests.Load()
}

// C1: what is read is asked for once more where nothing comes, and taken from whoever answers first: a server that
// was lost costs a moment, and one that has much to do is not given the same again and again.
func TestReadingFromServersThatAreSlow(t *testing.T) {
	servers := natstest.Shared(t, 1)
	for name, answer := range map[string]func(asked []asked){ // the last of the requests, one after the other
		"the first was lost": func(asked []asked) {
			if len(asked) > 1 {
				asked[1].all()
			}
		},
		"each takes long": func(asked []asked) {
			time.Sleep(patience/2 + 100*time.Millisecond)
			asked[len(asked)-1].all()
		},
		"the second breaks": func(asked []asked) {
			if len(asked) > 1 {
				asked[1].part(2) // which lacks the one before it
				asked[0].all()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readSlowly(t, servers, answer)
		})
	}
	t.Run("parts come slowly", func(t *testing.T) {
		t.Parallel()
		testkit.Eventually(t, "all is asked for again in the middle of a transfer", func() bool { // a busy machine may keep the first part back
			return readSlowly(t, servers, func(asked []asked) {
				asked[0].part(1)
				time.Sleep(readAgain + 300*time.Millisecond)
				asked[0].part(2)
				time.Sleep(readAgain + 300*time.Millisecond)
				asked[0].end(2)
			}) == 1
		})
	})
}
