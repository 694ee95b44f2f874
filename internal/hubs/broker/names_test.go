package broker

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H1: which names a hub may have.
func TestHubNames(t *testing.T) {
	tests := []struct {
		what string
		name string
		want error
	}{
		{"one letter is enough", "a", nil},
		{"digits at both ends are fine", "1orders9", nil},
		{"upper case is kept", "Orders", nil},
		{"word characters, dash, dot and slash are allowed inside", "a_b-c.d/e", nil},
		{"slashes may follow each other, in names from before", "a//b", nil},
		{"256 characters are allowed", strings.Repeat("a", 256), nil},
		{"257 are not", strings.Repeat("a", 257), ErrInvalidName},
		{"nothing is no name", "", ErrInvalidName},
		{"a blank is refused", "my hub", ErrInvalidName},
		{"a dash at the beginning is refused", "-a", ErrInvalidName},
		{"an underscore at the beginning is not", "_schemas", nil},
		{"nor are two", "__consumer_offsets", nil},
		{"but an underscore alone", "_", ErrInvalidName},
		{"a slash at the end is refused", "a/", ErrInvalidName},
		{"an underscore at the end is refused", "a_", ErrInvalidName},
		{"a dollar sign is refused", "$a", ErrInvalidName},
		{"a percent sign is refused, as it escapes slashes in keys", "a%2Fb", ErrInvalidName},
		{"letters beyond ASCII are refused", "häuser", ErrInvalidName},
		{"a control character is refused", "a\x00b", ErrInvalidName},
		{"a path of the server is reserved", "api", ErrReservedName},
		{"in any case", "MetRics", ErrReservedName},
		{"also as the first part of a path", "console/events", ErrReservedName},
		{"but not further down", "my/api", nil},
		{"nor as the beginning of a word", "api-events", nil},
		{"what would be a partition of another hub", "a/partitions/0", ErrReservedName},
		{"in any case", "a/Partitions/0", ErrReservedName},
		{"or a group", "a/b/ConsumerGroups/g", ErrReservedName},
		{"or a publisher", "a/publishers/p", ErrReservedName},
		{"or where a hub takes messages", "a/messages", ErrReservedName},
		{"also behind several slashes", "a//messages", ErrReservedName},
		{"a name that begins so is the part of none", "messages", nil},
		{"also with more behind it", "partitions/0", nil},
		{"nor is the beginning of a word", "a/messages-of-b", nil},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.ErrorIs(t, checkHubName(tt.name), tt.want, "%q", tt.name)
		})
	}
}

// H1: every reserved name is refused, alone and as a first segment.
func TestReservedNamesAreNoHubs(t *testing.T) {
	for _, name := range ReservedNames() {
		for _, hub := range []string{name, strings.ToUpper(name), name + "/x"} {
			testkit.ErrorIs(t, checkHubName(hub), ErrReservedName, "%q", hub)
		}
	}
}

// H1: the default group is found whatever its case.
func TestDefaultGroupInAnyCase(t *testing.T) {
	for name, want := range map[string]bool{
		"$Default": true, "$default": true, "$DEFAULT": true,
		"Default": false, "$Defaults": false, "$": false, "": false,
	} {
		testkit.Equal(t, isDefaultGroup(name), want, "%q", name)
	}
}

func TestFoldingIsForASCIIOnly(t *testing.T) {
	// The Kelvin sign's lower case is an ordinary k.
	for in, want := range map[string]string{"Orders": "orders", "orders": "orders", "\u212Aelvin": "\u212Aelvin", "A/B.C": "a/b.c"} {
		testkit.Equal(t, fold(in), want, "%q", in)
	}
}

// FuzzNames: a name that passes is what the emulator's schema allows, or begins with an underscore, makes keys that
// the store takes and that lead back to it, and a storage name that engines take.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"a", "Orders", "a/b//c", "a.b-c_d", "häuser", "api/x", "$Default", "a%2Fb", strings.Repeat("a/", 127) + "a", "_schemas", "_.a", strings.Repeat("_", 60) + "a"} {
		f.Add(seed)
	}
	schema := regexp.MustCompile(`^([A-Za-z0-9]|[A-Za-z0-9_][A-Za-z0-9_\-./]*[A-Za-z0-9])$`)
	storage := regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,119}$`)
	f.Fuzz(func(t *testing.T, name string) {
		ok := wellFormed(name)
		if want := len(name) <= MaxNameCharacters && schema.MatchString(name); ok != want {
			t.Fatalf("%q: allowed is %v, want %v", name, ok, want)
		}
		if !ok {
			return
		}
		key := hubKey(fold(name))
		testkit.Check(t, meta.CheckKey(key))
		testkit.Equal(t, nameOfHubKey(key), fold(name), "%q leads back", key)
		log := logName(name)
		if !storage.MatchString(log) {
			t.Errorf("storage name %q", log)
		}
		testkit.Check(t, meta.CheckKey(groupKey(log, name)))
		testkit.Equal(t, strings.Count(groupKey(log, name), "/"), 2,
			"%q is not one segment", groupKey(log, name))
	})
}

// H1: partitions are named "0" to "n-1", each in one way only.
func TestPartitionNames(t *testing.T) {
	h := &hub{Hub: Hub{Name: "orders", Partitions: 12}}
	for id, want := range map[string]int{
		"0": 0, "9": 9, "11": 11,
		"12": -1, "": -1, "00": -1, "01": -1, "-1": -1, "+1": -1, "1 ": -1, "x": -1, "1e1": -1, "99999": -1, "٣": -1,
	} {
		got, err := h.partitionNumber(id)
		var missing *NotFoundError
		switch {
		case want >= 0 && (err != nil || got != want):
			t.Errorf("%q: got %d, %v", id, got, err)
		case want < 0 && !errors.As(err, &missing):
			t.Errorf("%q: got %d, %v, want a NotFoundError", id, got, err)
		}
	}
}

func TestWhatIsNotThereIsNamed(t *testing.T) {
	tests := []struct {
		name string
		err  *NotFoundError
		want string
	}{
		{"a hub", &NotFoundError{Kind: KindHub, Hub: "orders", Name: "orders"},
			`hub "orders" does not exist: create it first, or check its spelling`},
		{"a partition among several", &NotFoundError{Kind: KindPartition, Hub: "orders", Name: "9", Partitions: 4},
			`partition "9" of hub "orders" does not exist: it has partitions 0 to 3`},
		{"a partition beside the only one", &NotFoundError{Kind: KindPartition, Hub: "orders", Name: "1", Partitions: 1},
			`partition "1" of hub "orders" does not exist: it has only partition 0`},
		{"a group", &NotFoundError{Kind: KindGroup, Hub: "orders", Name: "billing"},
			`consumer group "billing" of hub "orders" does not exist: create it first, or use $Default`},
		{"a group in another case", &NotFoundError{Kind: KindGroup, Hub: "orders", Name: "billing", Similar: "Billing"},
			`consumer group "billing" of hub "orders" does not exist: there is "Billing", and case matters here`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, tt.err.Error(), tt.want)
		})
	}
}
