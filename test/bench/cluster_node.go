package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// yardNode is a node of a yard, the real program, that listens on loopback.
type yardNode struct {
	*program
	amqp  string // HOST:PORT
	admin *admin.Client
	used  int // hubs made
}

// startNode returns when the node is ready.
func (b *bench) startNode(ctx context.Context, servers *natsServers, name string) (*yardNode, error) {
	program, err := b.program(ctx)
	if err != nil {
		return nil, err
	}
	key := filepath.Join(servers.dir, "secret.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses("127.0.0.1", 1)
	if err != nil {
		return nil, err
	}
	n := &yardNode{amqp: addresses[0]}
	n.program, err = launch(ctx, program, servers.dir, "--engine", servers.url(), "--node", name, "--secrets-key-file", key, "--amqp", n.amqp)
	if err != nil {
		return nil, err
	}
	n.admin, err = admin.New(admin.Config{Server: n.url, Policy: auth.RootPolicy, Key: auth.DevelopmentKey})
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

func (n *yardNode) stop() error {
	if n.admin != nil {
		n.admin.Close()
	}
	return n.program.stop()
}

func (n *yardNode) connectionString() string {
	return "Endpoint=sb://" + n.amqp + ";" + developmentKeys
}

// newHub makes one whose first partitions are spread over so many streams.
func (n *yardNode) newHub(ctx context.Context, s spread) (name string, err error) {
	n.used++
	name = fmt.Sprint(hubName, "-", n.used)
	total := s.partitions
	if s.streams > 1 {
		total = s.streams * 16 // a hub has a stream for each 16 of its partitions
	}
	_, err = n.admin.CreateHub(ctx, admin.HubRequest{Name: name, Partitions: &total})
	return name, err
}

// amqpConnections are shared by the senders.
const amqpConnections = 4

// sends makes a hub, has senders send to it, each of which waits until what it has sent is settled,
// and deletes it. The messages are encoded beforehand.
func (n *yardNode) sends(name string, s spread) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (t tally, err error) {
		hub, err := n.newHub(ctx, s)
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, n.admin.DeleteHub(context.WithoutCancel(ctx), hub)) }()
		senders, hangUp, err := n.attach(ctx, hub, s)
		defer func() { err = errors.Join(err, hangUp()) }()
		if err != nil {
			return tally{}, err
		}
		var messages []*amqp.Message
		for _, bodies := range s.bodies() {
			messages = append(messages, amqpMessage(bodies))
		}
		return driveTimed(ctx, lim, s.job(func(ctx context.Context, w int) error { return senders[w%s.senders].Send(ctx, messages[w], nil) }))
	}}
}

// amqpMessage is one event, or a batch of them.
func amqpMessage(bodies [][]byte) *amqp.Message {
	if len(bodies) == 1 {
		return amqp.NewMessage(bodies[0])
	}
	m := &amqp.Message{Format: batchFormat}
	for _, body := range bodies {
		m.Data = append(m.Data, dataMessage(body))
	}
	return m
}

// attach makes a link for each sender. What it gives ends the connections, also after an error.
func (n *yardNode) attach(ctx context.Context, hub string, s spread) (senders []*amqp.Sender, hangUp func() error, err error) {
	var conns []*amqp.Conn
	hangUp = func() error {
		var errs []error
		for _, c := range conns {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	var sessions []*amqp.Session
	for range amqpConnections {
		conn, err := amqp.Dial(ctx, "amqp://"+n.amqp, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(auth.RootPolicy, auth.DevelopmentKey)})
		if err != nil {
			return nil, hangUp, err
		}
		conns = append(conns, conn)
		session, err := conn.NewSession(ctx, nil)
		if err != nil {
			return nil, hangUp, err
		}
		sessions = append(sessions, session)
	}
	for w := range s.senders {
		sender, err := sessions[w%amqpConnections].NewSender(ctx, fmt.Sprintf("%s/Partitions/%d", hub, s.partition(w)), nil)
		if err != nil {
			return nil, hangUp, err
		}
		senders = append(senders, sender)
	}
	return senders, hangUp, nil
}
