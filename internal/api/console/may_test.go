package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/sessions"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sessionsOf is somebody who has signed in with a grant.
type sessionsOf struct {
	noSessions
	grant auth.Grant
}

func (s sessionsOf) Find(context.Context, string) (sessions.Session, error) {
	return sessions.Session{Grant: s.grant, Ends: noon.Add(time.Hour)}, nil
}

// signedInWith has everybody who comes with a cookie hold rights to the namespace, or to what is at a path.
func signedInWith(c *Console, path string, rights auth.Rights) {
	grant := auth.Grant{Holder: "gateway", Scopes: []auth.Scope{{Path: path, Rights: rights}}}
	c.cfg.Access, c.cfg.Sessions = openAccess{}, sessionsOf{grant: grant.While(func(auth.Scope) bool { return true })}
}

func getSignedIn(h http.Handler, path string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	r.AddCookie(&http.Cookie{Name: "eventyard", Value: "token"})
	h.ServeHTTP(w, r)
	return w
}

// seenByMany are the pages that one may look at with less than Manage.
var seenByMany = []string{"", "more", "hubs", "hubs/sensors", "hubs/sensors/connect", "hubs/sensors/events", "hubs/sensors/partitions/0/events/41", "hubs/sensors/groups", "hubs/sensors/groups/aggregator"}

// V3, V4: no page offers a form that the API would refuse to whoever looks at it, by what the API says that each
// of its calls needs; who may do everything is offered all of them, and who may not is told what it takes.
func TestOnlyWhatOneMayDoIsOffered(t *testing.T) {
	needs := apiNeeds(t)
	offered := map[string][]string{}
	for name, tt := range map[string]struct {
		path   string
		rights auth.Rights
	}{
		"Listen": {"", auth.Listen}, "Send": {"", auth.Send}, "both": {"", auth.Send | auth.Listen}, "Manage": {"", auth.Manage},
		"Manage of a hub": {"sensors", auth.Manage}, "Listen to a hub": {"sensors", auth.Listen},
	} {
		c, _, h := newFixture(fixed())
		signedInWith(c, tt.path, tt.rights)
		for _, path := range seenByMany {
			for _, to := range linksOf(t, getSignedIn(h, base+path).Body.String(), base+path) {
				rt := c.find(httptest.NewRecorder(), httptest.NewRequest(to.method, to.address, nil))
				at := slices.IndexFunc(allActions(), func(a *action) bool { return slices.Contains(sourced(a.path), rt.path) })
				if at < 0 {
					continue
				}
				a := allActions()[at]
				offered[name] = append(offered[name], a.path)
				for _, call := range a.calls {
					testkit.That(t, enoughFor(needs[call], tt.path == "", tt.rights), "with %s, %s offers %s %s, which takes %s", name, base+path, to.method, to.address, needs[call])
				}
			}
		}
	}
	for _, a := range []*action{&createHub, &changeHub, &deleteHub, &sendEvent, &sendAgain, &createGroup, &deleteGroup, &moveCheckpoints, &releasePartition, &forgetInstance} {
		testkit.That(t, slices.Contains(offered["Manage"], a.path), "who may do everything is not offered %s", a.path)
		testkit.Equal(t, slices.Contains(offered["Manage of a hub"], a.path), a != &createHub, "for who manages a hub, "+a.path)
		testkit.Equal(t, slices.Contains(offered["both"], a.path), a == &sendEvent || a == &sendAgain, "for who may send and listen, "+a.path)
	}
	testkit.Equal(t, len(offered["Listen to a hub"]), 0, "forms for who may listen alone")
}

// Who has less than Manage is told what it takes, and led to no page that would be refused.
func TestWhatIsNotOfferedIsSaid(t *testing.T) {
	c, _, h := newFixture(fixed())
	signedInWith(c, "", auth.Listen)
	page := getSignedIn(h, base+"hubs/sensors").Body.String()
	testkit.That(t, strings.Contains(page, "To send takes Send, and to change the hub Manage."), "the hub's page does not say what it takes")
	testkit.That(t, strings.Contains(getSignedIn(h, base+"hubs").Body.String(), "To create one takes Manage"), "the list of hubs does not say what it takes")
	for _, link := range []string{"topics", "functions", "events", "activity", "access", "storage"} {
		testkit.That(t, !strings.Contains(page, `href="`+at(link)+`"`), "it leads to %s", link)
	}
	signedInWith(c, "", auth.Manage)
	testkit.That(t, !strings.Contains(getSignedIn(h, base+"hubs/sensors").Body.String(), "To send takes"), "it says what it takes to who has it")
}

// enoughFor tells whether rights, to the namespace or to a hub alone, are what a call needs.
func enoughFor(needs string, whole bool, rights auth.Rights) bool {
	names, of, _ := strings.Cut(needs, " to the ")
	if of == "namespace" && !whole {
		return false
	}
	return slices.ContainsFunc(strings.Split(names, " or "), func(name string) bool {
		right, err := auth.ParseRights([]string{name})
		return err == nil && rights.Has(right)
	})
}

// apiNeeds are what calls of the API need, as its description says.
func apiNeeds(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "v1", "openapi.json"))
	testkit.Must(t, err)
	var description struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	testkit.Must(t, json.Unmarshal(text, &description))
	needs := map[string]string{}
	for path, methods := range description.Paths {
		for method, text := range methods {
			var operation struct {
				Needs string `json:"x-needs"`
			}
			if json.Unmarshal(text, &operation) == nil { // parameters of the path are none
				needs[strings.ToUpper(method)+" "+path] = operation.Needs
			}
		}
	}
	return needs
}
