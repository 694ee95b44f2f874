package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// dial gives a client of a yard that is played by a handler.
func dial(t *testing.T, yard http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(yard)
	t.Cleanup(server.Close)
	client, err := New(Config{Server: server.URL, Pause: time.Millisecond})
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	return client
}

func TestRequestsAreWhatTheAPITakes(t *testing.T) {
	four, age, bytes := 4, "24h0m0s", int64(1<<30)
	for name, test := range map[string]struct {
		do           func(*Client, context.Context) error
		method, path string
		body         string
	}{
		"list hubs": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.Hubs(ctx); return err },
			method: "GET", path: "/api/v1/hubs",
		},
		"a hub's name is one segment of the path": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.Hub(ctx, "a/b c%"); return err },
			method: "GET", path: "/api/v1/hubs/a%2Fb%20c%25",
		},
		"create a hub": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.CreateHub(ctx, HubRequest{Name: "h", Partitions: &four, Retention: &RetentionRequest{Age: &age, Bytes: &bytes}})
				return err
			},
			method: "POST", path: "/api/v1/hubs",
			body: `{"name":"h","partitions":4,"retention":{"age":"24h0m0s","bytes":1073741824}}`,
		},
		"create a hub as usual": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.CreateHub(ctx, HubRequest{Name: "h"})
				return err
			},
			method: "POST", path: "/api/v1/hubs", body: `{"name":"h"}`,
		},
		"change a hub": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.UpdateHub(ctx, "h", HubRequest{Retention: &RetentionRequest{Bytes: &bytes}})
				return err
			},
			method: "PATCH", path: "/api/v1/hubs/h", body: `{"retention":{"bytes":1073741824}}`,
		},
		"delete a hub": {
			do:     func(c *Client, ctx context.Context) error { return c.DeleteHub(ctx, "h") },
			method: "DELETE", path: "/api/v1/hubs/h",
		},
		"list partitions": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.Partitions(ctx, "h"); return err },
			method: "GET", path: "/api/v1/hubs/h/partitions",
		},
		"list groups": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.Groups(ctx, "h"); return err },
			method: "GET", path: "/api/v1/hubs/h/groups",
		},
		"create a group": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.CreateGroup(ctx, "h", "g"); return err },
			method: "POST", path: "/api/v1/hubs/h/groups", body: `{"name":"g"}`,
		},
		"delete a group": {
			do:     func(c *Client, ctx context.Context) error { return c.DeleteGroup(ctx, "h", "$Default") },
			method: "DELETE", path: "/api/v1/hubs/h/groups/$Default",
		},
		"list the namespace's policies": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.Policies(ctx, ""); return err },
			method: "GET", path: "/api/v1/policies",
		},
		"show a hub's policy": {
			do:     func(c *Client, ctx context.Context) error { _, err := c.Policy(ctx, "a/b", "p"); return err },
			method: "GET", path: "/api/v1/hubs/a%2Fb/policies/p",
		},
		"create a policy": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.CreatePolicy(ctx, "h", PolicyRequest{Name: "p", Rights: []string{"Send"}, PrimaryKey: "k"})
				return err
			},
			method: "POST", path: "/api/v1/hubs/h/policies", body: `{"name":"p","rights":["Send"],"primaryKey":"k"}`,
		},
		"make a key anew": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.RegeneratePolicy(ctx, "", "p", "secondary")
				return err
			},
			method: "POST", path: "/api/v1/policies/p/regenerate", body: `{"key":"secondary"}`,
		},
		"delete a policy": {
			do:     func(c *Client, ctx context.Context) error { return c.DeletePolicy(ctx, "h", "p") },
			method: "DELETE", path: "/api/v1/hubs/h/policies/p",
		},
		"the usual connection string": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.ConnectionString(ctx, ConnectionStringQuery{})
				return err
			},
			method: "GET", path: "/api/v1/connection-string",
		},
		"a connection string": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.ConnectionString(ctx, ConnectionStringQuery{Hub: "a/b", Policy: "p", Key: "secondary", TLS: new(bool)})
				return err
			},
			method: "GET", path: "/api/v1/connection-string?hub=a%2Fb&key=secondary&policy=p&tls=false",
		},
		"send to the next partition": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.Send(ctx, "h", Batch{Events: []json.RawMessage{[]byte(`{"body":"a"}`), []byte(`{"body":"b"}`)}})
				return err
			},
			method: "POST", path: "/api/v1/hubs/h/events", body: `{"events":[{"body":"a"},{"body":"b"}]}`,
		},
		"send by key": {
			do: func(c *Client, ctx context.Context) error {
				_, err := c.Send(ctx, "h", Batch{Events: []json.RawMessage{[]byte(`{}`)}, Key: `a"b`})
				return err
			},
			method: "POST", path: "/api/v1/hubs/h/events", body: `{"events":[{}],"key":"a\"b"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var method, path, body string
			client := dial(t, func(w http.ResponseWriter, r *http.Request) {
				all, _ := io.ReadAll(r.Body)
				method, path, body = r.Method, r.RequestURI, string(all)
				_, _ = w.Write([]byte("{}"))
			})
			testkit.Must(t, test.do(client, t.Context()))
			if method != test.method || path != test.path || body != test.body {
				t.Errorf("asked %s %s %s\nwant  %s %s %s", method, path, body, test.method, test.path, test.body)
			}
		})
	}
}

func TestAProblemComesWithWhatToTry(t *testing.T) {
	client := dial(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"type":"urn:eventyard:problem:hub-exists","title":"T","status":409,"detail":"D","next":"N"}`))
	})
	_, err := client.CreateHub(t.Context(), HubRequest{Name: "h"})
	var p *Problem
	if !errors.As(err, &p) || p.Kind() != "hub-exists" || p.Next != "N" || p.Error() != "D" || p.Status != 409 {
		t.Errorf("error is %#v", err)
	}
}

func TestAnswersOfOtherServersAreStrangerErrors(t *testing.T) {
	for name, yard := range map[string]http.HandlerFunc{
		"a page in place of JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"a foreign error":         func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) },
		"another API":             func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"name":"other"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dial(t, yard).Info(t.Context())
			var stranger *StrangerError
			if !errors.As(err, &stranger) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	address := "http://" + listener.Addr().String()
	listener.Close()
	client, err := New(Config{Server: address})
	testkit.Must(t, err)
	_, err = client.Hubs(t.Context())
	var lost *UnreachableError
	if !errors.As(err, &lost) || !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), address) {
		t.Errorf("error is %v", err)
	}
}

func TestAnAddressIsAServer(t *testing.T) {
	for _, address := range []string{"localhost:8080", "127.0.0.1:1", "[::1]:8080"} {
		client, err := New(Config{Server: address})
		if err != nil || client.Server() != "http://"+address {
			t.Errorf("%q gives %v, %v", address, client, err)
		}
	}
}

func TestServersThatAreNone(t *testing.T) {
	for _, server := range []string{"localhost", "localhost:http", ":8080", "ftp://x", "http://", "%"} {
		if _, err := New(Config{Server: server}); err == nil {
			t.Errorf("%q is taken", server)
		}
	}
	if client, err := New(Config{}); err != nil || client.Server() != DefaultServer {
		t.Errorf("the zero configuration gives %v, %v", client, err)
	}
}

// H3: what is sent is what is stored, whatever the bytes.
func TestBodiesAreEncodedSoThatTheyComeBack(t *testing.T) {
	for name, test := range map[string]struct{ event, want string }{
		"text":            {"hello", `{"body":"hello"}`},
		"nothing":         {"", `{"body":""}`},
		"quotes":          {`say "hi"`, `{"body":"say \"hi\""}`},
		"no valid text":   {"\xff\x00", `{"bodyBase64":"/wA="}`},
		"mostly controls": {strings.Repeat("\x01", 300), `{"bodyBase64":"` + strings.Repeat("AQEB", 100) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Event{Body: []byte(test.event)}.Encode()
			if err != nil || string(got) != test.want {
				t.Errorf("encoded as %s, %v", got, err)
			}
		})
	}
	got, err := Event{Body: []byte("x"), ContentType: "text/plain", Properties: map[string]any{"a": "b"}}.Encode()
	if want := `{"body":"x","contentType":"text/plain","properties":{"a":"b"}}`; err != nil || string(got) != want {
		t.Errorf("encoded as %s, %v", got, err)
	}
}

func collect(seq func(func(json.RawMessage, error) bool)) (events []string, err error) {
	for event, e := range seq {
		if e != nil {
			return events, e
		}
		events = append(events, string(event))
	}
	return events, nil
}
