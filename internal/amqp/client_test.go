package amqp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	azure "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What follows is the machine as the Go client of Azure sees it.

// dial connects that client.
func (f *fixture) dial(nc net.Conn, opts *azure.ConnOptions) *azure.Conn {
	f.t.Helper()
	conn := testkit.Value(azure.NewConn(f.t.Context(), nc, opts))(f.t)
	f.t.Cleanup(func() { conn.Close() })
	return conn
}

func (f *fixture) azureSession(opts *azure.ConnOptions) (*azure.Conn, *azure.Session) {
	f.t.Helper()
	conn := f.dial(f.pipe(), opts)
	s, err := conn.NewSession(f.t.Context(), nil)
	testkit.Must(f.t, err)
	return conn, s
}

// encoded is a message as the wire has it.
func encoded(t testing.TB, body []byte) []byte {
	b, err := azure.NewMessage(body).MarshalBinary()
	testkit.Must(t, err)
	return b
}

// counting is a source that sends so many numbered messages, then waits.
func counting(t testing.TB, count int, size int) *source {
	return &source{run: func(ctx context.Context, l *Link) error {
		messages := make([][]byte, count)
		for i := range messages {
			messages[i] = encoded(t, append(fmt.Appendf(nil, "%d:", i), bytes.Repeat([]byte("x"), size)...))
		}
		for len(messages) > 0 {
			n, err := l.Send(ctx, len(messages), func(dst []byte, i int) []byte { return append(dst, messages[i]...) })
			if err != nil {
				return err
			}
			messages = messages[n:]
		}
		<-ctx.Done()
		return nil
	}}
}

func TestAzureClientSends(t *testing.T) { // H8
	for _, size := range []int{0, 100, 100_000, 1_000_000} {
		for _, frame := range []uint32{512, 4096, 65536} {
			t.Run(fmt.Sprintf("%d bytes in frames of %d", size, frame), func(t *testing.T) {
				bodies := make(chan []byte, 10)
				in := &sink{deliver: func(d *Delivery) {
					var m azure.Message
					testkit.Check(t, m.UnmarshalBinary(d.Payload))
					bodies <- m.GetData()
					d.Accept()
				}}
				f := serve(t, accept(in, nil), func(c *Config) { c.MaxFrameBytes = frame })
				_, session := f.azureSession(nil)
				sender, err := session.NewSender(t.Context(), "hub", nil)
				testkit.Must(t, err)
				body := bytes.Repeat([]byte("b"), size)
				for range 3 {
					testkit.Must(t, sender.Send(t.Context(), azure.NewMessage(body), nil))
					if got := <-bodies; !bytes.Equal(got, body) {
						t.Fatalf("got %d bytes, want %d", len(got), len(body))
					}
				}
			})
		}
	}
}

func TestAzureClientReceives(t *testing.T) { // H8
	for _, size := range []int{0, 100, 100_000} {
		for _, frame := range []uint32{512, 4096, 65536} {
			t.Run(fmt.Sprintf("%d bytes in frames of %d", size, frame), func(t *testing.T) {
				const count = 20
				f := serve(t, accept(nil, counting(t, count, size)))
				_, session := f.azureSession(&azure.ConnOptions{MaxFrameSize: frame})
				receiver, err := session.NewReceiver(t.Context(), "hub", &azure.ReceiverOptions{Credit: 7})
				testkit.Must(t, err)
				for i := range count {
					m, err := receiver.Receive(t.Context(), nil)
					testkit.Must(t, err)
					if want := fmt.Sprintf("%d:", i); !bytes.HasPrefix(m.GetData(), []byte(want)) || len(m.GetData()) != len(want)+size {
						t.Fatalf("message %d is %.10q of %d bytes", i, m.GetData(), len(m.GetData()))
					}
				}
			})
		}
	}
}

func TestAzureClientHearsOfARejection(t *testing.T) {
	in := &sink{deliver: func(d *Delivery) {
		go d.Reject(&Error{Condition: "com.microsoft:server-busy", Description: "later"})
	}}
	f := serve(t, accept(in, nil))
	_, session := f.azureSession(nil)
	sender, err := session.NewSender(t.Context(), "hub", nil)
	testkit.Must(t, err)
	err = sender.Send(t.Context(), azure.NewMessage([]byte("x")), nil)
	remote, ok := errors.AsType[*azure.Error](err)
	if !ok || remote.Condition != "com.microsoft:server-busy" || remote.Description != "later" {
		t.Fatalf("got %v", err)
	}
	// The link goes on.
	in.deliver = nil
	testkit.Must(t, sender.Send(t.Context(), azure.NewMessage([]byte("x")), nil))
}

func TestAzureClientIsRefusedALink(t *testing.T) {
	h := accept(nil, nil)
	h.attach = func(*Link) (Terminus, error) {
		return Terminus{}, &Error{Condition: ConditionNotFound, Description: "no such hub"}
	}
	f := serve(t, h)
	_, session := f.azureSession(nil)
	_, err := session.NewSender(t.Context(), "hub", nil)
	if remote, ok := errors.AsType[*azure.Error](err); !ok || remote.Condition != azure.ErrCondNotFound {
		t.Fatalf("sender: got %v", err)
	}
	_, err = session.NewReceiver(t.Context(), "hub", nil)
	if remote, ok := errors.AsType[*azure.Error](err); !ok || remote.Condition != azure.ErrCondNotFound {
		t.Fatalf("receiver: got %v", err)
	}
	// The session goes on.
	h.attach = accept(&sink{}, nil).attach
	_, err = session.NewSender(t.Context(), "hub", nil)
	testkit.Must(t, err)
}

func TestAzureClientIsDetachedWithAnError(t *testing.T) { // H5
	out := &source{run: func(context.Context, *Link) error {
		return &Error{Condition: ConditionStolen, Description: "someone else reads now"}
	}}
	f := serve(t, accept(nil, out))
	_, session := f.azureSession(nil)
	receiver, err := session.NewReceiver(t.Context(), "hub", nil)
	testkit.Must(t, err)
	_, err = receiver.Receive(t.Context(), nil)
	link, ok := errors.AsType[*azure.LinkError](err)
	if !ok || link.RemoteErr == nil || link.RemoteErr.Condition != azure.ErrCondStolen {
		t.Fatalf("got %v", err)
	}
}

func TestAzureClientDrainsItsCredit(t *testing.T) {
	for _, says := range []bool{false, true} {
		t.Run(fmt.Sprintf("source says when it has nothing: %v", says), func(t *testing.T) {
			out := counting(t, 3, 10)
			run := out.run
			out.run = func(ctx context.Context, l *Link) error {
				if says {
					defer sayDrained(ctx, l)()
				}
				return run(ctx, l)
			}
			f := serve(t, accept(nil, out))
			_, session := f.azureSession(nil)
			receiver, err := session.NewReceiver(t.Context(), "hub", &azure.ReceiverOptions{Credit: -1})
			testkit.Must(t, err)
			testkit.Must(t, receiver.IssueCredit(10))
			for range 3 {
				_, err := receiver.Receive(t.Context(), nil)
				testkit.Must(t, err)
			}
			testkit.Must(t, receiver.DrainCredit(t.Context(), nil))
			if m := receiver.Prefetched(); m != nil {
				t.Fatal("something came that was not sent")
			}
			testkit.Must(t, receiver.IssueCredit(1)) // it can be given anew
		})
	}
}

// sayDrained says so again and again until the function it gives is called.
func sayDrained(ctx context.Context, l *Link) func() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.Drained()
		}
	}()
	return func() { <-done }
}

func TestAzureClientEndsLinksSessionsAndConnections(t *testing.T) {
	in, out := &sink{}, &source{}
	gone := make(chan struct{})
	h := accept(in, out)
	h.disconnected = func() { close(gone) }
	f := serve(t, h)
	// On a pipe this client takes its own closing for an error.
	conn := f.dial(f.tcp(), nil)
	session, err := conn.NewSession(t.Context(), nil)
	testkit.Must(t, err)
	s, err := session.NewSender(t.Context(), "hub", nil)
	testkit.Must(t, err)
	testkit.Must(t, s.Close(t.Context()))
	testkit.MustEqual(t, in.closed.Load(), 1, "sink closed")
	_, err = session.NewReceiver(t.Context(), "hub", nil)
	testkit.Must(t, err)
	testkit.Must(t, session.Close(t.Context()))
	testkit.MustEqual(t, out.closed.Load(), 1, "source closed … times when the session has ended")
	session, err = conn.NewSession(t.Context(), nil)
	testkit.Must(t, err)
	_, err = session.NewSender(t.Context(), "hub", nil)
	testkit.Must(t, err)
	testkit.Must(t, conn.Close())
	receive(t, gone, "Disconnected")
	testkit.MustEqual(t, in.closed.Load(), 2, "sinks closed … times in all")
}

func TestAzureClientHearsThatTheServerStops(t *testing.T) {
	f := serve(t, accept(&sink{}, &source{}))
	_, session := f.azureSession(nil)
	receiver, err := session.NewReceiver(t.Context(), "hub", nil)
	testkit.Must(t, err)
	testkit.Must(t, f.server.Stop(t.Context()))
	_, err = receiver.Receive(t.Context(), nil)
	// The end of the link and that of the connection may reach it in one.
	link, _ := errors.AsType[*azure.LinkError](err)
	conn, _ := errors.AsType[*azure.ConnError](err)
	switch {
	case link != nil && link.RemoteErr != nil && link.RemoteErr.Condition == azure.ErrCondConnectionForced:
	case conn != nil && conn.RemoteErr != nil && conn.RemoteErr.Condition == azure.ErrCondConnectionForced:
	default:
		t.Fatalf("got %v", err)
	}
}

// passwords knows one user.
type passwords struct{}

func (passwords) Plain(_ context.Context, _, user, password string) (any, error) {
	switch {
	case password == "later":
		return nil, fmt.Errorf("log in: %w", ErrUnchecked)
	case user != "policy" || password != "key":
		return nil, errors.New("wrong password")
	}
	return user, nil
}

func TestAzureClientShowsWhoItIs(t *testing.T) { // H9
	tests := []struct {
		name string
		sasl azure.SASLType
		auth bool
		want Identity
		fail bool
	}{
		{"no SASL at all", nil, true, Identity{}, false},
		{"anonymous", azure.SASLTypeAnonymous(), true, Identity{Mechanism: "ANONYMOUS"}, false},
		{"user and password", azure.SASLTypePlain("policy", "key"), true, Identity{Mechanism: "PLAIN", Value: "policy"}, false},
		{"wrong password", azure.SASLTypePlain("policy", "no"), true, Identity{}, true},
		{"PLAIN where nobody checks", azure.SASLTypePlain("policy", "key"), false, Identity{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan Identity, 1)
			h := accept(nil, nil)
			h.connected = func(c *Conn) error { got <- c.Identity(); return nil }
			f := serve(t, h, func(c *Config) {
				if tt.auth {
					c.Auth = checker{}
				}
			})
			conn, err := azure.NewConn(t.Context(), f.pipe(), &azure.ConnOptions{SASLType: tt.sasl})
			if tt.fail {
				if err == nil {
					t.Fatal("connected")
				}
				return
			}
			testkit.Must(t, err)
			defer conn.Close()
			testkit.MustEqual(t, receive(t, got, "Connected"), tt.want)
		})
	}
}

func TestAzureClientIsRefusedAConnection(t *testing.T) {
	h := accept(nil, nil)
	h.connected = func(*Conn) error { return &Error{Condition: ConditionNotAllowed, Description: "closed today"} }
	f := serve(t, h)
	conn := f.dial(f.pipe(), nil)
	_, err := conn.NewSession(t.Context(), nil)
	remote, ok := errors.AsType[*azure.ConnError](err)
	if !ok || remote.RemoteErr == nil || remote.RemoteErr.Condition != azure.ErrCondNotAllowed {
		t.Fatalf("got %v", err)
	}
}

func TestLinksHaveTheirOwnPaceWithTheAzureClient(t *testing.T) {
	f := serve(t, accept(nil, counting(t, 1000, 1000)))
	_, session := f.azureSession(nil)
	// One without credit, one that is never read, one that is.
	_, err := session.NewReceiver(t.Context(), "hub", &azure.ReceiverOptions{Credit: -1, Name: "none"})
	testkit.Must(t, err)
	_, err = session.NewReceiver(t.Context(), "hub", &azure.ReceiverOptions{Credit: 10, Name: "stuck"})
	testkit.Must(t, err)
	r := testkit.Value(session.NewReceiver(t.Context(), "hub", &azure.ReceiverOptions{Credit: 10, Name: "free"}))(t)
	for range 1000 {
		testkit.Must(t, testkit.Err(r.Receive(t.Context(), nil)))
	}
}
