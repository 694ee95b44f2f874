package kafka

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// finishing is a handler that finishes all requests alike.
func finishing(finish Finish) *handler {
	return &handler{begin: func(context.Context, *Request) Finish { return finish }}
}

// K1: an answer may be written piece by piece; it is what Respond would have written.
func TestAnswersInPieces(t *testing.T) {
	resp := kmsg.NewPtrFetchResponse()
	topic := kmsg.NewFetchResponseTopic()
	part := kmsg.NewFetchResponseTopicPartition()
	part.RecordBatches = bytes.Repeat([]byte("records "), 50_000)
	topic.Partitions = append(topic.Partitions, part, part)
	resp.Topics = append(resp.Topics, topic)
	for _, version := range []int16{4, 12, 18} {
		r := request(1, version)
		resp.SetVersion(version)
		body := resp.AppendTo(nil)
		for name, finish := range map[string]Finish{
			"whole": respond(resp),
			"small pieces": func(_ context.Context, w *Writer) error {
				if err := w.Open(len(body)); err != nil {
					return err
				}
				for rest := body; len(rest) > 0; {
					n, err := w.Write(rest[:min(len(rest), 7777)])
					if err != nil {
						return err
					}
					rest = rest[n:]
				}
				return nil
			},
			"a large piece": func(_ context.Context, w *Writer) error {
				return errors.Join(w.Open(len(body)), testkit.Err(w.Write(body)))
			},
			"buffers": func(_ context.Context, w *Writer) error {
				third := len(body) / 3
				err := errors.Join(w.Open(len(body)), testkit.Err(w.Write(body[:20])))
				return errors.Join(err, w.WriteBuffers(net.Buffers{body[20:third], nil, body[third : 2*third], body[2*third:]}))
			},
		} {
			t.Run(name, func(t *testing.T) {
				c := serve(t, finishing(finish)).client()
				got := ask[*kmsg.FetchResponse](c, r)
				testkit.That(t, bytes.Equal(got.AppendTo(nil), body), "other bytes have come")
				c.lives()
			})
		}
	}
}

// An answer without a body is an answer.
func TestEmptyAnswer(t *testing.T) {
	c := serve(t, finishing(func(_ context.Context, w *Writer) error { return w.Open(0) })).client()
	c.send(request(1, 12))
	testkit.Slices(t, c.frame(), []byte{0, 0, 0, 1, 0})
}

// What a handler does wrong ends the connection, so that no client takes one answer for another.
func TestAnswersThatAreNone(t *testing.T) {
	resp := kmsg.NewPtrFetchResponse()
	for name, test := range map[string]struct {
		finish Finish
		want   error
	}{
		"none":                 {func(context.Context, *Writer) error { return nil }, nil},
		"an error":             {func(context.Context, *Writer) error { return errors.New("storage is away") }, nil},
		"less than announced":  {func(_ context.Context, w *Writer) error { return w.Open(10) }, nil},
		"nothing after all":    {func(_ context.Context, w *Writer) error { defer w.Nothing(); return w.Open(10) }, nil},
		"more than announced":  {func(_ context.Context, w *Writer) error { w.Open(1); return testkit.Err(w.Write([]byte("two"))) }, errAnswerSize},
		"bytes before it":      {func(_ context.Context, w *Writer) error { return w.WriteBuffers(net.Buffers{[]byte("x")}) }, errNotOpen},
		"two":                  {func(_ context.Context, w *Writer) error { w.Nothing(); return w.Respond(resp) }, errAnsweredTwice},
		"two that are written": {func(_ context.Context, w *Writer) error { w.Nothing(); return w.Open(1) }, errAnsweredTwice},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			h := finishing(func(ctx context.Context, w *Writer) error {
				err := test.finish(ctx, w)
				ended <- err
				return err
			})
			f := serve(t, h)
			c := f.client()
			c.send(request(1, 12))
			if err := receive(t, ended, "the end"); test.want != nil {
				testkit.ErrorIs(t, err, test.want)
			}
			c.gone()
			testkit.Equal(t, f.refused(reasonHandler), 1, "counted")
		})
	}
}

// K6: memory for what is read is taken before, and given back when the request is finished.
func TestTakingMemory(t *testing.T) {
	memory := admission.NewMemory(1000, 1000, admission.DefaultPatience)
	took := make(chan error, 1)
	f := serve(t, finishing(func(ctx context.Context, w *Writer) error {
		took <- w.Take(ctx, 800)
		testkit.That(t, !memory.Share("other", nil).TryTake(300), "it was not taken")
		return w.Respond(kmsg.NewPtrFetchResponse())
	}), func(c *Config) { c.Memory = memory })
	c := f.client()
	r := request(1, 12)
	c.send(r)
	testkit.Must(t, receive(t, took, "memory"))
	c.answer(r)
	testkit.Eventually(t, "it is given back", func() bool { return memory.Share("other", nil).TryTake(1000) })
}

func TestSplit(t *testing.T) {
	bufs := func(all ...string) (b net.Buffers) {
		for _, s := range all {
			b = append(b, []byte(s))
		}
		return b
	}
	for _, test := range []struct{ all, piece, rest net.Buffers }{
		{bufs("ab", "cd"), bufs("ab", "cd"), bufs()},
		{bufs("ab", "cdef"), bufs("ab", "cd"), bufs("ef")},
		{bufs("abcdefghij"), bufs("abcd"), bufs("efghij")},
		{bufs("", "ab", "", "cd", "e"), bufs("ab", "cd"), bufs("e")},
		{bufs("", ""), bufs(), bufs()},
	} {
		piece, rest := split(nil, test.all, 4)
		testkit.Equal(t, len(piece), len(test.piece))
		testkit.Equal(t, string(bytes.Join(piece, nil)), string(bytes.Join(test.piece, nil)))
		testkit.Equal(t, string(bytes.Join(rest, nil)), string(bytes.Join(test.rest, nil)))
	}
}
