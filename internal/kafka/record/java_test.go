package record

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// fromJava are batches of Apache Kafka's own client; testdata/Batches.java prints them.
//
//go:embed testdata/java.txt
var fromJava string

// K4
func TestReadsWhatJavaWrote(t *testing.T) {
	want := []Record{
		{Timestamp: baseTimestamp, Key: []byte("key"), Value: []byte("value")},
		{Timestamp: baseTimestamp + 1<<40},
		{Timestamp: baseTimestamp - 5, Key: []byte{}, Value: []byte{}},
		{Timestamp: baseTimestamp, Value: bytes.Repeat([]byte("abcdefgh"), 250), Headers: []Header{
			header("a", "1"), header("", ""), {[]byte("a"), nil}, header("ä", "2"),
		}},
	}
	batches := strings.Fields(fromJava)
	testkit.MustEqual(t, len(batches), 2*5, "names and batches")
	for i := 0; i < len(batches); i += 2 {
		raw := testkit.Value(hex.DecodeString(batches[i+1]))(t)
		testkit.Must(t, testkit.Err(Check(raw)), batches[i])
		sameRecords(t, read(t, raw), want, batches[i])
		testkit.Equal(t, testkit.Value(ReadHead(raw))(t).BaseOffset, 41, batches[i])
	}
	plain := testkit.Value(hex.DecodeString(batches[1]))(t)
	Place(plain, offsetInLog, 0)
	testkit.Equal(t, string(build(want)), string(plain), "what we write, and what Java does")
}
