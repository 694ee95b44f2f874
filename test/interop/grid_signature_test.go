//go:build linux

package interop

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestGridSignatures checks what is delivered with the library of Standard Webhooks, before, during
// and after a change of keys; and what is signed with ed25519 by the rules themselves, which that
// library does not know. // G12
func TestGridSignatures(t *testing.T) {
	t.Parallel()
	y := startGrid(t)
	orders := y.topic(t, "orders", "eventgrid")
	h := newHook(t, func(w http.ResponseWriter, _ *http.Request, d delivered) {
		if d.header.Get("aeg-delivery-count") == "0" {
			w.WriteHeader(http.StatusInternalServerError) // so that each comes twice
		}
	})
	first := y.subscribe(t, "orders", "signed", h.URL, "--sign", "hmac", "--retry-schedule", "100ms").Signing
	if len(first) != 1 || !strings.HasPrefix(first[0].Text, "whsec_") {
		t.Fatalf("the key is %+v", first)
	}
	publish := func(id string) []delivered {
		before := len(h.all())
		y.publish(t, orders, "application/json", gridEvents(id))
		return h.await(t, before+2)[before:]
	}
	verify := func(what string, got []delivered, good, bad []string) {
		t.Helper()
		for _, d := range got {
			for _, key := range good {
				testkit.Check(t, verified(t, key, d),
					"%s, attempt %s", what, d.header.Get("aeg-delivery-count"))
			}
			for _, key := range bad {
				if verified(t, key, d) == nil {
					t.Errorf("%s: a key verifies that should not", what)
				}
			}
		}
		if id := got[0].header.Get("webhook-id"); id == "" || id != got[1].header.Get("webhook-id") {
			t.Errorf("%s: the attempts of one event have the ids %q and %q", what, id, got[1].header.Get("webhook-id"))
		}
	}
	stranger := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))
	old := first[0].Text
	verify("before", publish("1"), []string{old}, []string{stranger})

	y.do(t, "subscription", "rotate-key", "signed", "--algorithm", "hmac", "--overlap", "1h")
	keys := secretsOf(t, y, "signed")
	if len(keys) != 2 || !slices.Contains(keys, old) {
		t.Fatalf("the keys are %q", keys)
	}
	verify("meanwhile", publish("2"), keys, []string{stranger})

	y.do(t, "subscription", "rotate-key", "signed", "--algorithm", "hmac", "--overlap", "0s")
	newest := secretsOf(t, y, "signed")
	if len(newest) != 1 || slices.Contains(keys, newest[0]) {
		t.Fatalf("the keys are %q", newest)
	}
	verify("after", publish("3"), newest, append(keys, stranger))
	t.Run("ed25519", func(t *testing.T) { signedWithEd25519(t, y, orders) })
	t.Run("the same algorithm again", func(t *testing.T) {
		y.do(t, "subscription", "rotate-key", "signed")
		if keys := secretsOf(t, y, "signed"); len(keys) != 2 || !strings.HasPrefix(keys[0], "whsec_") || !strings.HasPrefix(keys[1], "whsec_") {
			t.Errorf("the keys are %q", keys)
		}
	})
}

func verified(t *testing.T, key string, d delivered) error {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(key)
	testkit.Must(t, err)
	return library.Verify(d.body, d.header)
}

func secretsOf(t *testing.T, y *yard, subscription string) (keys []string) {
	t.Helper()
	for _, k := range ask[admin.Subscription](t, y, "subscription", "show", subscription, "--secrets").Signing {
		keys = append(keys, k.Text)
	}
	return keys
}

func signedWithEd25519(t *testing.T, y *yard, orders admin.Topic) {
	h := newHook(t, nil)
	made := y.subscribe(t, "orders", "curved", h.URL, "--sign", "ed25519")
	text, found := strings.CutPrefix(made.Signing[0].Text, "whpk_")
	public, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(public) != ed25519.PublicKeySize {
		t.Fatalf("the key is %+v: %v", made.Signing, err)
	}
	y.publish(t, orders, "application/json", gridEvents("4"))
	d := h.await(t, 1)[0]
	signed := fmt.Sprintf("%s.%s.%s", d.header.Get("webhook-id"), d.header.Get("webhook-timestamp"), d.body)
	version, text, _ := strings.Cut(d.header.Get("webhook-signature"), ",")
	signature, err := base64.StdEncoding.DecodeString(text)
	if version != "v1a" || err != nil || !ed25519.Verify(public, []byte(signed), signature) {
		t.Errorf("the signature is %q: %v", d.header.Get("webhook-signature"), err)
	}
}
