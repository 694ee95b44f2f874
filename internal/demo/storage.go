package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// errFenced: a later owner of the partition has written its state.
var errFenced = errors.New("another consumer has taken over this partition's state")

// state is how far a consumer is with a partition: everything up to sequence is in the open periods,
// or in finished blobs.
type state struct {
	partition string
	epoch     int64 // that of its owner's lease
	sequence  int64
	open      map[int64]*tally // by beginning of the period, in seconds
	version   string           // of the blob; empty: there is none
}

// stateHead is a state's first line.
type stateHead struct {
	State    string `json:"state"`
	Epoch    int64  `json:"epoch"`
	Sequence int64  `json:"sequence"`
}

// storage keeps aggregates in a container of any account that is compatible with Azure's. A blob is
// replaced, on condition that nobody else has replaced it, and never added to.
type storage struct {
	container *azcontainer.Client
	every     time.Duration
}

func openStorage(of settings) (*storage, error) {
	options := &azcontainer.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: 2, RetryDelay: 200 * time.Millisecond, TryTimeout: 20 * time.Second}
	client, err := azcontainer.NewClientFromConnectionString(of.Blobs, of.Container, options)
	if err != nil {
		return nil, fmt.Errorf("open the container %s: %w", of.Container, err)
	}
	return &storage{container: client, every: of.Every}, nil
}

// create makes the container, if there is none.
func (s *storage) create(ctx context.Context) error {
	_, err := s.container.Create(ctx, nil)
	if bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil
	}
	return err
}

func stateName(partition string) string { return fmt.Sprintf("state/%02s", partition) }

// load reads a partition's state; one that was never saved begins before the first event.
func (s *storage) load(ctx context.Context, partition string) (*state, error) {
	st := &state{partition: partition, sequence: -1, open: map[int64]*tally{}}
	body, version, err := s.get(ctx, stateName(partition))
	if err != nil || version == "" {
		return st, err
	}
	first, rest, _ := bytes.Cut(body, []byte("\n"))
	var h stateHead
	if err := json.Unmarshal(first, &h); err != nil {
		return nil, fmt.Errorf("read %s: %w", stateName(partition), err)
	}
	all, err := readTallies(bytes.NewReader(rest))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", stateName(partition), err)
	}
	st.epoch, st.sequence, st.version = h.Epoch, h.Sequence, version
	for _, w := range all {
		st.open[w.head.Period.Unix()] = w.tally
	}
	return st, nil
}

// save writes a state. errFenced where a later owner has written it. An answer can be lost, so that
// the version has moved though nobody else wrote: then what is there is of this epoch, and is replaced.
func (s *storage) save(ctx context.Context, st *state) error {
	for {
		version, err := s.put(ctx, stateName(st.partition), st.version, st.body(), st.metadata())
		if !errors.Is(err, errConflict) {
			if err == nil {
				st.version = version
			}
			return err
		}
		found, err := s.load(ctx, st.partition)
		if err != nil {
			return err
		}
		if found.epoch > st.epoch || found.sequence > st.sequence {
			return errFenced
		}
		st.version = found.version
	}
}

func (st *state) body() []byte {
	first, _ := json.Marshal(stateHead{State: st.partition, Epoch: st.epoch, Sequence: st.sequence}) // of plain fields
	b := append(make([]byte, 0, 1<<16), append(first, '\n')...)
	for period, t := range st.open {
		b = t.appendTo(b, st.partition, time.Unix(period, 0).UTC())
	}
	return b
}

// metadata is what the books need to know, so that they need not read the blob.
func (st *state) metadata() map[string]string {
	var open []string
	for period, t := range st.open {
		open = append(open, fmt.Sprintf("%d=%d", period, t.readings))
	}
	return map[string]string{"sequence": strconv.FormatInt(st.sequence, 10), "open": strings.Join(open, ",")}
}

// finish writes a period's blob. One that is there already, from a consumer that was killed before
// it had saved its state or because an event came late, is read first: the new one has both.
func (s *storage) finish(ctx context.Context, partition string, period int64, t *tally) error {
	at := time.Unix(period, 0)
	name := blobName(partition, at, s.every)
	for {
		meta := map[string]string{"readings": strconv.Itoa(t.readings), "period": strconv.FormatInt(period, 10), "partition": partition}
		version, err := s.put(ctx, name, t.version, t.appendTo(nil, partition, at.UTC()), meta)
		if !errors.Is(err, errConflict) {
			if err == nil {
				t.version = version
			}
			return err
		}
		found, err := s.finished(ctx, name)
		if err != nil {
			return err
		}
		t.merge(found.tally)
		t.version = found.version
	}
}

// finished reads a period's blob; there is nothing in it if there is none.
func (s *storage) finished(ctx context.Context, name string) (written, error) {
	body, version, err := s.get(ctx, name)
	if err != nil || version == "" {
		return written{tally: newTally()}, err
	}
	all, err := readTallies(bytes.NewReader(body))
	if err != nil || len(all) != 1 {
		return written{}, fmt.Errorf("read %s, which has %d periods: %w", name, len(all), err)
	}
	all[0].version = version
	return all[0], nil
}

// errConflict: the blob is in another version than the one expected.
var errConflict = errors.New("the blob was replaced by somebody else")

// put replaces a blob in a known version; an empty one says that there must be none.
func (s *storage) put(ctx context.Context, name, version string, body []byte, metadata map[string]string) (string, error) {
	conditions := &blob.ModifiedAccessConditions{}
	if version == "" {
		any := azcore.ETagAny
		conditions.IfNoneMatch = &any
	} else {
		tag := azcore.ETag(version)
		conditions.IfMatch = &tag
	}
	meta := map[string]*string{}
	for k, v := range metadata {
		meta[k] = &v
	}
	done, err := s.container.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: conditions}, Metadata: meta,
	})
	switch {
	case bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists):
		return "", errConflict
	case err != nil:
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return string(*done.ETag), nil
}

// get reads a blob; the version is empty if there is none.
func (s *storage) get(ctx context.Context, name string) (body []byte, version string, err error) {
	got, err := s.container.NewBlobClient(name).DownloadStream(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	defer got.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(got.Body); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	return b.Bytes(), string(*got.ETag), nil
}
