package azblob_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
	"github.com/eventyard/eventyard/processor/memory"
)

const functions = `{"PartitionId":"0","Owner":"f","Token":"t","Epoch":3,"Offset":"640","SequenceNumber":16}`

func TestCheckpointsOfOlderFunctionsAreReadWhereThereIsNoNewer(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	upload(t, c, "Space.servicebus.windows.net/Orders/$Default/0", functions)
	s := azblob.New(c, azblob.Config{Legacy: true})
	if got := checkpoint(t, s, "0"); got.Sequence != 16 || got.Offset != "640" || got.Version != "" || got.Updated.IsZero() {
		t.Errorf("we read %+v", got)
	}
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	cp := begin(t, s, l)
	if cp.Sequence != 16 || cp.Offset != "640" {
		t.Errorf("we begin at %+v", cp)
	}
	cp.Sequence, cp.Offset = 17, "680"
	save(t, s, l, cp)
	if got := checkpoint(t, s, "0"); got.Sequence != 17 {
		t.Errorf("we read %+v though there is a newer one", got)
	}
	if got := begin(t, s, l); got.Sequence != 17 {
		t.Errorf("we begin at %+v though there is a newer one", got)
	}
}

func TestCheckpointsOfOlderFunctionsAreLeftAloneUnlessAskedFor(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	upload(t, c, "Space.servicebus.windows.net/Orders/$Default/0", functions)
	s := azblob.New(c, azblob.Config{})
	if got, err := s.Checkpoints(t.Context(), group); err != nil || len(got) != 0 {
		t.Errorf("we read %+v, %v", got, err)
	}
	if got := begin(t, s, claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})); got.Sequence != -1 || got.Offset != "" {
		t.Errorf("we begin at %+v", got)
	}
}

func TestAnOlderCheckpointThatCannotBeReadIsAnErrorAndNotNone(t *testing.T) { // P3
	c := newContainer(t, azurite(t), nil)
	upload(t, c, "Space.servicebus.windows.net/Orders/$Default/0", "{")
	s := azblob.New(c, azblob.Config{Legacy: true})
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	if got, err := s.Begin(t.Context(), group, l); err == nil {
		t.Errorf("begin gave %+v", got)
	}
	if got, err := s.Checkpoints(t.Context(), group); err == nil {
		t.Errorf("checkpoints are %+v", got)
	}
}

// What other programs wrote into metadata, as the service gives it back.
func TestMetadataOfOtherDialectsIsReadAndKept(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	s := azblob.New(c, azblob.Config{PathCase: azblob.AsGiven})
	for partition, one := range map[string]struct {
		meta     map[string]string
		sequence int64
		offset   string
	}{
		"0": {map[string]string{"SequenceNumber": "12", "Offset": "480"}, 12, "480"},
		"1": {map[string]string{"sequencenumber": "12", "offset": "no offset"}, 12, ""},
		"2": {map[string]string{"sequencenumber": "-9223372036854775808", "offset": "480"}, -1, "480"},
		"3": {map[string]string{"sequencenumber": "3", "offset": "3:128:9", "clientidentifier": "net"}, 3, "3:128:9"},
		"4": {map[string]string{"offset": "480"}, -1, "480"},
		"5": {nil, -1, ""},
	} {
		t.Run(partition, func(t *testing.T) {
			name := "Space.servicebus.windows.net/Orders/$Default/checkpoint/" + partition
			put(t, c, name, one.meta)
			check := func(got processor.Checkpoint) {
				t.Helper()
				if got.Sequence != one.sequence || got.Offset != one.offset || got.Version == "" {
					t.Errorf("metadata %v is read as %+v", one.meta, got)
				}
			}
			check(checkpoint(t, s, partition))
			l := claim(t, s, processor.Lease{Partition: partition, Owner: "a", Epoch: 1})
			check(begin(t, s, l))
			check(begin(t, s, l)) // as Begin has written it
			if one.meta["clientidentifier"] != "" {
				if got := list(t, c)[name]; got != "clientidentifier=net offset=3:128:9 sequencenumber=3, 0 bytes" {
					t.Errorf("begin has made it %s", got)
				}
			}
		})
	}
}

func put(t *testing.T, c *container.Client, name string, meta map[string]string) {
	t.Helper()
	values := map[string]*string{}
	for key, value := range meta {
		values[key] = to.Ptr(value)
	}
	testkit.Must(t, testkit.Err(c.NewBlockBlobClient(name).UploadBuffer(t.Context(), nil, &blockblob.UploadBufferOptions{Metadata: values})))
}

func TestAHostsContainerIsImportedIntoAnyStore(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	for name, body := range map[string]string{
		"$Default/0":             `{"PartitionId":"0","Owner":"h","Token":"t","Epoch":3,"Offset":"640","SequenceNumber":16}`,
		"$Default/1":             `{"offset":"96","sequenceNumber":2,"partitionId":"1","epoch":3,"owner":"j","token":""}`,
		"2":                      `{"partitionID":"2","checkpoint":{"offset":"1024","sequenceNumber":40}}`,
		"dapr-Orders-$Default-3": `{"partitionID":"3","checkpoint":{"offset":"11","sequenceNumber":1}}`,
		"$Default/4":             `{"PartitionId":"4","Offset":"","SequenceNumber":0}`, // no checkpoint yet
		"other/0":                `not ours to read`,
		"$Default/info":          `nor this`,
	} {
		t.Run(name, func(t *testing.T) {
			upload(t, c, name, body)
		})
	}
	s := memory.New()
	cfg := azblob.ImportConfig{Group: group}
	done := imported(t, c, cfg, s)
	testkit.MustEqual(t, len(done), 4, "imported %+v", done)
	for partition, want := range map[string]int64{"0": 16, "1": 2, "2": 40, "3": 1} {
		t.Run(partition, func(t *testing.T) {
			if got := checkpoint(t, s, partition); got.Sequence != want || got.Offset == "" {
				t.Errorf("partition %s is at %+v, want %d", partition, got, want)
			}
		})
	}
	for _, one := range imported(t, c, cfg, s) { // once more
		if one.Written {
			t.Errorf("%+v was written again", one)
		}
	}
}

func TestAnImportKeepsWhatIsNewerUnlessAsked(t *testing.T) { // P8
	c := newContainer(t, azurite(t), nil)
	upload(t, c, "old-$Default/0", `{"PartitionId":"0","Offset":"640","SequenceNumber":16}`)
	for name, one := range map[string]struct {
		had       processor.Checkpoint
		overwrite bool
		want      int64
	}{
		"one before":                        {processor.Checkpoint{Sequence: 15, Offset: "1"}, false, 16},
		"the same":                          {processor.Checkpoint{Sequence: 16, Offset: "x"}, false, 16},
		"one after":                         {processor.Checkpoint{Sequence: 17, Offset: "1"}, false, 17},
		"one that cannot be compared":       {processor.Checkpoint{Sequence: -1, Offset: "1"}, false, -1},
		"one after, but asked":              {processor.Checkpoint{Sequence: 17, Offset: "1"}, true, 16},
		"one not to be compared, but asked": {processor.Checkpoint{Sequence: -1, Offset: "1"}, true, 16},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.New()
			one.had.Partition = "0"
			testkit.Must(t, testkit.Err(s.Force(t.Context(), group, one.had)))
			done := imported(t, c, azblob.ImportConfig{Group: group, Prefix: "old-", Overwrite: one.overwrite}, s)
			if got := checkpoint(t, s, "0"); len(done) != 1 || got.Sequence != one.want || done[0].Had.Sequence != one.had.Sequence {
				t.Errorf("%s: %+v made it %+v, want %d", name, done, got, one.want)
			}
		})
	}
}

func TestAnImportThatCannotReadAllWritesNothing(t *testing.T) { // P8
	for name, second := range map[string]map[string]string{
		"no lease":              {"$Default/1": "{"},
		"of another partition":  {"$Default/1": `{"PartitionId":"2","Offset":"640","SequenceNumber":16}`},
		"two for one partition": {"0": `{"partitionID":"0","checkpoint":{"offset":"1","sequenceNumber":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, azurite(t), nil)
			upload(t, c, "$Default/0", `{"PartitionId":"0","Offset":"640","SequenceNumber":16}`)
			for blob, body := range second {
				upload(t, c, blob, body)
			}
			s := memory.New()
			if done, err := azblob.Import(t.Context(), c, azblob.ImportConfig{Group: group}, s); err == nil {
				t.Errorf("%s: imported %+v", name, done)
			}
			if got, err := s.Checkpoints(t.Context(), group); err != nil || len(got) != 0 {
				t.Errorf("%s: there is %+v, %v", name, got, err)
			}
		})
	}
}

func imported(t *testing.T, c *container.Client, cfg azblob.ImportConfig, into processor.Store) []azblob.Imported {
	t.Helper()
	done, err := azblob.Import(t.Context(), c, cfg, into)
	testkit.Must(t, err)
	return done
}
