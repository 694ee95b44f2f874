package v1

import (
	"net/http"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: the blob account's keys are shown and replaced, and the root policy's turned off, by who
// manages the namespace.
func TestBlobAccount(t *testing.T) {
	y := newYard(t, func(c *Config) {
		c.BlobEndpoint = func(_ *http.Request, tls bool) string {
			return map[bool]string{false: "http://localhost:8080/blob/eventyard"}[tls]
		}
		c.SignContainer = func(key, container, permissions string, expires time.Time) (string, error) {
			return container + "&" + permissions + "&" + time.Until(expires).Round(time.Hour).String() + "&" + key, nil
		}
	})
	made := y.registry.Account()
	const path = "/api/v1/blob-account"
	shown := read[admin.BlobAccount](t, y.want(200, "GET", path, nil))
	testkit.Diff(t, admin.BlobAccount{
		Name: "eventyard", Endpoint: "http://localhost:8080/blob/eventyard", Created: admin.Time{Time: made.Created},
		PrimaryKey: made.Primary, SecondaryKey: made.Secondary,
	}, shown)
	renewed := read[admin.BlobAccount](t, y.want(200, "POST", path+"/regenerate", `{"key":"secondary"}`))
	if renewed.PrimaryKey != made.Primary || renewed.SecondaryKey == made.Secondary || y.registry.Account().Secondary != renewed.SecondaryKey {
		t.Errorf("%+v became %+v", made, renewed)
	}
	y.refused(400, "bad-request", "POST", path+"/regenerate", `{"key":"third"}`)
	testkit.Equal(t, read[admin.BlobAccount](t, y.want(200, "PATCH", path, `{"rootKeys":true}`)).RootKeys, true, "root keys")
	testkit.Equal(t, y.registry.Account().RootKeys, true, "root keys")
	y.refused(400, "bad-request", "PATCH", path, `{}`)

	for query, want := range map[string]string{
		"":               "AccountKey=" + made.Primary,
		"&key=secondary": "AccountKey=" + renewed.SecondaryKey,
		"&container=box": "SharedAccessSignature=box&rcwdl&2160h0m0s&" + made.Primary,
		"&container=box&permissions=r&expires=2h&key=" + string(access.SecondaryKey): "SharedAccessSignature=box&r&2h0m0s&" + renewed.SecondaryKey,
	} {
		got := read[admin.ConnectionString](t, y.want(200, "GET", "/api/v1/connection-string?blob=true"+query, nil)).ConnectionString
		testkit.Equal(t, got, "DefaultEndpointsProtocol=http;AccountName=eventyard;"+want+";BlobEndpoint=http://localhost:8080/blob/eventyard;", "%s", query)
	}
	for _, query := range []string{"&container=box&expires=soon", "&container=box&expires=-1h", "&hub=orders", "&policy=till"} {
		y.refused(400, "bad-request", "GET", "/api/v1/connection-string?blob=true"+query, nil)
	}
}
