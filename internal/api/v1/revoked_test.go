package v1

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
)

// renew deletes a hub and makes it anew.
func (y *yard) renew(name string) {
	y.t.Helper()
	time.Sleep(time.Millisecond) // by which the two are told apart
	testkit.Must(y.t, y.broker.DeleteHub(y.t.Context(), name))
	y.hub(name, 1)
}

// signedBy is a signature of a policy, for a path.
func signedBy(p access.Policy, path string) string {
	return auth.Sign("http://localhost/"+path, p.Name, p.Primary, time.Now().Add(time.Hour))
}

// H9: a tail ends with the policy or the key it stands on, and no other tail does.
func TestTailEndsWhenItsPolicyDoes(t *testing.T) {
	for what, change := range map[string]func(y *yard, p access.Policy){
		"the policy is deleted": func(y *yard, p access.Policy) {
			y.want(204, "DELETE", "/api/v1/hubs/orders/policies/"+p.Name, nil)
		},
		"the key is made anew": func(y *yard, p access.Policy) {
			y.want(200, "POST", "/api/v1/hubs/orders/policies/"+p.Name+"/regenerate", `{"key":"primary"}`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.hub("orders", 1)
				ours, theirs := y.policy("orders", "ours", auth.Listen), y.policy("orders", "theirs", auth.Listen)
				y.send("orders", "0", "a")
				var ending []*follower
				for _, authorization := range []string{basic(ours.Name, ours.Primary), signedBy(ours, "orders")} {
					f := y.as(authorization).follow(t, "/api/v1/hubs/orders/events")
					f.event()
					ending = append(ending, f)
				}
				other := y.as(basic(theirs.Name, theirs.Primary)).follow(t, "/api/v1/hubs/orders/events")
				other.event()
				began := time.Now()
				change(y, ours)
				for _, f := range ending {
					if end := f.end(); end.Reason != "revoked" || end.Resume != "0:1" || !strings.Contains(end.Detail, "revoked") {
						t.Errorf("ended with %+v", end)
					}
				}
				testkit.Equal(t, time.Since(began), 0, "it took")
				y.send("orders", "0", "b")
				if e := other.event(); e.text() != "b" {
					t.Errorf("the other got %+v", e)
				}
			})
		})
	}
}

// H9: a long poll ends with its policy, empty-handed; the next one is refused.
func TestLongPollEndsWhenItsPolicyDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		p := y.policy("", "p", auth.Listen)
		began := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			testkit.Must(t, y.registry.Delete(t.Context(), "", "p"))
		}()
		client := y.as(basic(p.Name, p.Primary))
		if page := client.page("orders", "0", "wait=1m"); len(page.Events) != 0 || time.Since(began) != 10*time.Second {
			t.Errorf("read %+v after %v", page, time.Since(began))
		}
		client.refused(http.StatusUnauthorized, "invalid-signature", "GET", "/api/v1/hubs/orders/partitions/0/events?wait=1m", nil)
	})
}

// H9: a hub that was made anew between letting a request in and reading is not read.
func TestAReaderIsNotLedIntoANewHub(t *testing.T) {
	for _, path := range []string{
		"/api/v1/hubs/orders/partitions/0/events", "/api/v1/hubs/orders/events?follow=true", "/api/v1/hubs/orders/events",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var y *yard
				renewed := false
				y = newYard(t, func(c *Config) {
					c.Broker = watched{Broker: c.Broker.(*broker.Broker), before: func(string) {
						if !renewed {
							renewed = true
							y.renew("orders")
							y.send("orders", "0", "secret")
						}
					}}
				})
				y.hub("orders", 1)
				resp := y.as(signed("orders", time.Hour)).open(t.Context(), "GET", path, nil)
				defer resp.Body.Close()
				all, _ := io.ReadAll(resp.Body)
				if strings.Contains(string(all), "secret") || !renewed {
					t.Errorf("answered %d %s", resp.StatusCode, all)
				}
			})
		})
	}
}

// H9: who takes his time over the body of a request does not get in by what was taken
// back meanwhile, nor into a hub that was made meanwhile.
func TestSlowBodies(t *testing.T) {
	ended := func(y *yard) { testkit.Must(y.t, y.registry.Delete(y.t.Context(), "orders", "p")) }
	renewed := func(y *yard) { y.renew("orders") }
	for _, tt := range []struct {
		what, method, path string
		body               [2]string
		meanwhile          func(*yard)
	}{
		{"a send, its policy deleted", "POST", "/api/v1/hubs/orders/events", [2]string{`[{"body":`, `"x"}]`}, ended},
		{"a send, its hub made anew", "POST", "/api/v1/hubs/orders/events", [2]string{`[{"body":`, `"x"}]`}, renewed},
		{"a REST send, its policy deleted", "POST", "/orders/messages", [2]string{"he", "llo"}, ended},
		{"a REST send, its hub made anew", "POST", "/orders/messages", [2]string{"he", "llo"}, renewed},
		{"a policy, by one deleted", "POST", "/api/v1/hubs/orders/policies", [2]string{`{"name":"q",`, `"rights":["Manage"]}`}, ended},
		{"a policy, for a hub made anew", "POST", "/api/v1/hubs/orders/policies", [2]string{`{"name":"q",`, `"rights":["Manage"]}`}, renewed},
		{"a group, by one deleted", "POST", "/api/v1/hubs/orders/groups", [2]string{`{"name":`, `"g"}`}, ended},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.hub("orders", 1)
				p := y.policy("orders", "p", auth.Manage)
				resp := y.as(basic(p.Name, p.Primary)).slowly(tt.method, tt.path, tt.body, func() { tt.meanwhile(y) })
				if text := resp.Body.String(); resp.Code != 401 || !strings.Contains(strings.ToLower(text), "revoked") {
					t.Errorf("answered %d %s", resp.Code, text)
				}
				if asked := resp.Header().Values("Www-Authenticate"); len(asked) != len(frame.Challenges) {
					t.Errorf("it asks for %q", asked)
				}
				policies, err := y.registry.Policies("orders")
				testkit.Must(t, err)
				for _, p := range policies {
					if p.Name == "q" {
						t.Error("the policy was made")
					}
				}
				if groups, _ := y.broker.Groups(t.Context(), "orders"); len(y.stored("orders", "0")) != 0 || len(groups) != 1 {
					t.Errorf("something was stored, or made: %v", groups)
				}
			})
		})
	}
}

// A token that expires while a request is under way was good when that began.
func TestABodyMayOutlastItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		resp := y.as(signed("orders", time.Minute)).slowly("POST", "/orders/messages", [2]string{"he", "llo"}, func() { time.Sleep(time.Hour) })
		testkit.Equal(t, resp.Code, 201, "answered: %s", resp.Body)
	})
}

// slowly sends a request whose body comes in two parts, with something between them.
func (y *yard) slowly(method, path string, body [2]string, meanwhile func()) *httptest.ResponseRecorder {
	reader, writer := io.Pipe()
	go func() {
		_, _ = writer.Write([]byte(body[0])) // it was let in, and is being read
		meanwhile()
		_, _ = writer.Write([]byte(body[1]))
		_ = writer.Close()
	}()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(y.t.Context(), method, path, reader)
	r.Header.Set("Authorization", y.authorization)
	r.Header.Set("Content-Type", "application/json")
	y.frame.ServeHTTP(w, r)
	return w
}
