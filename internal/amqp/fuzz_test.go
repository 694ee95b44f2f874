package amqp

import (
	"io"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// FuzzConn lets a stranger say anything once the connection is open, has a session, and a
// link each way. Whatever it says, everything ends with the connection: each link's end
// is closed once, no goroutine is left (TestMain looks), and nothing panics.
func FuzzConn(f *testing.F) {
	part := message(0, 1)
	part.More = true
	for _, bodies := range [][]any{
		{}, {newBegin()}, {sender("x", 2)}, {receiver("x", 2)}, {credit(1, 0, 10)}, {message(0, 0)}, {part, message(0, 1)},
		{&wire.Detach{Handle: 0}}, {&wire.Detach{Handle: 1, Closed: true}, receiver("r", 1)}, {&wire.End{}, newBegin()},
		{&wire.Close{}}, {&wire.Disposition{Role: wire.RoleReceiver, Settled: true}}, {&wire.Open{ContainerID: "again"}},
		{&wire.Transfer{Handle: 0, DeliveryID: wire.Some(uint32(3)), Aborted: true}},
	} {
		var b []byte
		for _, body := range bodies {
			b = appendFrame(b, 0, body, []byte("payload"))
		}
		f.Add(b)
	}
	f.Add([]byte{0, 0, 0, 8, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var ends []func() int32
		h := accept(nil, nil)
		h.attach = func(l *Link) (Terminus, error) {
			in, out := &sink{}, sendAll(20, nil)
			if l.Request().Role == wire.RoleSender {
				ends = append(ends, in.closed.Load)
			} else {
				ends = append(ends, out.closed.Load)
			}
			return Terminus{Sink: in, Source: out, MaxMessageBytes: 1000, Credit: 3}, nil
		}
		server := serve(t, h, func(c *Config) { c.MaxFrameBytes, c.MaxLinks, c.MaxSessions = 4096, 4, 4 })
		p := quietPeer(t, server.pipe())
		p.reader.Go(func() { io.Copy(io.Discard, p.nc) })
		prelude := append([]byte(nil), wire.ProtocolAMQP[:]...)
		prelude = appendFrame(prelude, 0, &wire.Open{ContainerID: "fuzz", MaxFrameSize: wire.Some(uint32(512))}, nil)
		prelude = appendFrame(prelude, 0, newBegin(), nil)
		prelude = appendFrame(prelude, 0, sender("s", 0), nil)
		prelude = appendFrame(prelude, 0, receiver("r", 1), nil)
		p.nc.Write(append(prelude, b...)) // it may be closed meanwhile
		p.leave()
		server.serves.Wait()
		for i, closed := range ends {
			testkit.Equal(t, closed(), 1, "the end of link %d was closed", i)
		}
		testkit.Equal(t, server.refused(reasonPanic), 0, "panics")
	})
}

// FuzzHandshake is the same from the first byte on.
func FuzzHandshake(f *testing.F) {
	init := appendFrame(nil, 0, &wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00policy\x00key"), HasResponse: true}, nil)
	f.Add(wire.ProtocolAMQP[:])
	f.Add(append(append([]byte(nil), wire.ProtocolSASL[:]...), init...))
	f.Add(append(append(append([]byte(nil), wire.ProtocolSASL[:]...), init...), wire.ProtocolAMQP[:]...))
	f.Add(appendFrame(append([]byte(nil), wire.ProtocolAMQP[:]...), 0, &wire.Open{ContainerID: "x"}, nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		server := serve(t, accept(&sink{}, &source{}), func(c *Config) { c.Auth = checker{} })
		p := quietPeer(t, server.pipe())
		p.reader.Go(func() { io.Copy(io.Discard, p.nc) })
		p.nc.Write(b)
		p.leave()
		server.serves.Wait()
		testkit.Equal(t, server.refused(reasonPanic), 0, "panics")
	})
}
