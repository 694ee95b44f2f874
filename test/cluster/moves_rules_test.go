package cluster

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The judge of moves finds each kind of wrong that it looks for, and nothing in what is right.
func TestJudgeMoves(t *testing.T) {
	cursor := func(epoch, mark int) string {
		b := binary.AppendUvarint([]byte{2}, uint64(epoch))
		return string(binary.AppendUvarint(append(b, 1, 'a'), uint64(mark)))
	}
	book := func(epoch, next int) string {
		return fmt.Sprintf(`{"v":1,"epoch":%d,"cursors":{"60":{"next":%d}}}`, epoch, next)
	}
	checkpoint := func(epoch, fence, sequence int) string {
		return fmt.Sprintf(`{"v":1,"epoch":%d,"fence":%d,"sequence":%d}`, epoch, fence, sequence)
	}
	lease := func(owner string, epoch int) string {
		return fmt.Sprintf(`{"v":1,"owner":%q,"epoch":%d}`, owner, epoch)
	}
	const deleted = "deleted"
	tests := map[string]struct {
		key    string
		values []string
		want   string
	}{
		"cursors move":                      {"grid/cursors/0a/t-orders/0", []string{cursor(1, 5), cursor(1, 6), cursor(2, 6), cursor(2, 9)}, ""},
		"an old epoch moves a cursor":       {"grid/cursors/0a/t-orders/0", []string{cursor(1, 5), cursor(2, 5), cursor(1, 6)}, "under epoch 1"},
		"a cursor goes back":                {"grid/cursors/0a/t-orders/0", []string{cursor(1, 5), cursor(2, 4)}, "goes back from 5 to 4"},
		"a cursor is removed and made anew": {"grid/cursors/0a/t-orders/0", []string{cursor(2, 5), deleted, cursor(1, 0)}, ""},
		"a cursor without an epoch":         {"grid/cursors/0a/t-orders/0", []string{"\x01"}, "no epoch"},
		"a book moves":                      {"grid/tiers/0a", []string{book(1, 5), book(2, 5), book(2, 6)}, ""},
		"an old epoch writes a book":        {"grid/shelves/0a", []string{book(2, 5), book(1, 6)}, "under epoch 1"},
		"an old epoch writes dead letters":  {"grid/dead/s1", []string{`{"epoch":2,"written":3}`, `{"epoch":1,"written":4}`}, "under epoch 1"},
		"checkpoints":                       {"records/orders/g/checkpoint/0", []string{checkpoint(0, 1, -1), checkpoint(1, 1, 7), checkpoint(1, 2, 7), checkpoint(2, 2, 8)}, ""},
		"a checkpoint behind the fence":     {"records/orders/g/checkpoint/0", []string{checkpoint(1, 2, 7), checkpoint(1, 2, 8)}, "when 2 has begun"},
		"a fence falls":                     {"records/orders/g/checkpoint/0", []string{checkpoint(1, 2, 7), checkpoint(1, 1, 7)}, "fence 1"},
		"a checkpoint goes back":            {"records/orders/g/checkpoint/0", []string{checkpoint(1, 1, 7), checkpoint(2, 2, 6)}, "goes back from 7 to 6"},
		"leases":                            {"records/yard-shards/$shards/lease/7", []string{lease("a", 1), lease("", 1), lease("b", 2)}, ""},
		"two have an epoch":                 {"records/yard-shards/$shards/lease/7", []string{lease("a", 1), lease("b", 1)}, `which "a" had`},
		"a lease's epoch falls":             {"records/yard-shards/$shards/lease/7", []string{lease("a", 2), lease("", 1)}, "under epoch 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var all []move
			for i, value := range tt.values {
				all = append(all, move{seq: uint64(10 + i), before: uint64(9 + i), deleted: value == deleted, value: []byte(value)})
			}
			report, err := judgeMoves(tt.key, all)
			got := fmt.Sprint(err)
			testkit.That(t, strings.Contains(got, tt.want) && (err == nil) == (tt.want == ""), "got %q, want %q", got, tt.want)
			testkit.Equal(t, report.missed, 0, "missed")
		})
	}
	report, err := judgeMoves("grid/tiers/0a", []move{{seq: 3, value: []byte(book(1, 1))}, {seq: 9, before: 7, value: []byte(book(4, 1))}})
	testkit.Check(t, err)
	testkit.Equal(t, report, moveReport{missed: 1, epochs: 2})
}

// Entries are read in both versions, and one that was stored again follows the one that it repeats.
func TestReadMove(t *testing.T) {
	const key = "records/yard-shards/$shards/lease/7"
	message := func(version byte, before uint64, header ...byte) []byte {
		b := binary.BigEndian.AppendUint64([]byte{version, 1}, 77) // a value, and its nonce
		b = binary.BigEndian.AppendUint64(b, before)
		b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
		b = append(append(b, header...), key+`{"v":1,"owner":"a","epoch":3}`...)
		return append(b, "four"...) // the checksum
	}
	was := []byte{0, 0, 0, 0, 0, 0, 0, 5}
	var all []move
	for seq, b := range map[uint64][]byte{5: message(1, 0), 9: message(2, 5, was...)} {
		got, one, err := readMove(seq, b)
		testkit.MustEqual(t, fmt.Sprint(got, err), key+"<nil>", "message %d", seq)
		testkit.Equal(t, string(one.value), `{"v":1,"owner":"a","epoch":3}`, "message %d", seq)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b move) int { return cmp.Compare(a.seq, b.seq) })
	report, err := judgeMoves(key, all)
	testkit.Check(t, err)
	testkit.Equal(t, report, moveReport{epochs: 1})
	for name, b := range map[string][]byte{
		"nothing": nil, "a later version": message(3, 0), "no room for what it was": message(2, 5)[:26], "cut off": message(2, 5, was...)[:60],
	} {
		_, _, err := readMove(9, b)
		testkit.That(t, err != nil, "%s is read", name)
	}
}
