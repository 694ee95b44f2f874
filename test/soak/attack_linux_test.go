package soak

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// attackVariable makes this program a crowd of hostile clients: attacks a second, where they come from
// without the last byte, then the addresses of the listeners.
const attackVariable = "EVENTYARD_TEST_ATTACK"

func TestMain(m *testing.M) {
	if what := os.Getenv(attackVariable); what != "" {
		var c crowd
		if _, err := fmt.Sscan(what, &c.aSecond, &c.from, &c.amqp, &c.amqps, &c.http, &c.https, &c.kafka, &c.kafkas); err != nil {
			panic(err)
		}
		c.attack(os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// noConnection is how an attack ended that the yard did not hear of.
const noConnection = "no connection"

// crowd is all hostile clients together.
type crowd struct {
	aSecond                  int
	from                     string // an address without its last byte
	amqp, amqps, http, https string
	kafka, kafkas            string

	mu    sync.Mutex
	ended map[string]int // by kind and end; guarded by mu
}

const (
	// hold is how long an attack lasts that the yard does nothing about.
	hold = 10 * time.Second
	// firstAddress is the last byte of the first address that hostile clients come from, and addresses how many
	// strangers do. Thieves have the next ones: where a right was shown, nobody is a stranger.
	firstAddress, addresses, thieves = 100, 100, 10
	// mostAttacks are under way at once, so that the attackers do not run out of descriptors.
	mostAttacks = 5000
)

// attack begins attacks in turn until the input ends, and then says how all of them fared.
func (c *crowd) attack(until io.Reader) {
	c.ended = map[string]int{}
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, until)
		close(stop)
	}()
	var all sync.WaitGroup
	attacks := slices.Concat(attacks, kafkaAttacks, thefts)
	turns := make(chan struct{}, mostAttacks)
	ticks := time.NewTicker(time.Second / time.Duration(c.aSecond))
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			all.Wait()
			c.report()
			return
		case <-ticks.C:
		}
		n := i % len(attacks)
		kind, from := attacks[n], firstAddress+rand.IntN(addresses)
		if n >= len(attacks)-len(thefts) {
			from = firstAddress + addresses + rand.IntN(thieves)
		}
		select {
		case turns <- struct{}{}:
		default:
			c.count("none: too many are under way")
			continue
		}
		all.Go(func() {
			defer func() { <-turns }()
			c.count(kind.name + ": " + c.once(from, kind.on(c), kind.do, stop))
		})
	}
}

// once connects from an address, given by its last byte, and attacks; it says how that ended.
func (c *crowd) once(from int, address string, do func(a *attacker) error, stop <-chan struct{}) string {
	local := &net.TCPAddr{IP: net.ParseIP(c.from + strconv.Itoa(from))}
	conn, err := (&net.Dialer{LocalAddr: local, Timeout: hold}).Dial("tcp", address)
	if err != nil {
		return noConnection
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(hold))
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-stop:
			_ = conn.SetDeadline(time.Now())
		case <-over:
		}
	}()
	a := &attacker{Conn: conn, in: bufio.NewReader(conn), stop: stop}
	if err := do(a); err != nil {
		if r, ok := err.(refusal); ok {
			return "refused by " + r.Error()
		}
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			return "held to its end"
		}
		return "cut off by the yard"
	}
	return "done"
}

func (c *crowd) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[what]++
}

func (c *crowd) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for what, n := range c.ended {
		lines = append(lines, fmt.Sprintf("  %s: %d", what, n))
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

// attacker is one connection of a hostile client.
type attacker struct {
	net.Conn
	in   *bufio.Reader
	stop <-chan struct{}
}

func onAMQP(c *crowd) string  { return c.amqp }
func onAMQPS(c *crowd) string { return c.amqps }
func onHTTP(c *crowd) string  { return c.http }
func onHTTPS(c *crowd) string { return c.https }

// attack is one kind of them, on one listener.
type attack struct {
	name string
	on   func(*crowd) string
	do   func(a *attacker) error
}

var attacks = []attack{
	{"AMQP, silent", onAMQP, (*attacker).drain},
	{"AMQP, open and silent", onAMQP, func(a *attacker) error {
		if err := a.open(); err != nil {
			return err
		}
		return a.drain()
	}},
	{"AMQP, links without a token", onAMQP, func(a *attacker) error { return a.links("$management") }},
	{"AMQP, links to a hub without a token", onAMQP, func(a *attacker) error { return a.links("orders") }},
	{"AMQP, a message without an end", onAMQP, (*attacker).endlessMessage},
	{"AMQP, noise in frames", onAMQP, (*attacker).noise},
	{"AMQP, a large frame in small parts", onAMQP, func(a *attacker) error {
		return a.slowly(append([]byte("AMQP\x00\x01\x00\x00"), 0, 16, 0, 0, 2, 0, 0, 0))
	}},
	{"AMQPS, no handshake", onAMQPS, (*attacker).drain},
	{"AMQPS, a handshake and an end", onAMQPS, func(a *attacker) error {
		return tls.Client(a, &tls.Config{InsecureSkipVerify: true}).Handshake()
	}},
	{"HTTP, silent", onHTTP, (*attacker).drain},
	{"HTTP, a header in small parts", onHTTP, func(a *attacker) error {
		return a.slowly([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "))
	}},
	{"HTTP, a body in small parts", onHTTP, func(a *attacker) error {
		return a.slowly([]byte("POST /api/v1/hubs/orders/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"))
	}},
	{"HTTP, a head of many fields", onHTTP, func(a *attacker) error {
		if _, err := io.WriteString(a, "GET / HTTP/1.1\r\nHost: localhost\r\n"+manyFields()); err != nil {
			return err
		}
		return a.drain()
	}},
	{"HTTPS, no handshake", onHTTPS, (*attacker).drain},
	{"HTTPS, a head of many fields", onHTTPS, func(a *attacker) error {
		secure := tls.Client(a, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if _, err := io.WriteString(secure, "GET / HTTP/1.1\r\nHost: localhost\r\n"+manyFields()); err != nil {
			return err
		}
		return a.drain()
	}},
	{"HTTP/2, large heads", onHTTPS, func(a *attacker) error { return a.streams(openAPI, 4, 12, false) }},
	{"HTTP/2, a head without an end", onHTTPS, (*attacker).endlessHead},
	{"HTTP/2, many requests", onHTTPS, func(a *attacker) error { return a.streams(openAPI, 1000, 0, false) }},
	{"HTTP/2, requests that are taken back", onHTTPS, func(a *attacker) error { return a.streams(openAPI, 1000, 0, true) }},
	{"HTTP/2, many requests in a record", onHTTPS, func(a *attacker) error { return a.records(1000) }},
	{"HTTP, wrong keys", onHTTP, func(a *attacker) error {
		return a.repeat("GET /api/v1/hubs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Um9vdDp3cm9uZw==\r\n\r\n")
	}},
	{"HTTP, a page again and again", onHTTP, func(a *attacker) error {
		return a.repeat("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}},
	{"console, wrong keys", onHTTP, func(a *attacker) error {
		return a.repeat("POST /console/signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 24\r\n\r\npolicy=ops&key=wrong1234")
	}},
	{"console, a form in small parts", onHTTP, func(a *attacker) error {
		return a.slowly([]byte("POST /console/signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 16000\r\n\r\nkey="))
	}},
	{"console, a form of another kind", onHTTP, func(a *attacker) error {
		return a.repeat("POST /console/signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 63\r\n\r\n" +
			"--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nwrong\r\n--b--")
	}},
	{"console, live pages with a cookie of one's own", onHTTP, func(a *attacker) error {
		return a.repeat("GET /console/live?at=/console/hubs HTTP/1.1\r\nHost: localhost\r\nCookie: eventyard=" + strings.Repeat("A", 43) + "\r\n\r\n")
	}},
	{"console, the page where one signs in", onHTTPS, func(a *attacker) error { return a.streams("/console/signin", 1000, 0, false) }},
	{"console, its style, and none of it taken", onHTTPS, func(a *attacker) error { return a.streams("/console/assets/0/console.css", 1000, 0, false) }},
	{"HTTP, noise", onHTTP, func(a *attacker) error {
		if _, err := fmt.Fprintf(a, "POST /%x?%x HTTP/1.1\r\nHost: localhost\r\n%x: \x00\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", rand.Uint64(), rand.Uint64(), rand.Uint64()); err != nil {
			return err
		}
		return a.drain()
	}},
	{"WebSocket, open and silent", onHTTP, func(a *attacker) error {
		if _, err := io.WriteString(a, "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n"); err != nil {
			return err
		}
		return a.drain()
	}},
}

// secured is the same within TLS.
func (a *attacker) secured() *attacker {
	secure := tls.Client(a, &tls.Config{InsecureSkipVerify: true})
	return &attacker{Conn: secure, in: bufio.NewReader(secure), stop: a.stop}
}

// drain reads until the yard ends it, or there is no more time.
func (a *attacker) drain() error {
	_, err := io.Copy(io.Discard, a.in)
	if err == nil {
		err = io.EOF
	}
	return err
}

// slowly sends a beginning and then a byte now and then.
func (a *attacker) slowly(beginning []byte) error {
	for part := beginning; ; part = []byte{'x'} {
		if _, err := a.Write(part); err != nil {
			return err
		}
		select {
		case <-a.stop:
			return nil
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// repeat sends a request and reads what comes, a hundred times.
func (a *attacker) repeat(request string) error {
	buffer := make([]byte, 4096)
	for range 100 {
		if _, err := io.WriteString(a, request); err != nil {
			return err
		}
		if _, err := a.in.Read(buffer); err != nil {
			return err
		}
		select {
		case <-a.stop:
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (a *attacker) send(t wire.FrameType, performative func(dst []byte) []byte) error {
	dst, frame := wire.BeginFrame(nil, t, 0)
	_, err := a.Write(wire.EndFrame(performative(dst), frame))
	return err
}

// open opens an AMQP connection with a session, anonymously and without waiting for answers.
func (a *attacker) open() error { return a.openBy(&wire.SASLInit{Mechanism: "ANONYMOUS"}) }

func (a *attacker) openBy(init *wire.SASLInit) error {
	if _, err := a.Write(wire.ProtocolSASL[:]); err != nil {
		return err
	}
	if err := a.send(wire.FrameSASL, func(dst []byte) []byte {
		return wire.AppendSASLInit(dst, init)
	}); err != nil {
		return err
	}
	if _, err := a.Write(wire.ProtocolAMQP[:]); err != nil {
		return err
	}
	if err := a.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendOpen(dst, &wire.Open{ContainerID: "hostile", Hostname: wire.Some("localhost")})
	}); err != nil {
		return err
	}
	return a.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendBegin(dst, &wire.Begin{IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30})
	})
}

func (a *attacker) attach(handle uint32, to string) error {
	return a.send(wire.FrameAMQP, func(dst []byte) []byte {
		return wire.AppendAttach(dst, &wire.Attach{Name: fmt.Sprint("link ", handle), Handle: handle, Role: wire.RoleSender,
			Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some(to)}, InitialDeliveryCount: wire.Some(uint32(0))})
	})
}

func (a *attacker) links(to string) error {
	if err := a.open(); err != nil {
		return err
	}
	for handle := range uint32(2000) {
		if err := a.attach(handle, to); err != nil {
			return err
		}
	}
	return a.drain()
}

func (a *attacker) endlessMessage() error {
	if err := a.open(); err != nil {
		return err
	}
	if err := a.attach(0, "$cbs"); err != nil {
		return err
	}
	noise := make([]byte, 32<<10)
	for i := range 1000 {
		err := a.send(wire.FrameAMQP, func(dst []byte) []byte {
			t := &wire.Transfer{Handle: 0, More: true}
			if i == 0 {
				t.DeliveryID, t.DeliveryTag = wire.Some(uint32(0)), []byte{1}
			}
			return append(wire.AppendTransfer(dst, t), noise...)
		})
		if err != nil {
			return err
		}
	}
	return a.drain()
}

// noise opens a connection and then sends what a frame might hold, but wrong.
func (a *attacker) noise() error {
	if err := a.open(); err != nil {
		return err
	}
	for range 100 {
		err := a.send(wire.FrameAMQP, func(dst []byte) []byte {
			for range rand.IntN(60) {
				dst = append(dst, byte(rand.Uint32()))
			}
			return dst
		})
		if err != nil {
			return err
		}
	}
	return a.drain()
}
