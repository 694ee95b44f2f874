package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// Conn is a connection of a node as package entries uses one of NATS (entries.Conn): to streams that
// keep the newest message of each subject and take one on condition of the sequence before it. What
// goes wrong is what goes wrong for a Node. Deletions are kept for ever.
type Conn struct{ n *Node }

// Conn gives a new connection of the node with that name.
func (c *Cluster) Conn(node string) *Conn { return &Conn{c.Node(node)} }

// Close is Node.Close.
func (c *Conn) Close() { c.n.Close() }

// IsConnected is nats.Conn's, as are the others: as far as the node knows.
func (c *Conn) IsConnected() bool {
	c.n.c.mu.Lock()
	defer c.n.c.mu.Unlock()
	return !c.n.closed && c.n.connected(time.Now())
}

// MaxPayload is what the servers take.
func (c *Conn) MaxPayload() int64 { return maxMessageBytes }

// Stream is entries.Conn's.
func (c *Conn) Stream(ctx context.Context, want jetstream.StreamConfig) (have jetstream.StreamConfig, err error) {
	servers := c.n.c
	err = c.n.ask(ctx, true, func() error {
		s := servers.streams[want.Name]
		if s == nil {
			s = newStream(streams.Config{Replicas: want.Replicas}, time.Now().Add(servers.upTo(2*servers.faults.Delay)))
			s.newestOf, s.config = map[string]streams.Seq{}, want
			servers.streams[want.Name] = s
		}
		have = s.config
		return nil
	})
	if errors.Is(err, streams.ErrUnavailable) {
		err = nats.ErrTimeout
	}
	return have, inWordsOfNATS(err)
}

// streamOf is the name of the stream that keeps a subject.
func (c *Cluster) streamOf(subject string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range c.streams {
		if len(s.config.Subjects) > 0 && strings.HasPrefix(subject, strings.TrimSuffix(s.config.Subjects[0], ">")) {
			return name
		}
	}
	return ""
}

// errBusy: another write of the subject is in process.
var errBusy = errors.New("a write of the subject is in process")

// RequestMsgWithContext stores a message, if its headers allow, and gives the servers' answer.
func (c *Conn) RequestMsgWithContext(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	c.n.awaitThaw()
	type outcome struct {
		seq streams.Seq
		err error
	}
	answered := make(chan outcome, 1)
	f := &flight{
		n: c.n, stream: c.n.c.streamOf(msg.Subject), subject: msg.Subject, data: slices.Clone(msg.Data),
		done: func(seq streams.Seq, err error) { answered <- outcome{seq, err} },
	}
	if expected := msg.Header.Get("Nats-Expected-Last-Subject-Sequence"); expected != "" {
		seq, err := strconv.ParseUint(expected, 10, 64)
		if err != nil {
			return nil, err
		}
		f.expect = new(streams.Seq(seq))
	}
	if err := c.n.handOver(f); err != nil {
		return nil, inWordsOfNATS(err)
	}
	select {
	case o := <-answered:
		return wordOn(f.stream, o.seq, o.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// wordOn is what servers say of a message.
func wordOn(stream string, seq streams.Seq, err error) (*nats.Msg, error) {
	other, wrong := errors.AsType[*otherSequence](err)
	refusal := func(code int, text string) (*nats.Msg, error) {
		return &nats.Msg{Data: fmt.Appendf(nil, `{"error":{"code":400,"err_code":%d,"description":%q},"stream":%q,"seq":0}`, code, text, stream)}, nil
	}
	switch {
	case err == nil:
		return &nats.Msg{Data: fmt.Appendf(nil, `{"stream":%q,"seq":%d}`, stream, seq)}, nil
	case wrong:
		return refusal(10071, other.Error())
	case errors.Is(err, errBusy):
		return refusal(10164, "wrong last sequence")
	case errors.Is(err, streams.ErrNoSpace):
		return refusal(10023, "insufficient resources")
	}
	return nil, inWordsOfNATS(err)
}

// inWordsOfNATS is an error as a client of NATS has it.
func inWordsOfNATS(err error) error {
	switch {
	case errors.Is(err, streams.ErrUnavailable):
		return nats.ErrNoResponders
	case errors.Is(err, streams.ErrUncertain):
		return nats.ErrTimeout
	case errors.Is(err, streams.ErrClosed):
		return nats.ErrConnectionClosed
	}
	return err
}

// Publish announces something to all that listen.
func (c *Conn) Publish(subject string, data []byte) error {
	c.n.announce(subject, data)
	return nil
}

// Listen is entries.Conn's.
func (c *Conn) Listen(subject string) (next func(context.Context) (*nats.Msg, error), stop func(), err error) {
	in := newInbox()
	stop, err = c.n.listen(&listener{subject: subject, heard: func(subject string, data []byte) {
		in.put(&nats.Msg{Subject: subject, Data: slices.Clone(data)})
	}, inbox: in})
	return in.next, stop, inWordsOfNATS(err)
}

// NewInbox is a subject of the caller's own.
func (c *Conn) NewInbox() string {
	c.n.c.mu.Lock()
	defer c.n.c.mu.Unlock()
	c.n.c.inboxes++
	return fmt.Sprint("_INBOX.", c.n.c.inboxes)
}

// directGet is a request to read, without the name of its stream.
const directGet = "$JS.API.DIRECT.GET."

// PublishRequest asks for messages of a stream, which come to the inbox: from any replica, all, or none.
func (c *Conn) PublishRequest(subject, reply string, data []byte) error {
	stream, ok := strings.CutPrefix(subject, directGet)
	var q struct {
		Seq      streams.Seq `json:"seq"`
		Batch    int         `json:"batch"`
		MaxBytes int         `json:"max_bytes"`
	}
	if err := json.Unmarshal(data, &q); err != nil || !ok {
		return fmt.Errorf("the model knows no request %s: %w", subject, err)
	}
	servers := c.n.c
	servers.mu.Lock()
	defer servers.mu.Unlock()
	now := time.Now()
	c.n.sent = later(later(c.n.sent, now.Add(servers.upTo(servers.faults.Delay))), c.n.link.thaw)
	servers.arrivals.at(c.n.sent, func() {
		c.n.serve(stream, reply, streams.Query{From: q.Seq, MaxMessages: q.Batch, MaxBytes: q.MaxBytes})
	})
	return nil
}

// serve answers a request to read, unless something is in its way.
func (n *Node) serve(name, reply string, q streams.Query) {
	c := n.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now, s := time.Now(), c.streams[name]
	if !n.reachable(now) {
		return
	}
	var parts []*nats.Msg
	if s == nil || s.heardOf.After(now) || c.happens(c.faults.Unavailable) {
		parts = []*nats.Msg{{Header: nats.Header{"Status": {"503"}}}}
	} else {
		r := c.rand.IntN(len(s.replicas))
		s.catchUp(r, now.Add(-c.upTo(c.faults.Lag)))
		parts = partsOf(s.read(r, q))
	}
	n.heard = later(n.heard, now.Add(c.upTo(c.faults.Delay)))
	n.answers.at(n.heard, func() { n.deliver(reply, parts) })
}

// deliver puts an answer into its inbox, once the node is not frozen.
func (n *Node) deliver(reply string, parts []*nats.Msg) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	now := time.Now()
	if n.link.frozen(now) {
		n.answers.at(n.link.thaw, func() { n.deliver(reply, parts) })
		return
	}
	if !n.reachable(now) {
		return
	}
	for _, l := range n.listeners {
		if l.subject == reply {
			for _, part := range parts {
				l.inbox.put(part)
			}
		}
	}
}

// partsOf is an answer as servers send it: a message for each, which names the one before, and an end.
func partsOf(part streams.Part) []*nats.Msg {
	number := func(seq streams.Seq) []string { return []string{strconv.FormatUint(uint64(seq), 10)} }
	var all []*nats.Msg
	var last streams.Seq
	for _, m := range part.Messages {
		all = append(all, &nats.Msg{Data: m.Data, Header: nats.Header{
			"Nats-Sequence": number(m.Seq), "Nats-Subject": {m.Subject}, "Nats-Last-Sequence": number(last),
		}})
		last = m.Seq
	}
	if last == 0 {
		return []*nats.Msg{{Header: nats.Header{"Status": {"404"}}}}
	}
	end := nats.Header{"Status": {"204"}, "Nats-Last-Sequence": number(last), "Nats-Num-Pending": {"0"}}
	if part.More {
		end.Set("Nats-Num-Pending", "1")
	}
	return append(all, &nats.Msg{Header: end})
}
