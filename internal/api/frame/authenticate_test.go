package frame

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// shown is access that gives what it was shown as the holder of a grant to the hub orders.
type shown struct{}

func (shown) Token(_ context.Context, token, _ string) (auth.Grant, error) {
	return auth.Grant{Holder: token}, nil
}
func (shown) Key(_ context.Context, name, key string) (auth.Grant, error) {
	return auth.Grant{Holder: name + "=" + key}, nil
}

func TestAuthenticate(t *testing.T) {
	for _, tt := range []struct {
		what, header, holder string
		err                  error
	}{
		{"nothing", "", "", ErrNoToken},
		{"a blank", "  ", "", ErrNoToken},
		{"a policy's name and key", "Basic bmFtZTprZXk=", "name=key", nil},
		{"Basic that is none", "basic %%%", "", auth.ErrMalformed},
		{"a bearer token, without its scheme", "BEARER  a.b.c", "a.b.c", nil},
		{"a signature, with its scheme", "sharedaccesssignature  sr=x", "SharedAccessSignature sr=x", nil},
		{"a scheme that nobody knows", "Digest x", "", auth.ErrUnsupported},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			if grant, err := Authenticate(shown{}, r); !errors.Is(err, tt.err) || grant.Holder != tt.holder {
				t.Errorf("got %q, %v", grant.Holder, err)
			}
		})
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["Authorization"] = []string{"Bearer a", "Bearer b"} // a proxy might take the other
	testkit.ErrorIs(t, testkit.Err(Authenticate(shown{}, r)), auth.ErrMalformed, "two headers")
}

func TestNeedsAreChecked(t *testing.T) {
	listener := auth.Grant{Holder: "me", Scopes: []auth.Scope{{Path: "orders", Rights: auth.Listen}}}.While(func(auth.Scope) bool { return true })
	for _, tt := range []struct {
		need Need
		at   auth.Entity
		err  error
		word string
	}{
		{Of(Any), auth.Entity{}, nil, ""},
		{Of(Hub, auth.Send, auth.Listen), auth.At("orders"), nil, ""},
		{Of(Hub), auth.At("orders"), nil, ""},
		{Of(Hub, auth.Send), auth.At("orders"), ErrRights, `Send is required, and the token of "me" gives Listen to "orders"`},
		{Of(Hub, auth.Listen), auth.At("other"), auth.ErrAudience, `not for "other"`},
		{Of(Namespace), auth.Entity{}, auth.ErrAudience, "not for the whole namespace"},
	} {
		t.Run(fmt.Sprintf("%s at %q", tt.need, tt.at.String()), func(t *testing.T) {
			if err := tt.need.Check(listener, tt.at, time.Now()); !errors.Is(err, tt.err) || err != nil && !strings.Contains(err.Error(), tt.word) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if err := Of(Any).Check(auth.Grant{Holder: "nobody"}.While(func(auth.Scope) bool { return false }), auth.Entity{}, time.Now()); !errors.Is(err, ErrRights) {
		t.Errorf("a grant of nothing: %v", err)
	}
}
