package entries

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTokens(t *testing.T) {
	for key, want := range map[string]string{
		"hubs/orders":               "hubs.orders",
		"groups/log/$Default":       "groups.log.$Default",
		"a b/c.d/*/>":               "a%20b.c%2Ed.%2A.%3E",
		"~x/%2F":                    "%7Ex.%252F",
		"ü":                         "%C3%BC",
		strings.Repeat("k", 512):    strings.Repeat("k", 512),
		strings.Repeat("k", 513):    "~",
		strings.Repeat("s/", 511):   "~",
		strings.Repeat("日", 100):    "~",
		"records/log/id/lease/0":    "records.log.id.lease.0",
		"grid/subscriptions/t/a/@b": "grid.subscriptions.t.a.%40b",
	} {
		got := tokens(key)
		if len(got) > maxTokenBytes || strings.ContainsAny(got, " *>\t") {
			t.Errorf("%.20q becomes %q", key, got)
		}
		if want != "" && want != "~" && got != want {
			t.Errorf("%.20q becomes %q, want %q", key, got, want)
		}
		if want == "~" && (len(got) != 65 || got[0] != '~') {
			t.Errorf("%.20q becomes %q", key, got)
		}
	}
}

// No two keys share a subject, and none is the barrier's.
func TestSubjectsAreOfOneKey(t *testing.T) {
	l := layout{"yard", 4}
	key := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-c.%~* 2F]{1,6}`), 1, 4).Draw(t, "segments"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "a"), key.Draw(t, "b")
		if (a == b) != (tokens(a) == tokens(b)) {
			t.Fatalf("%q and %q become %q and %q", a, b, tokens(a), tokens(b))
		}
		if l.subject("d", a) == l.barrier("d") {
			t.Fatalf("%q is the barrier", a)
		}
	})
}

// Which bucket an entry is in never changes: these are stored.
func TestBucketsOfKeys(t *testing.T) {
	l := layout{"yard", 4}
	for key, want := range map[string]string{
		"hubs/orders": "d", "groups/orders-1/billing": "d", "policies/x": "d", "functions/f": "d", "records": "d", "grid/topics/t": "d",
		"grid/subscriptions/t/x/y": "d", "blobs/records/a/b": "d", "notices/circuits/x": "d",
		"records/orders-1/id/lease/0": "s2", "records/orders-1/other/entry/x": "s2", "producers/orders-1/0": "s2",
		"records/orders-2/id/lease/0": "s3", "grid/cursors/abc": "s3", "poison/orders-poison-1/0": "s1",
	} {
		testkit.Equal(t, l.bucketOf(key), want, "%s", key)
	}
	testkit.Slices(t, l.buckets(), []string{"d", "s0", "s1", "s2", "s3"})
}

// A key is in one of the buckets of every prefix that it is under.
func TestBucketsUnderPrefixes(t *testing.T) {
	l := layout{"yard", 3}
	for prefix, want := range map[string][]string{
		"": l.buckets(), "hubs/": {"d"}, "grid/": l.buckets(), "grid/topics/": {"d"}, "records/": l.buckets()[1:],
		"grid/cursors/": l.buckets()[1:], "records/orders-1/": {l.bucketOf("records/orders-1/x")},
		"records/orders-1/id/lease/": {l.bucketOf("records/orders-1/x")},
	} {
		testkit.Slices(t, l.bucketsUnder(prefix), want, "%q", prefix)
	}
	segment := rapid.SampledFrom([]string{"hubs", "records", "grid", "cursors", "dead", "tiers", "a", "b", "recordsx"})
	rapid.Check(t, func(t *rapid.T) {
		key := strings.Join(rapid.SliceOfN(segment, 1, 5).Draw(t, "key"), "/")
		prefixes := []string{""}
		for i, c := range key {
			if c == '/' {
				prefixes = append(prefixes, key[:i+1])
			}
		}
		for _, prefix := range prefixes {
			if !slices.Contains(l.bucketsUnder(prefix), l.bucketOf(key)) {
				t.Fatalf("%q is in %s, under %q are %v", key, l.bucketOf(key), prefix, l.bucketsUnder(prefix))
			}
		}
	})
}

func TestNewRefusesBadNames(t *testing.T) {
	for _, cfg := range []Config{{}, {Yard: "a.b"}, {Yard: "a b"}, {Yard: strings.Repeat("y", 33)}, {Yard: "y", Buckets: -1}, {Yard: "y", Buckets: 65}} {
		if _, err := New(nil, cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, m := range []message{
		{seq: 7, kind: value, nonce: 1, before: 3, key: "hubs/orders", value: []byte("v")},
		{seq: 8, kind: value, key: strings.Repeat("k", meta.MaxKeyBytes), value: make([]byte, meta.MaxValueBytes)},
		{seq: 9, kind: deletion, nonce: 1 << 63, before: 8, key: "k", value: []byte{}},
		{seq: 10, kind: barrier, nonce: 4, value: []byte{}},
	} {
		b := m.encode()
		got, err := decode(m.seq, b)
		testkit.Must(t, err)
		testkit.Deep(t, got, m)
		testkit.That(t, len(b) <= maxMessageBytes, "%d bytes", len(b))
		for _, i := range []int{0, 1, 5, 12, 18, 19, len(b) / 2, len(b) - 1} {
			broken := slices.Clone(b)
			broken[i] ^= 0x40
			testkit.ErrorIs(t, testkit.Err(decode(m.seq, broken)), errMessage, "byte %d", i)
		}
		testkit.ErrorIs(t, testkit.Err(decode(m.seq, b[:len(b)-1])), errMessage, "cut short")
		got, whole, err := readAnnouncement(announce(m.seq, b))
		testkit.Must(t, err)
		testkit.Equal(t, whole, len(b) <= maxAnnounced)
		testkit.Equal(t, got.seq, m.seq)
	}
	testkit.ErrorIs(t, testkit.Err3(readAnnouncement([]byte("short"))), errMessage)
}

// FuzzDecode: what is decoded is what would be encoded, and nothing panics.
func FuzzDecode(f *testing.F) {
	f.Add(uint64(1), message{kind: value, key: "a/b", value: []byte("v")}.encode())
	f.Add(uint64(2), message{kind: deletion, key: "a"}.encode())
	f.Add(uint64(3), []byte{1, 3})
	f.Fuzz(func(t *testing.T, seq uint64, b []byte) {
		if m, err := decode(seq, b); err == nil {
			testkit.Slices(t, m.encode(), b)
			if r := m.revision(); (r%2 == 1) != (m.kind == deletion) {
				t.Errorf("revision %d of kind %d", r, m.kind)
			}
		}
		_, _, _ = readAnnouncement(b)
	})
}
