package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sample is an archive with one of everything, and a body of several records.
func sample(t testing.TB) []byte { return written(t, 33_000) }

func written(t testing.TB, words int) []byte {
	var out bytes.Buffer
	w, err := NewWriter(&out, Head{Program: "eventyard test", Namespace: "yard", Taken: time.UnixMilli(1000).UTC()})
	testkit.Must(t, err)
	testkit.Must(t, w.Begin(Item{Type: TypeEntries}))
	testkit.Must(t, w.Entry(meta.Entry{Key: "hubs/orders", Value: []byte(`{"name":"orders"}`), Revision: 7}))
	testkit.Must(t, w.Entry(meta.Entry{Key: "policies/a", Value: []byte("\x00sealed1keykeyke"), Revision: 3}))
	testkit.Must(t, w.End(nil))
	testkit.Must(t, w.Begin(Item{Type: TypePartition, Name: "orders-1", Partition: &Partition{Number: 2, Partitions: 4, Kind: "hub"}}))
	testkit.Must(t, w.Run(eventlog.Run{First: 5, Time: time.UnixMilli(900), Events: []eventlog.Event{{Message: []byte("a")}, {Key: []byte("k"), Message: []byte("b")}}}))
	testkit.Must(t, w.Run(eventlog.Run{First: 9, Time: time.UnixMilli(950), Form: 128, Raw: []byte("raw"), Count: 3, MaxTime: time.UnixMilli(800),
		Producer: eventlog.Producer{ID: -4, Epoch: 2, First: 77, Set: true}}))
	testkit.Must(t, w.End(func(i *Item) {
		i.Partition.First, i.Partition.Next, i.Partition.LastMillis = 5, 12, 950
		i.Partition.Lost = []Lost{{First: 7, Next: 9, Reason: "rotten"}}
	}))
	testkit.Must(t, w.Begin(Item{Type: TypeBody, Name: "0123"}))
	testkit.Must(t, testkit.Err(w.Write(bytes.Repeat([]byte("body"), words))))
	testkit.Must(t, w.End(nil))
	testkit.Must(t, w.Finish())
	return out.Bytes()
}

// readAll gives what an archive has as text, and the error that ended it.
func readAll(in io.Reader) (said []string, items []Item, err error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	for {
		part, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return said, r.Items(), nil
		case err != nil:
			return said, nil, err
		case part.Entry != nil:
			said = append(said, fmt.Sprintf("entry %s %d %q", part.Entry.Key, part.Entry.Revision, part.Entry.Value))
		case part.Run != nil:
			said = append(said, showRun(*part.Run))
		case part.Piece != nil:
			said = append(said, fmt.Sprintf("piece %d", len(part.Piece)))
		}
	}
}

func showRun(run eventlog.Run) string {
	return fmt.Sprintf("run %d %d %+v %q %d %q %d %d", run.First, run.Time.UnixMilli(), run.Producer, run.Events, run.Form, run.Raw, run.Count, run.MaxTime.UnixMilli())
}

// C7
func TestAnArchiveIsReadAsItWasWritten(t *testing.T) {
	whole := sample(t)
	said, items, err := readAll(bytes.NewReader(whole))
	testkit.Must(t, err)
	testkit.Slices(t, said, []string{
		`entry hubs/orders 7 "{\"name\":\"orders\"}"`, `entry policies/a 3 "\x00sealed1keykeyke"`,
		`run 5 900 {ID:0 Epoch:0 First:0 Set:false} [{"" "a"} {"k" "b"}] 0 "" 0 -62135596800000`,
		`run 9 950 {ID:-4 Epoch:2 First:77 Set:true} [] 128 "raw" 3 800`,
		"piece 131072", "piece 928",
	}, "what is in it")
	testkit.Equal(t, fmt.Sprint(items[0].Count, items[0].Revision, items[0].Keys), fmt.Sprint(2, 7, []string{hex.EncodeToString([]byte("keykeyke"))}), "of the entries")
	testkit.Equal(t, items[1].Count, 5, "events")

	head, listed, err := ReadList(bytes.NewReader(whole), int64(len(whole)))
	testkit.Must(t, err)
	testkit.Equal(t, head.Namespace, "yard", "whose it is")
	testkit.Deep(t, listed, items, "the list")
}

var update = flag.Bool("update", false, "write testdata anew, for a new format")

// C7: backups of older versions can be restored. A change of the format adds a file.
func TestOlderArchivesAreRead(t *testing.T) {
	name := filepath.Join("testdata", fmt.Sprintf("format%d.eyb", Format))
	if *update {
		testkit.Must(t, os.WriteFile(name, written(t, 10), 0o644))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "format*.eyb"))
	testkit.Must(t, err)
	testkit.That(t, slices.Contains(files, name), "there is no archive of the present format: go test -update writes it")
	want, _, err := readAll(bytes.NewReader(written(t, 10)))
	testkit.Must(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		testkit.Must(t, err)
		said, _, err := readAll(bytes.NewReader(content))
		testkit.Must(t, err, file)
		testkit.Slices(t, said, want, file)
	}
}

// C7: whatever is cut off, or changed, is found: no part is taken for the whole.
func TestWhatIsNotWholeIsRefused(t *testing.T) {
	whole := sample(t)
	for n := range len(whole) {
		if n > 1500 && n < len(whole)-1200 && n%4999 != 0 { // the body is long
			continue
		}
		if _, _, err := readAll(bytes.NewReader(whole[:n])); !errors.Is(err, ErrUnfinished) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
		if _, _, err := ReadList(bytes.NewReader(whole[:n]), int64(n)); !errors.Is(err, ErrUnfinished) {
			t.Fatalf("the list of %d bytes: %v", n, err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x20
		if _, _, err := readAll(bytes.NewReader(changed)); err == nil {
			t.Fatalf("byte %d was changed, and it is read", n)
		}
	}
	_, _, err := readAll(bytes.NewReader(append(bytes.Clone(whole), 0)))
	testkit.ErrorIs(t, err, ErrDamaged, "with something behind it")
}

// R6
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	newer := bytes.Clone(sample(t))
	at := bytes.Index(newer, []byte(`"format":1`))
	newer[at+9] = '9'
	length := binary.BigEndian.Uint32(newer[len(magic)+1:])
	end := len(magic) + headBytes + int(length)
	binary.BigEndian.PutUint32(newer[end:], crc32.Checksum(newer[len(magic):end], castagnoli))

	var failed bytes.Buffer
	w, err := NewWriter(&failed, Head{})
	testkit.Must(t, err)
	testkit.Must(t, w.Begin(Item{Type: TypeEntries}))
	testkit.Must(t, w.Fail("the disk is gone"))
	for name, tt := range map[string]struct {
		text string
		want error
		says string
	}{
		"nothing":      {"", ErrUnfinished, ""},
		"another file": {"PK\x03\x04", ErrForeign, ""},
		"a newer one":  {string(newer), ErrNewer, "format 9, written by eventyard test"},
		"given up":     {failed.String(), ErrFailed, "the disk is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAll(strings.NewReader(tt.text))
			testkit.ErrorIs(t, err, tt.want)
			testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
		})
	}
}

// C7: every run that a log may give comes back as it was.
func TestRuns(t *testing.T) {
	some := rapid.SliceOfN(rapid.Byte(), 0, 40)
	rapid.Check(t, func(t *rapid.T) {
		run := eventlog.Run{First: eventlog.Sequence(rapid.Int64Min(0).Draw(t, "first")), Time: time.UnixMilli(rapid.Int64Range(0, 1<<48).Draw(t, "time"))}
		if rapid.Bool().Draw(t, "produced") {
			run.Producer = eventlog.Producer{ID: rapid.Int64().Draw(t, "id"), Epoch: rapid.Int16().Draw(t, "epoch"), First: rapid.Int32().Draw(t, "number"), Set: true}
		}
		if rapid.Bool().Draw(t, "frame") {
			run.Form, run.Count = eventlog.Form(rapid.IntRange(1, 255).Draw(t, "form")), rapid.IntRange(1, 1<<31-1).Draw(t, "count")
			run.Raw, run.MaxTime = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "raw"), time.UnixMilli(rapid.Int64Range(0, 1<<48).Draw(t, "max"))
		} else {
			run.Events = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) eventlog.Event {
				return eventlog.Event{Key: some.Draw(t, "key"), Message: some.Draw(t, "message")}
			}), 1, 20).Draw(t, "events")
		}
		encoded := AppendRun(nil, run)
		back, err := parseRun(encoded, nil)
		if err != nil || showRun(back) != showRun(run) {
			t.Fatalf("%s became %s, %v", showRun(run), showRun(back), err)
		}
		for n := range encoded {
			if run.Form == eventlog.FormEvents {
				if _, err := parseRun(encoded[:n], nil); err == nil {
					t.Fatalf("%d of %d bytes are taken for a run", n, len(encoded))
				}
			}
		}
	})
}

// FuzzRead: no bytes make a reader panic, take much memory, or give what contradicts itself.
func FuzzRead(f *testing.F) {
	whole := sample(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, items, err := readAll(bytes.NewReader(text))
		if err != nil {
			return
		}
		_, listed, err := ReadList(bytes.NewReader(text), int64(len(text)))
		testkit.Must(t, err)
		testkit.Deep(t, listed, items, "the list")
	})
}

// FuzzRecords: what has a good checksum may be any bytes all the same.
func FuzzRecords(f *testing.F) {
	f.Add(AppendRun(nil, eventlog.Run{First: 1, Time: time.UnixMilli(5), Events: []eventlog.Event{{Message: []byte("x")}}}))
	f.Add(AppendRun(nil, eventlog.Run{Form: 1, Raw: []byte("x"), Count: 2, Producer: eventlog.Producer{Set: true}}))
	f.Add(appendEntry(nil, meta.Entry{Key: "a/b", Value: []byte("x"), Revision: 9}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if run, err := parseRun(payload, nil); err == nil {
			again, err := parseRun(AppendRun(nil, run), nil)
			testkit.Must(t, err)
			testkit.Equal(t, showRun(again), showRun(run), "once more")
		}
		if e, err := parseEntry(payload); err == nil {
			again, err := parseEntry(appendEntry(nil, e))
			testkit.Must(t, err)
			testkit.Deep(t, again, e, "once more")
		}
	})
}
