package legacy_test

import (
	"math"
	"testing"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/legacy"
)

// leases are texts as each host writes them.
var leases = []struct {
	name, text string
	want       legacy.Lease
	sequence   int64 // of the checkpoint; -1 with an empty offset: none
	offset     string
}{
	{"the host for .NET",
		`{"PartitionId":"7","Owner":"host-1","Token":"6c3a","Epoch":12,"Offset":"8589936128","SequenceNumber":4711}`,
		legacy.Lease{Partition: "7", Owner: "host-1", Epoch: 12, Offset: "8589936128", Sequence: 4711}, 4711, "8589936128"},
	{"the host for .NET before its first checkpoint",
		`{"PartitionId":"0","Owner":"","Token":"","Epoch":0,"Offset":"","SequenceNumber":0}`,
		legacy.Lease{Partition: "0"}, -1, ""},
	{"the host for .NET with nulls",
		`{"Offset":null,"SequenceNumber":0,"PartitionId":"3","Owner":null,"Token":null,"Epoch":0}`,
		legacy.Lease{Partition: "3"}, -1, ""},
	{"the host for .NET with the first event done",
		`{"PartitionId":"1","Owner":"h","Token":"t","Epoch":1,"Offset":"0","SequenceNumber":0}`,
		legacy.Lease{Partition: "1", Owner: "h", Epoch: 1, Offset: "0"}, 0, "0"},
	{"the host for Java",
		`{"offset":"96","sequenceNumber":2,"partitionId":"15","epoch":3,"owner":"jvm-9","token":"aa-bb"}`,
		legacy.Lease{Partition: "15", Owner: "jvm-9", Epoch: 3, Offset: "96", Sequence: 2}, 2, "96"},
	{"the host for Java that was never owned",
		`{"partitionId":"15","epoch":-1,"owner":"","token":"","sequenceNumber":0}`,
		legacy.Lease{Partition: "15", Epoch: -1}, -1, ""},
	{"the host for Go",
		`{"partitionID":"2","epoch":5,"owner":"go","checkpoint":{"offset":"1024","sequenceNumber":40,"enqueueTime":"2020-01-02T03:04:05Z"},"state":"leased","token":"x"}`,
		legacy.Lease{Partition: "2", Owner: "go", Epoch: 5, Offset: "1024", Sequence: 40}, 40, "1024"},
	{"the host for Go at the start of the stream",
		`{"partitionID":"2","epoch":1,"owner":"go","checkpoint":{"offset":"-1","sequenceNumber":0,"enqueueTime":"0001-01-01T00:00:00Z"},"state":"available","token":""}`,
		legacy.Lease{Partition: "2", Owner: "go", Epoch: 1, Offset: "-1"}, -1, ""},
	{"the host for Go at the end of the stream",
		`{"partitionID":"2","checkpoint":{"offset":"@latest","sequenceNumber":0}}`,
		legacy.Lease{Partition: "2", Offset: "@latest"}, -1, ""},
	{"the host for Go without a checkpoint",
		`{"partitionID":"2","epoch":1,"owner":"go","checkpoint":null}`,
		legacy.Lease{Partition: "2", Owner: "go", Epoch: 1, Sequence: math.MinInt64}, -1, ""},
	{"the host for Python",
		`{"partition_id":"4","epoch":8,"owner":"py","token":"t","sequence_number":77,"offset":"5000","event_processor_context":null}`,
		legacy.Lease{Partition: "4", Owner: "py", Epoch: 8, Offset: "5000", Sequence: 77}, 77, "5000"},
	{"an offset that is a number in the text",
		`{"partition_id":"4","sequence_number":"77","offset":5000}`,
		legacy.Lease{Partition: "4", Offset: "5000", Sequence: 77}, 77, "5000"},
	{"the words for no offset",
		`{"PartitionId":"0","Offset":"no offset","SequenceNumber":31}`,
		legacy.Lease{Partition: "0", Offset: "no offset", Sequence: 31}, 31, ""},
	{"a sequence number that was not known",
		`{"PartitionId":"0","Offset":"640","SequenceNumber":-9223372036854775808}`,
		legacy.Lease{Partition: "0", Offset: "640", Sequence: math.MinInt64}, -1, "640"},
	{"an offset of a geo-replicated namespace",
		`{"PartitionId":"0","Offset":"3:128:9","SequenceNumber":9}`,
		legacy.Lease{Partition: "0", Offset: "3:128:9", Sequence: 9}, 9, "3:128:9"},
	{"a text that begins with a byte order mark",
		"\ufeff" + `{"PartitionId":"0","Offset":"1","SequenceNumber":1}`,
		legacy.Lease{Partition: "0", Offset: "1", Sequence: 1}, 1, "1"},
	{"a text of no fields that are known", `{"something":"else"}`, legacy.Lease{Sequence: math.MinInt64}, -1, ""},
}

func TestLeasesOfAllHostsAreRead(t *testing.T) { // P8
	for _, l := range leases {
		t.Run(l.name, func(t *testing.T) {
			got, err := legacy.Parse([]byte(l.text))
			if err != nil || got != l.want {
				t.Fatalf("read %+v, %v, want %+v", got, err, l.want)
			}
			c, found := got.Checkpoint("9")
			want := processor.Checkpoint{Partition: "9", Sequence: l.sequence, Offset: l.offset}
			if c != want || found != (l.sequence >= 0 || l.offset != "") {
				t.Errorf("checkpoint is %+v, %v, want %+v", c, found, want)
			}
		})
	}
}

func TestWhatIsNoLeaseIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "null", "[]", `"text"`, "7", "{", `{"Offset":{}}`, `{"SequenceNumber":"many"}`, `{"SequenceNumber":1.5}`,
		`{"SequenceNumber":9223372036854775808}`, `{"Epoch":true}`, `{"checkpoint":"later"}`, "no offset",
		`{"Offset":"1","offset":"2"}`, `{"SequenceNumber":1,"sequence_number":2}`,
	} {
		if got, err := legacy.Parse([]byte(text)); err == nil {
			t.Errorf("%s was read as %+v", text, got)
		}
	}
}

func TestMetadataOfAllDialectsIsRead(t *testing.T) { // P8
	for name, c := range map[string]struct {
		meta     map[string]string
		sequence int64
		offset   string
	}{
		"as the SDKs write it":              {map[string]string{"sequencenumber": "12", "offset": "480"}, 12, "480"},
		"with a client identifier":          {map[string]string{"sequencenumber": "12", "offset": "480", "clientidentifier": "x"}, 12, "480"},
		"in capitals":                       {map[string]string{"SequenceNumber": "12", "Offset": "480"}, 12, "480"},
		"as a header spells it":             {map[string]string{"Sequencenumber": "12", "Offset": "480"}, 12, "480"},
		"without an offset":                 {map[string]string{"sequencenumber": "12"}, 12, ""},
		"without a sequence number":         {map[string]string{"offset": "480"}, -1, "480"},
		"with the words for no offset":      {map[string]string{"sequencenumber": "12", "offset": "no offset"}, 12, ""},
		"with the least sequence number":    {map[string]string{"sequencenumber": "-9223372036854775808", "offset": "480"}, -1, "480"},
		"with an empty sequence number":     {map[string]string{"sequencenumber": "", "offset": "480"}, -1, "480"},
		"with an offset that is no number":  {map[string]string{"sequencenumber": "3", "offset": "3:128:9"}, 3, "3:128:9"},
		"with an offset before all numbers": {map[string]string{"sequencenumber": "-1", "offset": "-1"}, -1, "-1"},
		"with nothing":                      {nil, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := legacy.Metadata("3", c.meta)
			if want := (processor.Checkpoint{Partition: "3", Sequence: c.sequence, Offset: c.offset}); err != nil || got != want {
				t.Errorf("%s: read %+v, %v, want %+v", name, got, err, want)
			}
		})
	}
	both := map[string]string{"OFFSET": "1", "offset": "480", "Offset": "2"}
	if got, err := legacy.Metadata("3", both); err != nil || got.Offset != "480" {
		t.Errorf("of several spellings %+v was read, %v, and not today's", got, err)
	}
	if got, err := legacy.Metadata("3", map[string]string{"sequencenumber": "many", "offset": "1"}); err == nil {
		t.Errorf("a sequence number that is none was read as %+v", got)
	}
}

func TestDaprNamesAreTakenApart(t *testing.T) { // P8
	for _, c := range []struct {
		blob, hub, group, partition string
		ours                        bool
	}{
		{"dapr-orders-billing-3", "orders", "billing", "3", true},
		{"dapr-my-orders-$Default-12", "my-orders", "$Default", "12", true},
		{"dapr-orders-billing-3", "orders", "bill", "", false},
		{"dapr-orders-billing-2-3", "orders", "billing", "", false}, // of group billing-2
		{"dapr-orders-billing-", "orders", "billing", "", false},
		{"orders-billing-3", "orders", "billing", "", false},
	} {
		t.Run(c.blob, func(t *testing.T) {
			got, ours := legacy.DaprPartition(c.blob, c.hub, c.group)
			if ours != c.ours || (ours && got != c.partition) {
				t.Errorf("%s of %s and %s: partition %q, %v", c.blob, c.hub, c.group, got, ours)
			}
			if ours && legacy.DaprBlob(c.hub, c.group, got) != c.blob {
				t.Errorf("%s is named %s", c.blob, legacy.DaprBlob(c.hub, c.group, got))
			}
		})
	}
}
