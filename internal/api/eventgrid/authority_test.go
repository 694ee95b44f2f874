package eventgrid

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1, G12: over HTTP/2 a client writes what it likes into :authority, also a path and a query. A
// token for publishing receives nothing for that, and one for receiving publishes nothing.
func TestTokensAreJudgedByTheRoute(t *testing.T) {
	y := newYard(t)
	server := httptest.NewUnstartedServer(frame.New(frame.Config{Log: y.errors.Logger}, y.handler.API())) // not on loopback only
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	at := "https://" + host
	toPublish, toPull := at+"/topics/clouds/api/events", at+"/topics/clouds/eventsubscriptions/jobs"
	const publish, acknowledge = "/topics/clouds/api/events", jobs + ":acknowledge"
	for _, test := range []struct {
		what, authority, path, resource string
		want                            int
	}{
		{"publishing", host, publish, toPublish, 200},
		{"receiving", host, acknowledge, toPull, 200},
		{"to receive, with a token for publishing", host, acknowledge, toPublish, 401},
		{"to publish, with a token for receiving", host, publish, toPull, 401},
		{"to receive, by an authority that names publishing", host + "/topics/clouds/api/events?", acknowledge, toPublish, 400},
		{"to publish, by an authority that names receiving", host + "/topics/clouds/eventsubscriptions/jobs?", publish, toPull, 400},
		{"by an authority with a fragment", host + "/topics/clouds/api/events#", acknowledge, toPublish, 400},
	} {
		t.Run(test.what, func(t *testing.T) {
			body, kind := `{"lockTokens":["a"]}`, "application/json"
			if test.path == publish {
				body, kind = "[]", "application/cloudevents-batch+json"
			}
			got := askRaw(t, host, [][2]string{
				{":method", "POST"}, {":scheme", "https"}, {":authority", test.authority}, {":path", test.path},
				{"content-type", kind}, {"aeg-sas-token", signed(t, test.resource, key1, time.Hour)},
			}, body)
			testkit.Equal(t, got, test.want)
		})
	}
	if seen := y.pull.seen(); strings.Count(seen, "settle") != 1 {
		t.Errorf("done was %s", seen)
	}
}

// askRaw sends one request over HTTP/2 as it is given, which no client of Go does, and gives the
// status of the answer.
func askRaw(t *testing.T, address string, header [][2]string, body string) (status int) {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	testkit.Must(t, testkit.Err(conn.Write([]byte(http2.ClientPreface))))
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	testkit.Must(t, framer.WriteSettings())
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range header {
		testkit.Must(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	testkit.Must(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}))
	testkit.Must(t, framer.WriteData(1, true, []byte(body)))
	for {
		read, err := framer.ReadFrame()
		testkit.Must(t, err)
		switch f := read.(type) {
		case *http2.MetaHeadersFrame:
			status, err = strconv.Atoi(f.PseudoValue("status"))
			testkit.Must(t, err)
			return status
		case *http2.RSTStreamFrame:
			t.Fatalf("the stream was reset: %v", f.ErrCode)
		case *http2.GoAwayFrame:
			t.Fatalf("the connection was ended: %v", f.ErrCode)
		}
	}
}

// R1: who shows nothing good learns of no name whether it is a topic's.
func TestTopicsCannotBeProbed(t *testing.T) {
	y := newYard(t)
	y.topics.confirm = topics.ErrToken
	here := y.server.URL
	paths := []struct{ method, path, body string }{ // those without a name have it in their host

		{"POST", "/topics/NAME/api/events", "[]"}, {"POST", "/topics/NAME/events", "[]"}, {"POST", "/topics/NAME:publish", "[]"},
		{"OPTIONS", "/topics/NAME/api/events", ""}, {"GET", "/topics/NAME/api/events", ""}, {"HEAD", "/topics/NAME/api/events", ""},
		{"POST", "/topics/NAME/eventsubscriptions/jobs:receive", ""}, {"POST", "/topics/NAME/eventsubscriptions/jobs:acknowledge", `{"lockTokens":["a"]}`},
		{"GET", "/topics/NAME", ""}, {"POST", "/topics/NAME/listKeys", ""}, {"GET", "/topics/NAME/validate?id=x&token=y", ""},
		{"POST", "/?api-version=2018-01-01", "[]"}, {"POST", "/api/events", "[]"}, {"OPTIONS", "/", ""}, {"OPTIONS", "/api/events", ""},
	}
	byHost := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Host = name + ".localhost" }
	}
	y.ask("POST", "/api/events", "[]", byHost("clouds"), withKey, contentType("application/cloudevents-batch+json")).want(http.StatusOK)
	for what, shows := range map[string]func(string) (name, value string){
		"nothing":                    func(string) (string, string) { return "X-Nothing", "" },
		"a wrong key":                func(string) (string, string) { return "aeg-sas-key", "wrong" },
		"an empty key":               func(string) (string, string) { return "aeg-sas-key", "" },
		"a wrong key of a namespace": func(string) (string, string) { return "Authorization", "SharedAccessKey wrong" },
		"a token that is none":       func(string) (string, string) { return "aeg-sas-token", "wrong" },
		"a token by a wrong key": func(name string) (string, string) {
			return "aeg-sas-token", signed(t, here+"/topics/"+name, key2+"x", time.Hour)
		},
		"a token for its host by a wrong key": func(name string) (string, string) {
			return "aeg-sas-token", signed(t, "http://"+name+".localhost/", key2+"x", time.Hour)
		},
		"a token of yesterday by a wrong key": func(name string) (string, string) {
			return "aeg-sas-token", signed(t, here+"/topics/"+name, key2+"x", -time.Hour)
		},
		"a wrong policy":     func(string) (string, string) { return "Authorization", "Basic d2hvOndoYXQ=" },
		"a wrong signature":  func(string) (string, string) { return "Authorization", "SharedAccessSignature sr=a&sig=b&se=1&skn=c" },
		"an unknown scheme":  func(string) (string, string) { return "Authorization", "Digest x" },
		"a bearer, and none": func(string) (string, string) { return "Authorization", "Bearer" },
	} {
		t.Run(what, func(t *testing.T) {
			for _, path := range paths {
				answers := map[string]string{}
				for _, name := range []string{"orders", "clouds", "closed", "nowhere"} {
					field, value := shows(name)
					changes := []func(*http.Request){header(field, value)}
					if !strings.Contains(path.path, "NAME") {
						changes = append(changes, byHost(name))
					}
					got := y.in(t).ask(path.method, strings.Replace(path.path, "NAME", name, 1), path.body, changes...)
					got.Header.Del("Date")
					got.Header.Del("X-Ms-Request-Id")
					got.Header.Del("Content-Length") // of a text that has the name in it
					var heard bytes.Buffer
					testkit.Must(t, got.Header.Write(&heard))
					answers[name] = strings.ReplaceAll(got.Status+"\n"+heard.String()+got.text, name, "NAME")
				}
				for name, text := range answers {
					testkit.Equal(t, text, answers["nowhere"], "%s %s of %s", path.method, path.path, name)
				}
			}
		})
	}
}
