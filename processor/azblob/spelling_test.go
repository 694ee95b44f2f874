package azblob_test

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
)

func TestBlobNamesAreInLowerCaseUnlessAsGiven(t *testing.T) { // P8
	service := azurite(t)
	for pathCase, folder := range map[azblob.PathCase]string{
		azblob.Lower:   "space.servicebus.windows.net/orders/$default/",
		azblob.AsGiven: "Space.servicebus.windows.net/Orders/$Default/",
	} {
		c := newContainer(t, service, nil)
		s := azblob.New(c, azblob.Config{PathCase: pathCase})
		l := claim(t, s, processor.Lease{Partition: "0", Owner: "Owner-A", Epoch: 1})
		save(t, s, l, begin(t, s, l))
		testkit.Must(t, testkit.Err(s.Put(t.Context(), group, processor.Entry{Key: "presence/Host-1"})))
		blobs := list(t, c)
		for _, name := range []string{"ownership/0", "checkpoint/0", "eventyard/epoch/0", "eventyard/fact/presence/Host-1"} {
			if _, found := blobs[folder+name]; !found {
				t.Errorf("there is no %s among %v", folder+name, blobs)
			}
		}
		testkit.Equal(t, lease(t, s, "0").Owner, "Owner-A", "the owner")
	}
}

func TestBlobNamesBeginWithTheNamespaceThatIsConfigured(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	s := azblob.New(c, azblob.Config{Namespace: "Localhost:5673"})
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	save(t, s, l, begin(t, s, l))
	blobs := list(t, c)
	for _, name := range []string{"ownership/0", "checkpoint/0", "eventyard/epoch/0"} {
		if _, found := blobs["localhost:5673/orders/$default/"+name]; !found {
			t.Errorf("there is no %s among %v", name, blobs)
		}
	}
}

func TestGroupsThatDifferOnlyInCaseAreRefused(t *testing.T) { // H1
	service := azurite(t)
	c := newContainer(t, service, nil)
	store := func(pathCase azblob.PathCase) processor.Store {
		return azblob.New(c, azblob.Config{PathCase: pathCase})
	}
	use := func(s processor.Store, g processor.Group) error {
		_, err := s.Put(t.Context(), g, processor.Entry{Key: "presence/" + strings.ToLower(newName())})
		return err
	}
	named := func(name string) processor.Group { g := group; g.Group = name; return g }

	testkit.Must(t, use(store(azblob.Lower), named("Billing")))
	for _, s := range []processor.Store{store(azblob.Lower), store(azblob.Lower)} { // whether it has used it or not
		testkit.Check(t, use(s, named("Billing")))
		testkit.ErrorIs(t, use(s, named("billing")), azblob.ErrGroupCase, "the group in another case")
		testkit.ErrorIs(t, testkit.Err(s.Leases(t.Context(), named("BILLING"))), azblob.ErrGroupCase, "reading the group in another case")
	}
	other := named("billing")
	other.Namespace, other.Hub = strings.ToUpper(other.Namespace), strings.ToUpper(other.Hub)
	other.Group = "Billing" // hubs and namespaces have no case
	testkit.Check(t, use(store(azblob.Lower), other))
	for _, name := range []string{"$Default", "$default", "$DEFAULT"} { // one group, whatever its case
		testkit.Check(t, use(store(azblob.Lower), named(name)))
	}
	testkit.Check(t, use(store(azblob.AsGiven), named("billing")))
}

func TestAGroupWithoutAllItsNamesIsRefused(t *testing.T) {
	s := azblob.New(newContainer(t, azurite(t), nil), azblob.Config{})
	for _, g := range []processor.Group{{Hub: "h", Group: "g"}, {Namespace: "n", Group: "g"}, {Namespace: "n", Hub: "h"}} {
		if got, err := s.Leases(t.Context(), g); err == nil {
			t.Errorf("leases of %+v are %+v", g, got)
		}
	}
}

// Accounts with a hierarchical namespace list their folders among the blobs.
func TestFoldersAreNoRecords(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	s := azblob.New(c, azblob.Config{PathCase: azblob.AsGiven})
	f, err := s.Put(t.Context(), group, processor.Entry{Key: "presence/a", Value: []byte("x")})
	testkit.Must(t, err)
	put(t, c, "Space.servicebus.windows.net/Orders/$Default/eventyard/fact/presence", map[string]string{"hdi_isfolder": "true"})
	got, err := s.Entries(t.Context(), group, "")
	if err != nil || len(got) != 1 || got[0].Key != f.Key {
		t.Errorf("entries are %+v, %v", got, err)
	}
}
