package console

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V3: who has sent a form without a session is led back to its page after signing in, and nowhere else.
func TestSigningInLeadsBackToTheForm(t *testing.T) {
	for from, want := range map[string]string{
		"":                                       signInPath,
		"%":                                      signInPath,
		"https://elsewhere.example/console/hubs": signInPath,
		"http://example.com/elsewhere":           signInPath + "?to=%2Fconsole%2F",
		"http://example.com/console/new/hub?x=1": signInPath + "?to=%2Fconsole%2Fnew%2Fhub%3Fx%3D1",
	} {
		r := httptest.NewRequest(http.MethodPost, base+"new/hub", nil) // to example.com
		r.Header.Set("Referer", from)
		testkit.Equal(t, signInFrom(r), want, from)
	}
}
