package notify

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/processor"

	"github.com/eventyard/eventyard/internal/testkit"
)

var aSecret = bytes.Repeat([]byte{7}, secretBytes)

func aGrant() grant {
	return grant{processor.Group{Hub: "Images", Group: "$Default"}, "resize", "i1", time.Unix(1_800_000_000, 0)}
}

func TestTokensGiveBackWhatWasSigned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, -1, maxPartBytes)
		g := grant{processor.Group{Hub: text.Draw(t, "hub"), Group: text.Draw(t, "group")}, text.Draw(t, "function"), text.Draw(t, "incident"),
			time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "expires"), 0)}
		token, err := g.sign(aSecret)
		testkit.MustThat(t, err == nil && len(token) <= maxTokenBytes, "%d bytes: %v", len(token), err)
		if got, err := readToken(aSecret, token); err != nil || got != g {
			t.Fatalf("got %+v (%v), want %+v", got, err, g)
		}
	})
}

func TestNoTokenButOursIsRead(t *testing.T) {
	token, err := aGrant().sign(aSecret)
	testkit.Must(t, err)
	testkit.That(t, len(token) <= 120, "a token has %d characters", len(token))
	other := bytes.Repeat([]byte{8}, secretBytes)
	forged, err := aGrant().sign(other)
	testkit.Must(t, err)
	bad := map[string]string{
		"empty": "", "another secret's": forged, "cut": token[:len(token)-1], "longer": token + "A", "no base64": "/" + token, "padded": token + "=", "huge": strings.Repeat("A", 1<<20),
		"the MAC alone": tokenText.EncodeToString(make([]byte, 32)), "line end in it": token[:10] + "\n" + token[10:],
	}
	for name, text := range bad {
		if g, err := readToken(aSecret, text); err == nil {
			t.Errorf("%s is read: %+v", name, g)
		}
	}
	raw, err := tokenText.DecodeString(token)
	testkit.Must(t, err)
	for i := range raw { // whatever is changed in it
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		if g, err := readToken(aSecret, tokenText.EncodeToString(changed)); err == nil {
			t.Errorf("with byte %d changed it is read: %+v", i, g)
		}
	}
	g := aGrant()
	g.Function = strings.Repeat("f", maxPartBytes+1)
	testkit.That(t, testkit.Err(g.sign(aSecret)) != nil, "a name of any length is signed")
}

// Even what is signed is read with care: a later version may have signed it.
func FuzzReadGrant(f *testing.F) {
	token, _ := aGrant().sign(aSecret)
	raw, _ := tokenText.DecodeString(token)
	payload := raw[:len(raw)-32]
	f.Add(payload)
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Add(payload[:len(payload)-1])
	f.Add(append(bytes.Clone(payload), 0))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		g, err := readGrant(payload)
		if err != nil {
			return
		}
		token, err := g.sign(aSecret)
		testkit.Must(t, err)
		if back, err := readToken(aSecret, token); err != nil || back != g {
			t.Errorf("%+v comes back as %+v: %v", g, back, err)
		}
	})
}

func FuzzReadToken(f *testing.F) {
	token, _ := aGrant().sign(aSecret)
	for _, seed := range []string{"", token, token[1:], strings.ToUpper(token), strings.Repeat("A", 44), strings.Repeat("A", 3000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if g, err := readToken(aSecret, text); err == nil && text != token {
			t.Errorf("%q is read: %+v", text, g)
		}
	})
}

func TestAllNodesSignWithOneSecretThatStays(t *testing.T) {
	store := storagetest.Entries(t)
	secrets := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() { secrets[i], _ = openSecret(t.Context(), store) })
	}
	all.Wait()
	for _, s := range secrets {
		if len(s) != secretBytes || !bytes.Equal(s, secrets[0]) {
			t.Errorf("a secret is %x, another %x", s, secrets[0])
		}
	}
	other, err := openSecret(t.Context(), storagetest.Entries(t))
	testkit.That(t, err == nil && !bytes.Equal(other, secrets[0]), "another yard has the same secret: %v", err)
	broken := storagetest.Entries(t)
	must1(broken.CompareAndSet(t.Context(), secretKey, 0, []byte("short")))
	if _, err := openSecret(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a broken secret gives %v", err)
	}
}
