package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// In these tests 127.0.0.2 plays the open Internet: it alone is allowed. 127.0.0.1 is our own
// network, and nobody must get there.
var (
	open    = netip.MustParseAddr("127.0.0.2")
	private = netip.MustParseAddr("127.0.0.1")
	onlyIt  = []netip.Prefix{netip.PrefixFrom(open, 32)}
)

// town is the same port at both addresses.
type town struct {
	port    string
	visits  atomic.Int32 // at 127.0.0.2
	breakIn atomic.Int32 // at 127.0.0.1
	handler http.HandlerFunc
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{handler: func(http.ResponseWriter, *http.Request) {}}
	for range 20 { // the other port may be taken
		outside, err := net.Listen("tcp", "127.0.0.2:0")
		testkit.Check(t, err, "127.0.0.2 is not there")
		_, w.port, _ = net.SplitHostPort(outside.Addr().String())
		within, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", w.port))
		if err != nil {
			outside.Close()
			continue
		}
		w.serve(t, outside, func(rw http.ResponseWriter, r *http.Request) { w.visits.Add(1); w.handler(rw, r) })
		w.serve(t, within, func(http.ResponseWriter, *http.Request) { w.breakIn.Add(1) })
		return w
	}
	t.Fatal("no port is free at both addresses")
	return nil
}

func (w *town) serve(t *testing.T, l net.Listener, h http.HandlerFunc) {
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}

// answers is a resolver that gives one set of addresses after another, the last for good.
type answers struct {
	sets  [][]netip.Addr
	asked atomic.Int32
}

func (a *answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n := int(a.asked.Add(1)) - 1
	return a.sets[min(n, len(a.sets)-1)], nil
}

// nameServer is a *net.Resolver that asks a name server of ours, as the real one asks others'.
func nameServer(a *answers) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answerNames(theirs, a)
		return ours, nil
	}}
}

func answerNames(conn net.Conn, a *answers) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := answerName(query, a)
		conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	}
}

func answerName(query []byte, a *answers) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		addrs, _ := a.LookupNetIP(context.Background(), "ip", q.Name.String())
		for _, addr := range addrs {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
				Body:   &dnsmessage.AResource{A: addr.As4()},
			})
		}
	}
	reply, _ := m.Pack()
	return reply
}

// resolvers runs a test with the seam, and with the real resolver and a name server of ours.
func resolvers(t *testing.T, test func(t *testing.T, resolver func(*answers) Config)) {
	t.Run("seam", func(t *testing.T) {
		test(t, func(a *answers) Config { return Config{Allow: onlyIt, Resolver: a} })
	})
	t.Run("name server", func(t *testing.T) {
		test(t, func(a *answers) Config { return Config{Allow: onlyIt, Resolver: nameServer(a)} })
	})
}

// A name that leads out when it is looked at and in when it is used.
func TestANameThatChangesItsMindDoesNotLeadIn(t *testing.T) {
	resolvers(t, func(t *testing.T, config func(*answers) Config) {
		town := newTown(t)
		town.handler = func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") }
		c := newClient(t, config(&answers{sets: [][]netip.Addr{{open}, {private}}}))
		ask := Request{Endpoint: Endpoint{URL: "http://rebind.example:" + town.port + "/"}, Method: "POST"}
		if a := c.Do(t.Context(), ask); a.Status != 200 {
			t.Fatalf("the first request gave %d: %v", a.Status, a.Err)
		}
		a := c.Do(t.Context(), ask)
		if a.Outcome != retry.SocketError || !errors.Is(a.Err, ErrForbidden) {
			t.Errorf("the second gave %s: %v, want ErrForbidden", a.Outcome, a.Err)
		}
		if n := town.breakIn.Load(); n > 0 {
			t.Errorf("%d requests reached our own network", n)
		}
	})
}

func TestOfMixedAnswersOnlyTheOpenAddressIsUsed(t *testing.T) {
	resolvers(t, func(t *testing.T, config func(*answers) Config) {
		for name, addrs := range map[string][]netip.Addr{"private first": {private, open}, "private last": {open, private}} {
			town := newTown(t)
			c := newClient(t, config(&answers{sets: [][]netip.Addr{addrs}}))
			a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://mixed.example:" + town.port + "/"}, Method: "POST"})
			if a.Status != 200 || town.visits.Load() != 1 || town.breakIn.Load() != 0 {
				t.Errorf("%s: status %d (%v), %d visits, %d break-ins", name, a.Status, a.Err, town.visits.Load(), town.breakIn.Load())
			}
		}
	})
}

// The operating system's resolver takes numbers for addresses, others do not.
func TestNamesThatResolveInwardsAreRefusedWhateverTheyLookLike(t *testing.T) {
	town := newTown(t)
	c := newClient(t, Config{Allow: onlyIt, Resolver: &answers{sets: [][]netip.Addr{{private}}}})
	for _, host := range []string{"2130706433", "0x7f000001", "017700000001", "127.1", "localhost", "inner.example", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		route := routeAnyway(t, c, "http://"+host+":"+town.port+"/")
		a := c.Do(t.Context(), Request{Route: route, Method: "POST"})
		if a.Outcome != retry.SocketError || !errors.Is(a.Err, ErrForbidden) {
			t.Errorf("%s gives %s: %v, want ErrForbidden", host, a.Outcome, a.Err)
		}
	}
	if n := town.breakIn.Load(); n > 0 {
		t.Errorf("%d requests reached our own network", n)
	}
}

// routeAnyway makes a route that Check would refuse, to see the guard at work.
func routeAnyway(t *testing.T, c *Client, text string) *Route {
	t.Helper()
	route := testkit.Value(c.Route(Endpoint{URL: "http://stand-in.example/"}))(t)
	r := testkit.Value(http.NewRequest("GET", text, nil))(t)
	route.url = r.URL
	return route
}

func TestAddressesAreCheckedBeforeTheyAreAsked(t *testing.T) {
	c := newClient(t, Config{})
	for _, host := range inside {
		released := false
		a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://" + host + "/"}, Method: "POST", Body: []byte("x"), Release: func() { released = true }})
		if a.Outcome != retry.SocketError || !errors.Is(a.Err, ErrForbidden) || !released {
			t.Errorf("%s gives %s: %v (released: %v), want ErrForbidden", host, a.Outcome, a.Err, released)
		}
	}
}

func TestRedirectsAreAnswersAndNotFollowed(t *testing.T) {
	town := newTown(t)
	town.handler = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:"+town.port+"/", http.StatusTemporaryRedirect)
	}
	c := newClient(t, Config{Allow: onlyIt})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://127.0.0.2:" + town.port + "/"}, Method: "POST", Body: []byte("x")})
	if a.Status != 307 || a.Outcome != retry.GenericError || !strings.HasPrefix(a.Header.Get("Location"), "http://127.0.0.1") {
		t.Errorf("got %d, %s, %v", a.Status, a.Outcome, a.Header)
	}
	if n := town.breakIn.Load(); n > 0 {
		t.Error("the redirect was followed")
	}
}

// Who follows redirects on the guarded transport does not get inside either.
func TestTheTransportForOthersIsGuarded(t *testing.T) {
	town := newTown(t)
	town.handler = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:"+town.port+"/", http.StatusFound)
	}
	c := newClient(t, Config{Allow: onlyIt})
	client := &http.Client{Transport: c.Transport()}
	_, err := client.Get("http://127.0.0.2:" + town.port + "/")
	if !errors.Is(err, ErrForbidden) || town.breakIn.Load() > 0 {
		t.Errorf("got %v and %d break-ins", err, town.breakIn.Load())
	}
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	town := newTown(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+town.port)
	t.Setenv("http_proxy", "http://127.0.0.1:"+town.port)
	c := newClient(t, Config{Allow: onlyIt, Resolver: &answers{sets: [][]netip.Addr{{open}}}})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://there.example:" + town.port + "/"}, Method: "GET"})
	if a.Status != 200 || town.breakIn.Load() > 0 {
		t.Errorf("got %d (%v) and %d requests at the proxy", a.Status, a.Err, town.breakIn.Load())
	}
	// The environment is read only once in a process: an earlier test may have done so.
	if c.Transport().(*sharing).Proxy != nil {
		t.Error("the transport asks for a proxy")
	}
}

func TestANameWithoutAnAddress(t *testing.T) {
	nobody := resolverFunc(func() ([]netip.Addr, error) { return nil, errors.New("no such host") })
	c := newClient(t, Config{Resolver: nobody})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://nowhere.example/?code=SECRET"}, Method: "POST"})
	if a.Outcome != retry.ResolutionError || a.Err == nil || strings.Contains(a.Err.Error(), "SECRET") {
		t.Errorf("got %s: %v", a.Outcome, a.Err)
	}
}

// A name server that does not answer must not hold a request longer than its own time.
func TestResolvingIsWithinTheRequestsTime(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	c := newClient(t, Config{Resolver: resolverFunc(func() ([]netip.Addr, error) { <-stuck; return nil, errors.New("late") })})
	a := c.Do(t.Context(), Request{Endpoint: Endpoint{URL: "http://slow.example/"}, Method: "POST", Timeout: 20 * time.Millisecond})
	testkit.Equal(t, a.Outcome, retry.TimedOut, "got: %v", a.Err)
}

type resolverFunc func() ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return f() }
