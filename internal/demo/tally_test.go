package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// S: what is read or sent twice is counted once.
func TestATallyCountsOnce(t *testing.T) {
	one := newTally()
	testkit.That(t, one.add("h-000001", motion, 3), "a first reading is not counted")
	testkit.That(t, !one.add("h-000001", motion, 3), "the same is counted again")
	one.add("h-000001", entrance, 1)
	one.add("h-000002", motion, 0)
	other := newTally()
	other.add("h-000002", motion, 0)
	other.add("h-000003", monoxide, 7)
	one.merge(other)
	one.merge(other)
	testkit.Equal(t, one.readings, 4, "readings of both")
	testkit.Equal(t, len(one.lines), 3, "homes of both")
}

func TestATallyIsWrittenAndRead(t *testing.T) {
	one, two := newTally(), newTally()
	one.add("h-000001", motion, 3)
	one.add("h-000001", glass, 1)
	two.add("h-000002", window, 0)
	text := two.appendTo(one.appendTo(nil, "7", noon), "7", noon.Add(time.Minute))
	testkit.Equal(t, string(text), `{"partition":"7","period":"2026-01-31T12:00:00Z","homes":1,"readings":2}
{"home":"h-000001","motion":3,"glass":1}
{"partition":"7","period":"2026-01-31T12:01:00Z","homes":1,"readings":1}
{"home":"h-000002","window":0}
`)
	all, err := readTallies(bytes.NewReader(text))
	testkit.Must(t, err)
	testkit.MustEqual(t, len(all), 2, "periods")
	testkit.Equal(t, string(all[1].appendTo(all[0].appendTo(nil, "7", all[0].head.Period), "7", all[1].head.Period)), string(text), "what was read, written again")
}

func TestWhatStandsTwiceIsSeen(t *testing.T) {
	all, err := readTallies(strings.NewReader(`{"partition":"7","period":"2026-01-31T12:00:00Z","homes":2,"readings":2}
{"home":"h-000001","motion":3}
{"home":"h-000001","motion":3}
`))
	testkit.Must(t, err)
	testkit.Equal(t, all[0].repeats, 1, "readings that stand there again")
	for _, bad := range []string{`{"home":"h-000001"}`, `{"partition":7}`, "{\"partition\":\"7\"}\nnonsense"} {
		_, err := readTallies(strings.NewReader(bad))
		testkit.That(t, err != nil, "%q is read without an error", bad)
	}
}

func TestNamesOfBlobs(t *testing.T) {
	testkit.Equal(t, blobName("7", noon, time.Minute), "2026/01/31/12/00/07.jsonl")
	testkit.Equal(t, blobName("12", noon.Add(20*time.Second), 20*time.Second), "2026/01/31/12/00-20/12.jsonl")
}
