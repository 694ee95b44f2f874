package blob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Whatever the size of its pages, a list has each name once, as a blob or in a prefix, in
// order, as a list of all in one page has.
func TestPagesTogetherAreTheWhole(t *testing.T) {
	y := newYard(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var names []string
	for range 60 {
		var b strings.Builder
		for range 1 + rnd.IntN(6) {
			b.WriteByte("ab/%-"[rnd.IntN(5)])
		}
		names = append(names, b.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		y.put(name, nil, Conditions{})
	}
	for _, prefix := range []string{"", "a", "a/", "a//", "/", "b/a", "%", "zz"} {
		for _, delimiter := range []string{"", "/", "-"} {
			for _, size := range []int{1, 2, 7, 0} {
				want := modelList(names, prefix, delimiter)
				got := listPages(y, ListQuery{Prefix: prefix, Delimiter: delimiter, Max: size})
				if !slices.Equal(got, want) {
					t.Errorf("prefix %q, delimiter %q, pages of %d:\ngot  %q\nwant %q", prefix, delimiter, size, got, want)
				}
			}
		}
	}
}

func modelList(names []string, prefix, delimiter string) []string {
	var list []string
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if delimiter != "" {
			if first, _, cut := strings.Cut(rest, delimiter); cut {
				name = "prefix " + prefix + first + delimiter
			}
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func listPages(y *yard, q ListQuery) []string {
	y.t.Helper()
	var list []string
	for range 200 {
		page, err := y.List(y.t.Context(), box, q)
		testkit.Must(y.t, err)
		if n := len(page.Blobs) + len(page.Prefixes); q.Max > 0 && n > q.Max {
			y.t.Fatalf("a page has %d, want at most %d", n, q.Max)
		}
		for _, b := range page.Blobs {
			list = append(list, b.Name)
		}
		for _, p := range page.Prefixes {
			list = append(list, "prefix "+p)
		}
		if q.Marker = page.Next; q.Marker == "" {
			slices.Sort(list)
			return list
		}
	}
	y.t.Fatal("the list has no end")
	return nil
}

func TestContainersArePaged(t *testing.T) {
	y := newYard(t)
	for i := range 5 {
		_, err := y.CreateContainer(t.Context(), Path{Account: "other", Container: fmt.Sprintf("c-%d", i)}, nil)
		testkit.Must(t, err)
	}
	var names []string
	q := ListQuery{Max: 2, Prefix: "c-"}
	for {
		page, next, err := y.Containers(t.Context(), "other", q)
		testkit.Must(t, err)
		for _, c := range page {
			names = append(names, c.Name)
		}
		if q.Marker = next; next == "" {
			break
		}
	}
	testkit.Slices(t, names, []string{"c-0", "c-1", "c-2", "c-3", "c-4"})
}
