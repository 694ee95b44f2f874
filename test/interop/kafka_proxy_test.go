//go:build linux

package interop

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// stormProxy passes connections on to a server, and breaks every one of them after a while: before something that a client
// has sent is passed on, in the middle of it, or behind it, so that its answer is lost and the client repeats it. Now and
// then it holds something back for less time than any client waits for. Some requests of producers that are idempotent, and
// not transactional, it sends a second time by itself.
//
// What a client has given up is never delivered late: a transaction before version 2 of Kafka's protocol has no defence
// against that. A request is repeated at once, before anything is passed on that the client sends behind it.
type stormProxy struct {
	listener net.Listener
	to       string
	calm     atomic.Bool // nothing is broken any more
	broken   atomic.Int64
	repeated atomic.Int64

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[*net.TCPConn]bool // guarded by mu; nil once it is closed
	random  *rand.Rand            // guarded by mu
}

func newStormProxy(t *testing.T, to string, seed uint64) *stormProxy {
	t.Helper()
	p := &stormProxy{
		listener: testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t), to: to,
		open: map[*net.TCPConn]bool{}, random: rand.New(rand.NewPCG(seed, 0)),
	}
	p.running.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.pass(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(p.close)
	return p
}

func (p *stormProxy) address() string { return p.listener.Addr().String() }

// fate is what becomes of a connection.
type fate struct {
	// end is when it is broken: by the next thing that the client sends, of which so much is passed on.
	end  time.Time
	part float64
	// stall is how long the answer before that is held back.
	stall time.Duration
}

func (p *stormProxy) draw() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := fate{end: time.Now().Add(time.Duration(20+p.random.IntN(400)) * time.Millisecond)}
	switch p.random.IntN(4) {
	case 0: // nothing
	case 1:
		f.part = p.random.Float64()
	default:
		f.part = 1
	}
	if p.random.IntN(3) == 0 {
		f.stall = time.Duration(p.random.IntN(300)) * time.Millisecond
	}
	return f
}

// pass carries both directions until one end closes, or its fate comes.
func (p *stormProxy) pass(client *net.TCPConn) {
	defer p.drop(client)
	dialed, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = client.SetLinger(0)
		return // the yard is down
	}
	server := dialed.(*net.TCPConn)
	defer p.drop(server)
	if !p.keep(client) || !p.keep(server) {
		return
	}
	f := p.draw()
	var both sync.WaitGroup
	both.Go(func() {
		defer p.cut(client, server)
		p.carryRequests(server, client, f)
	})
	both.Go(func() {
		defer p.cut(client, server)
		p.carryAnswers(client, server, f)
	})
	both.Wait()
}

func (p *stormProxy) carryRequests(server, client *net.TCPConn, f fate) {
	buffer := make([]byte, 64<<10)
	var passed requestFrames
	for {
		n, err := client.Read(buffer)
		over := !p.calm.Load() && time.Now().After(f.end)
		if over {
			n = int(f.part * float64(n))
			p.broken.Add(1)
		}
		if _, failed := server.Write(buffer[:n]); failed != nil || err != nil || over {
			return
		}
		for _, request := range passed.add(buffer[:n]) {
			if producesAlone(request) && p.repeats() {
				p.repeat(request)
			}
		}
	}
}

// repeats is true now and then.
func (p *stormProxy) repeats() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(4) == 0
}

// repeat sends a request by a connection of its own, and waits for the answer, unless the server is killed.
func (p *stormProxy) repeat(request []byte) {
	dialed, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	server := dialed.(*net.TCPConn)
	defer p.drop(server)
	if !p.keep(server) || server.SetDeadline(time.Now().Add(10*time.Second)) != nil {
		return
	}
	if _, err := server.Write(request); err != nil {
		return
	}
	var size [4]byte
	if _, err := io.ReadFull(server, size[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, server, int64(binary.BigEndian.Uint32(size[:]))); err == nil {
		p.repeated.Add(1)
	}
}

// requestFrames finds the requests in what a client sends.
type requestFrames struct{ begun []byte }

// add gives those that are whole with these bytes.
func (f *requestFrames) add(more []byte) (whole [][]byte) {
	f.begun = append(f.begun, more...)
	for len(f.begun) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(f.begun))
		if size > len(f.begun) {
			break
		}
		whole = append(whole, bytes.Clone(f.begun[:size]))
		f.begun = f.begun[size:]
	}
	return whole
}

// producesAlone: it is a Produce request outside transactions. One without acks, which has no answer, does not come here.
func producesAlone(request []byte) bool {
	const head = 4 + 2 + 2 + 4 // size, key, version, number
	if len(request) < head+2 || binary.BigEndian.Uint16(request[4:]) != 0 {
		return false
	}
	version, rest := binary.BigEndian.Uint16(request[6:]), request[head:]
	rest = rest[min(len(rest), 2+max(0, int(int16(binary.BigEndian.Uint16(rest))))):] // the client's name
	if version >= 9 {
		return len(rest) > 2 && rest[0] == 0 && rest[1] == 0 // no tags, no transactional id
	}
	return len(rest) > 2 && rest[0] == 0xff && rest[1] == 0xff
}

func (p *stormProxy) carryAnswers(client, server *net.TCPConn, f fate) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if f.stall > 0 && !p.calm.Load() && time.Now().After(f.end.Add(-f.stall)) {
			time.Sleep(f.stall) // once, and less than a client waits for an answer
			f.stall = 0
		}
		if _, failed := client.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// cut ends both ends. What the server was sent reaches it: it is closed behind that, and not reset.
func (p *stormProxy) cut(client, server *net.TCPConn) {
	_ = client.SetLinger(0)
	_ = client.Close()
	_ = server.CloseWrite()
	_ = server.CloseRead()
}

func (p *stormProxy) keep(conn *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return false
	}
	p.open[conn] = true
	return true
}

func (p *stormProxy) drop(conn *net.TCPConn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

func (p *stormProxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.running.Wait()
}
