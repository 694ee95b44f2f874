package blob

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestContainerNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"abc": true, "a-b-1": true, "$root": true, strings.Repeat("a", 63): true,
		"ab": false, "a--b": false, "-ab": false, "ab-": false, "aBc": false, "a_b": false, "a/b": false, "$logz": false, strings.Repeat("a", 64): false,
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckContainer(name); (err == nil) != valid {
				t.Errorf("%q: %v, want valid %t", name, err, valid)
			}
		})
	}
}

// FuzzBlobKey: every name has a key of its own that the store takes, is found beneath the
// prefixes that it has, and can be read off the key unless it is too long for that.
func FuzzBlobKey(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "a//b", "/", "a/", "100%", "%", "%/%%", "a\x00b", "\u0085", "ns.x/hub/$Default/ownership/0", strings.Repeat("é/", 400)} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, name string, cut int) {
		if checkBlobName(name) != nil {
			return
		}
		key := blobKey("0123", name)
		testkit.Must(t, meta.CheckKey(key))
		if text, short := strings.CutPrefix(key, blobsPrefix+"0123/"); short {
			if back, err := unescapeName(text); err != nil || back != name {
				t.Fatalf("%q came back as %q, %v", name, back, err)
			}
		}
		prefix := name[:max(0, min(cut, len(name)))]
		narrow := listPrefix("0123", prefix)
		testkit.Must(t, meta.CheckPrefix(narrow))
		if !utf8.ValidString(prefix) || strings.HasPrefix(key, longPrefix) {
			return
		}
		if !strings.HasPrefix(key, narrow) {
			t.Fatalf("%q is at %q, which is not beneath %q, where %q is looked for", name, key, narrow, prefix)
		}
	})
}

// FuzzMarker: a marker is read back, whatever a client makes of it.
func FuzzMarker(f *testing.F) {
	f.Add(marker{name: "a/b"}.String())
	f.Add(marker{name: "a/", prefix: true}.String())
	f.Add("no marker")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMarker(text)
		if err != nil || text == "" {
			return
		}
		if back, err := parseMarker(m.String()); err != nil || back != m {
			t.Fatalf("%+v came back as %+v, %v", m, back, err)
		}
		if m.before(m.name) {
			t.Fatalf("%+v comes before its own name", m)
		}
	})
}
