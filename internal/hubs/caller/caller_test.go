package caller

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	end    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	policy = auth.Scope{Rights: auth.Listen, Basis: auth.Basis{Policy: "policies/namespace/reader", Made: 1700000000000, Key: Digest("its key")}}
	ofHub  = auth.Scope{Path: "orders", Rights: auth.Manage, Basis: auth.Basis{Hub: 7, Policy: "policies/hubs/orders/7/own", Made: 8, Key: Digest("another")}}
	bearer = auth.Scope{Rights: auth.Send | auth.Listen}
)

// C4: another node hears what was shown, on which entity, by which policy and until when; it does not
// hear keys, nor what is of no use for what it is asked about.
func TestWhatAnotherNodeHears(t *testing.T) {
	for name, tt := range map[string]struct{ shown, heard Caller }{
		"a policy":                 {Caller{Grant: auth.Grant{Holder: "reader", Expires: end, Scopes: []auth.Scope{policy}}}, Caller{Grant: auth.Grant{Holder: "reader", Expires: end, Scopes: []auth.Scope{policy}}}},
		"a policy among others":    {Caller{Grant: auth.Grant{Holder: "p", Scopes: []auth.Scope{ofHub, policy}}}, Caller{Grant: auth.Grant{Holder: "p", Scopes: []auth.Scope{policy}}}},
		"a policy of a hub":        {Caller{Grant: auth.Grant{Holder: "own", Scopes: []auth.Scope{ofHub}}}, Caller{Grant: auth.Grant{Holder: "own"}}},
		"a bearer token":           {Caller{Grant: auth.Grant{Holder: "me", Expires: end, Scopes: []auth.Scope{bearer}}}, Caller{Grant: auth.Grant{Holder: "me", Expires: end, Scopes: []auth.Scope{bearer}}}},
		"a holder of a long name":  {Caller{Grant: auth.Grant{Holder: strings.Repeat("ö", 100)}}, Caller{Grant: auth.Grant{Holder: strings.Repeat("ö", maxHolder/2)}}},
		"a topic's key":            {Caller{Topic: &TopicKey{Topic: "orders", Subscription: "s", Key: Digest("k")}}, Caller{Topic: &TopicKey{Topic: "orders", Subscription: "s", Key: Digest("k")}}},
		"a token of a topic's key": {Caller{Topic: &TopicKey{Topic: "orders", Subscription: "s", Key: Digest("k"), Expires: end}}, Caller{Topic: &TopicKey{Topic: "orders", Subscription: "s", Key: Digest("k"), Expires: end}}},
	} {
		t.Run(name, func(t *testing.T) {
			text := tt.shown.Encode(auth.Entity{})
			testkit.That(t, !strings.Contains(string(text), "key of") && json.Valid(text), "it is told as %s", text)
			got, err := Decode(text)
			testkit.Must(t, err)
			testkit.Deep(t, got, tt.heard)
			testkit.That(t, !got.Grant.Allows(auth.Entity{}, 0, end.Add(-time.Hour)), "it allows something before it was judged")
		})
	}
}

// C4: what cannot be read in full, or is too large, is nobody's grant.
func TestWhatIsNoCaller(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	for name, tt := range map[string]struct {
		text string
		err  error
	}{
		"nothing":                 {``, ErrNone},
		"null":                    {`null`, ErrNone},
		"no JSON":                 {`{`, auth.ErrMalformed},
		"a number":                {`7`, auth.ErrMalformed},
		"two":                     {`{"holder":"a"}{"holder":"b"}`, auth.ErrMalformed},
		"something behind it":     {`{"holder":"a"}}`, auth.ErrMalformed},
		"an unknown restriction":  {`{"holder":"a","only":"orders"}`, auth.ErrMalformed},
		"in a scope":              {`{"scopes":[{"rights":["Listen"],"only":"orders"}]}`, auth.ErrMalformed},
		"no right":                {`{"scopes":[{"rights":[]}]}`, auth.ErrMalformed},
		"an unknown right":        {`{"scopes":[{"rights":["Own"]}]}`, auth.ErrMalformed},
		"a digest that is short":  {`{"scopes":[{"rights":["Listen"],"key":"ab"}]}`, auth.ErrMalformed},
		"a digest that is none":   {`{"scopes":[{"rights":["Listen"],"key":"` + strings.Repeat("xy", 32) + `"}]}`, auth.ErrMalformed},
		"a topic's without a key": {`{"topic":{"topic":"orders","subscription":"s","key":""}}`, auth.ErrMalformed},
		"both":                    {`{"holder":"a","topic":{"topic":"orders","subscription":"s","key":"` + digest + `"}}`, auth.ErrMalformed},
		"too many scopes":         {`{"scopes":[` + strings.Repeat(`{"rights":["Listen"]},`, MaxScopes) + `{"rights":["Listen"]}]}`, auth.ErrMalformed},
		"too many bytes":          {`{"holder":"` + strings.Repeat("a", MaxBytes) + `"}`, auth.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(tt.text))
			testkit.ErrorIs(t, err, tt.err)
			testkit.Deep(t, got, Caller{})
		})
	}
	many := auth.Grant{}
	for i := range MaxScopes + 1 {
		many.Scopes = append(many.Scopes, auth.Scope{Rights: auth.Send, Basis: auth.Basis{Policy: fmt.Sprint(i)}})
	}
	testkit.Equal(t, len(Caller{Grant: many}.Encode(auth.Entity{})), 0, "bytes of what is too much to tell")
}

func TestContext(t *testing.T) {
	_, ok := From(t.Context())
	testkit.That(t, !ok, "somebody calls")
	c := Caller{Grant: auth.Grant{Holder: "me"}}
	got, ok := From(With(t.Context(), c))
	testkit.That(t, ok && reflect.DeepEqual(got, c), "the caller is %v", got)
}

// C4: nothing that a stranger sends is more than the bounds, and what is read is told alike.
func FuzzDecode(f *testing.F) {
	for _, c := range []Caller{
		{Grant: auth.Grant{Holder: "reader", Expires: end, Scopes: []auth.Scope{policy, bearer}}},
		{Topic: &TopicKey{Topic: "orders", Subscription: "s", Key: Digest("k"), Expires: end}},
	} {
		f.Add(c.Encode(auth.Entity{}))
	}
	f.Add([]byte(`{"holder":"\ud800","scopes":[{"path":"a/b","rights":["send","LISTEN"],"hub":-1}]}`))
	f.Add([]byte(`{"expires":"0001-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Decode(text)
		if err != nil {
			testkit.Deep(t, c, Caller{})
			return
		}
		if len(text) > MaxBytes || len(c.Grant.Scopes) > MaxScopes || len(c.Grant.Holder) > maxHolder {
			t.Fatalf("%d bytes, %d scopes, a holder of %d", len(text), len(c.Grant.Scopes), len(c.Grant.Holder))
		}
		c.Grant = c.Grant.Reaching(auth.Entity{})
		sent := c.Encode(auth.Entity{})
		if sent == nil {
			return // escaped it may be larger than it came
		}
		again, err := Decode(sent)
		testkit.Must(t, err)
		if !reflect.DeepEqual(again.Encode(auth.Entity{}), sent) {
			t.Fatalf("%s is told as %s", sent, again.Encode(auth.Entity{}))
		}
	})
}
