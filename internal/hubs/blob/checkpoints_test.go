package blob

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// P6: the checkpoints of other libraries are found whatever they call the namespace, in any container.
func TestCheckpointsOfOtherLibraries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		other := Path{Account: "a", Container: "other"}
		testkit.Must(t, testkit.Err(y.CreateContainer(t.Context(), other, nil)))
		save := func(at Path, name string, metadata map[string]string) {
			t.Helper()
			at.Blob = name
			testkit.Must(t, testkit.Err(y.Put(t.Context(), at, strings.NewReader(""), Content{Metadata: metadata}, Conditions{})))
		}
		save(box, "localhost/orders/$default/checkpoint/0", map[string]string{"sequencenumber": "41", "offset": "41"})
		save(box, "localhost/orders/$default/checkpoint/1", map[string]string{"offset": "7"})
		save(box, "localhost/orders/$default/ownership/0", map[string]string{"ownerid": "x"})
		save(box, "localhost/orders/$default/checkpoint/deeper/0", nil)
		save(box, "localhost/orders/other/checkpoint/0", nil)
		save(other, "127.0.0.1:5673/Orders/$Default/checkpoint/0", map[string]string{"sequencenumber": "-9223372036854775808"})
		saved := now()
		want := []Checkpoint{
			{Container: "box", Namespace: "localhost", Partition: "0", Sequence: 41, Offset: "41", Saved: saved},
			{Container: "box", Namespace: "localhost", Partition: "1", Sequence: -1, Offset: "7", Saved: saved},
			{Container: "other", Namespace: "127.0.0.1:5673", Partition: "0", Sequence: -1, Saved: saved},
		}
		testkit.Diff(t, want, y.checkpoints("Orders", "$Default"))

		save(box, "localhost/orders/$default/checkpoint/0", map[string]string{"sequencenumber": "42"})
		testkit.Equal(t, y.checkpoints("orders", "$default")[0].Sequence, 42, "what is known of a folder is fresh")
		save(other, "localhost/orders/late/checkpoint/0", nil)
		testkit.Equal(t, len(y.checkpoints("orders", "late")), 0, "folders are not looked for at each call")
		time.Sleep(foldersEvery)
		testkit.Equal(t, len(y.checkpoints("orders", "late")), 1, "but soon again")
		testkit.Equal(t, len(y.checkpoints("other", "late")), 0)
	})
}

// P6: while one looks for folders, which takes long where there are very many blobs, others are told what is known.
func TestALookForCheckpointsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.put("localhost/orders/mail/checkpoint/0", nil, Conditions{})
		testkit.Equal(t, len(y.checkpoints("orders", "mail")), 1)
		time.Sleep(foldersEvery)
		on, looked := make(chan struct{}), make(chan error)
		y.meta.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpList && op.Key == containersPrefix },
			func(metatest.Op) error { <-on; return meta.ErrUnavailable })
		go func() { looked <- testkit.Err(y.Checkpoints(t.Context(), "orders", "mail")) }()
		synctest.Wait()
		testkit.Equal(t, len(y.checkpoints("orders", "mail")), 1, "while another looks")
		close(on)
		testkit.ErrorIs(t, <-looked, meta.ErrUnavailable)
		testkit.Equal(t, len(y.checkpoints("orders", "mail")), 1, "after a look that failed")
	})
}

// A hub's name may have slashes.
func TestFoldersOfCheckpoints(t *testing.T) {
	for name, want := range map[string]string{
		"host/hub/group/checkpoint/0":         "host/hub/group/checkpoint/ hub/group",
		"host:1/A/Hub/Group/checkpoint/12":    "host:1/A/Hub/Group/checkpoint/ a/hub/group",
		"host/hub/group/ownership/0":          " ",
		"hub/group/checkpoint/0":              " ",
		"host/hub/group/checkpoint/deeper/0":  " ",
		"host/hub/group/checkpoint/":          "host/hub/group/checkpoint/ hub/group",
		"checkpoint/checkpoint/checkpoint/0":  " ",
		"h/checkpoint/checkpoint/checkpoint/": "h/checkpoint/checkpoint/checkpoint/ checkpoint/checkpoint",
	} {
		folder, group, _ := folderOf(name)
		testkit.Equal(t, folder+" "+group, want, "%s", name)
	}
}

func (y *yard) checkpoints(hub, group string) []Checkpoint {
	y.t.Helper()
	all, err := y.Checkpoints(y.t.Context(), hub, group)
	testkit.Must(y.t, err)
	slices.SortFunc(all, func(a, b Checkpoint) int {
		return cmp.Or(strings.Compare(a.Container, b.Container), strings.Compare(a.Partition, b.Partition))
	})
	return all
}
