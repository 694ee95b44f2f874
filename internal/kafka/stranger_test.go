package kafka

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// R2: before a client has shown who it is requests are small, though large enough for any token.
func TestStrangersHaveSmallRequests(t *testing.T) {
	f := serve(t, &handler{}, asked)
	c := f.client()
	c.handshake(mechanismPlain, 1)
	testkit.Equal(t, c.show(string(make([]byte, strangerRequestBytes-100)), 2).ErrorCode, codeAuthenticationFailed)

	c = f.client()
	c.write(binary.BigEndian.AppendUint32(nil, strangerRequestBytes+1))
	c.gone()
	testkit.Eventually(t, "counted", func() bool { return f.refused(reasonSize) == 1 })

	c = f.client()
	c.plainly("alice", "alice's password")
	r := produceOf(9, make([]byte, 2*strangerRequestBytes))
	ask[*kmsg.ProduceResponse](c, r)
}

// R2: a stranger that asks without end is cut off; a client is not.
func TestStrangersSendLittleInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &handler{}, asked)
		long := kmsg.NewPtrApiVersionsRequest()
		long.Version, long.ClientSoftwareName = 3, string(make([]byte, 60_000))
		times := strangerBytes/60_000 + 1
		c := f.client()
		for range times - 1 {
			ask[*kmsg.ApiVersionsResponse](c, long)
		}
		c.send(long)
		c.gone()
		testkit.Eventually(t, "counted", func() bool { return f.refused(reasonStranger) == 1 })

		c = f.client()
		c.plainly("alice", "alice's password")
		for range times + 1 {
			ask[*kmsg.ApiVersionsResponse](c, long)
		}
	})
}

// R2: a small request counts for what its answer costs, and not for the few bytes that it has.
func TestSmallRequestsOfStrangersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &handler{}, asked, func(c *Config) { c.AuthTimeout = time.Hour })
		c := f.client()
		for range strangerBytes / strangerRequestCost {
			ask[*kmsg.ApiVersionsResponse](c, request(keyApiVersions, 0))
		}
		c.send(request(keyApiVersions, 0))
		c.gone()
		testkit.Equal(t, f.refused(reasonStranger), 1)
	})
}

// R2: a stranger is read from some hundred times a second at most, and has as many requests answered, also where they
// come together. A client does not wait.
func TestStrangersAreReadAtLeisure(t *testing.T) {
	const requests = 1000
	for _, test := range []struct {
		name              string
		strange, together bool
		rests             int
	}{
		{"a stranger, one request at a time", true, false, requests - strangerReads},
		{"a stranger, all requests at once", true, true, requests - strangerReads},
		{"a client", false, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serve(t, &handler{}, asked).client()
				if !test.strange {
					c.plainly("alice", "alice's password")
				}
				r := request(keyApiVersions, 0)
				began := time.Now()
				if test.together {
					var all []byte
					for range requests {
						all = append(all, c.encode(r)...)
					}
					go c.write(all)
				}
				for range requests {
					if !test.together {
						c.send(r)
					}
					c.answer(r)
				}
				took, want := time.Since(began), time.Duration(test.rests)*strangerRest
				if test.together { // some of them are cut in two by the end of a buffer, and read twice
					testkit.That(t, took >= want && took < want+10*strangerRest, "it took %v, want %v and little more", took, want)
				} else {
					testkit.Equal(t, took, want)
				}
			})
		})
	}
}

// R2: what strangers have begun to send is bounded, of one address and of all.
func TestMemoryOfStrangers(t *testing.T) {
	ledger := admission.New(admission.Limits{StrangerBytes: 100_000, AddressBytes: 100_000})
	f := serve(t, &handler{}, asked, func(c *Config) { c.Admission = ledger.Listener(10) })
	long := kmsg.NewPtrApiVersionsRequest()
	long.Version, long.ClientSoftwareName = 3, string(make([]byte, 60_000))
	first, second := f.client(), f.client()
	first.write(first.encode(long)[:10_000]) // so much is read only when it was claimed
	second.write(second.encode(long))
	second.gone()
	testkit.Equal(t, f.refused(reasonStranger), 1)
	first.nc.Close()
	testkit.Eventually(t, "it is given back", func() bool { return len(f.server.Connections()) == 0 })
	ask[*kmsg.ApiVersionsResponse](f.client(), long)
}

// R2: who does not show who it is in time is cut off, whatever it does meanwhile.
func TestStrangersHaveLittleTime(t *testing.T) {
	for name, do := range map[string]func(c *client){
		"nothing":        func(*client) {},
		"half a request": func(c *client) { c.write([]byte{0, 0, 0, 100, 0, 18}) },
		"a handshake":    func(c *client) { c.handshake(mechanismPlain, 1) },
		"many questions": func(c *client) {
			for range 9 {
				c.lives()
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, &handler{}, asked)
				began := time.Now()
				c := f.client()
				do(c)
				c.gone()
				testkit.Equal(t, time.Since(began), 10*time.Second)
				testkit.Equal(t, f.refused(reasonAuthTimeout), 1)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &handler{}, asked)
		c := f.client()
		c.plainly("alice", "alice's password")
		time.Sleep(time.Minute)
		c.works()
	})
}

// R2: where strangers have all permits, one of the address that has most makes room.
func TestStrangersMakeRoom(t *testing.T) {
	ledger := admission.New(admission.Limits{Strangers: 2})
	f := serve(t, &handler{}, asked, func(c *Config) { c.Admission = ledger.Listener(10) })
	from := func(ip string) *client {
		near, far := net.Pipe()
		f.serveConn(addressed{far, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}})
		c := newClient(t, near)
		c.lives()
		return c
	}
	first, second := from("10.0.0.1"), from("10.0.0.1")
	newcomer := from("10.0.0.2")
	second.gone()
	testkit.Equal(t, first.plainly("alice", "alice's password").ErrorCode, 0)
	testkit.Equal(t, newcomer.plainly("alice", "alice's password").ErrorCode, 0)
	from("10.0.0.3").lives()
	first.works()
}

// R2: whatever a stranger does, and however often, operators' logs do not grow by it.
func TestStrangersFillNoLog(t *testing.T) {
	var log bytes.Buffer
	f := serve(t, &handler{}, asked, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	for name, act := range map[string]func(c *client){
		"a wrong password":        func(c *client) { c.handshake(mechanismPlain, 1); c.show("\x00alice\x00wrong", 2) },
		"a wrong proof":           func(c *client) { c.proving("SCRAM-SHA-256", "alice", "wrong") },
		"a token that is none":    func(c *client) { c.handshake(mechanismBearer, 1); c.show("x", 2) },
		"a mechanism that is not": func(c *client) { c.handshake("GSSAPI", 1) },
		"a token without a word":  func(c *client) { c.show("x", 2) },
		"a request":               func(c *client) { c.send(request(3, 9)) },
		"another protocol":        func(c *client) { c.write([]byte("GET / HTTP/1.1\r\n")) },
	} {
		c := f.client()
		act(c)
		c.gone()
		testkit.Equal(t, log.String(), "", "log after %s", name)
	}
}
