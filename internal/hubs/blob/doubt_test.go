package blob

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A client that goes away while its blob is being written may have written it. A sweep at
// that moment takes no body from under it.
func TestASweepWhileAClientGoesAway(t *testing.T) {
	for _, inBlocks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(t)
			y.put("b", noise(1, large), Conditions{})
			y.block("b", "1", noise(2, large))

			goOn := make(chan struct{}) // like a commit that waits for the disk
			y.meta.Inject(func(op metatest.Op) error {
				if op.Kind == metatest.OpSet && op.Under(blobsPrefix) {
					<-goOn
				}
				return nil
			})
			ctx, goAway := context.WithCancel(t.Context())
			written := make(chan error, 1)
			go func() {
				var err error
				if inBlocks {
					_, err = y.Commit(ctx, in("b"), blocks("1"), Content{}, Conditions{})
				} else {
					_, err = y.Put(ctx, in("b"), bytes.NewReader(noise(2, large)), Content{}, Conditions{})
				}
				written <- err
			}()
			synctest.Wait()
			goAway()
			synctest.Wait()
			testkit.Must(t, y.Sweep(t.Context()))
			close(goOn)
			<-written
			y.wantBody("b", noise(2, large))
		})
	}
}

// A container with many blobs is deleted at once for its users, who do not wait until all of
// it is cleared away.
func TestADeletedContainerIsClearedAwayLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.put("b", noise(1, large), Conditions{})
		y.meta.Inject(func(op metatest.Op) error { // it deletes no blob before its caller gives up
			if op.Kind == metatest.OpDelete && op.Under(blobsPrefix) {
				time.Sleep(clearTime)
				return context.DeadlineExceeded
			}
			return nil
		})
		began := time.Now()
		testkit.Must(t, y.DeleteContainer(t.Context(), box, Conditions{}))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		y.meta.Inject(nil)
		testkit.Must(t, y.Sweep(t.Context()))
		testkit.Equal(t, y.fileCount(), 0, "files are left")
	})
}

// The largest list of blocks, with the longest of everything, is an entry that the store takes.
func TestTheLargestBlob(t *testing.T) {
	y := newYard(t)
	body := noise(1, 1)
	var list []BlockName
	for i := range MaxBlocks {
		id := strings.Repeat("A", 84) + string([]byte{'A' + byte(i>>12&63), 'A' + byte(i>>8&15), 'A' + byte(i>>4&15), 'A' + byte(i&15)})
		_, err := y.PutBlock(t.Context(), in(strings.Repeat("\x01", 300)), id, bytes.NewReader(body), Conditions{})
		testkit.Must(t, err)
		list = append(list, BlockName{ID: id})
	}
	content := Content{
		Metadata:   map[string]string{"m": strings.Repeat("<", MaxMetadataBytes-1)},
		Properties: Properties{ContentType: strings.Repeat("&", MaxPropertiesBytes)},
	}
	b, err := y.Commit(t.Context(), in(strings.Repeat("\x01", 300)), list, content, Conditions{})
	if err != nil || b.Bytes != MaxBlocks {
		t.Errorf("got %d bytes, %v", b.Bytes, err)
	}
}

func TestPropertiesAreBounded(t *testing.T) {
	y := newYard(t)
	much := Properties{ContentType: strings.Repeat("x", MaxPropertiesBytes), CacheControl: "y"}
	_, err := y.Put(t.Context(), in("b"), bytes.NewReader(nil), Content{Properties: much}, Conditions{})
	testkit.ErrorIs(t, err, ErrProperties, "put")
	y.put("b", nil, Conditions{})
	testkit.ErrorIs(t, testkit.Err(y.SetProperties(t.Context(), in("b"), much, Conditions{})), ErrProperties, "set")
	testkit.ErrorIs(t, testkit.Err(y.Commit(t.Context(), in("b"), nil, Content{Properties: much}, Conditions{})), ErrProperties, "commit")
}

// Blocks that nobody commits go after a week, also those of a blob that there is.
func TestBlocksOfABlobThatNobodyCommitsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.put("b", noise(1, large), Conditions{})
		y.block("b", "1", noise(2, large))
		time.Sleep(6 * 24 * time.Hour)
		y.block("b", "2", noise(3, large))
		time.Sleep(2 * 24 * time.Hour)
		testkit.Must(t, y.Sweep(t.Context()))
		list := testkit.Value(y.Blocks(t.Context(), in("b"), Conditions{}))(t)
		if !slices.Equal(list.UncommittedBlocks, []Block{{"2", large}}) || y.fileCount() != 2 {
			t.Errorf("left are %v and %d files", list.UncommittedBlocks, y.fileCount())
		}
		y.wantBody("b", noise(1, large))
	})
}
