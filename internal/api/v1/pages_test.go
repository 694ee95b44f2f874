package v1

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1: of a hub with many partitions one can have a page, which tells of the next, and some of what is known
// of each: a small answer, where all of it is a large one.
func TestPagesOfPartitions(t *testing.T) {
	y := newYard(t)
	y.hub("homes", 1024)
	const path = "/api/v1/hubs/homes/partitions"
	whole := y.want(200, "GET", path, nil)
	testkit.Equal(t, len(read[map[string][]admin.Partition](t, whole)["partitions"]), 1024, "partitions of an answer that has nothing else")

	var ids []string
	pages := 0
	for after := ""; pages == 0 || after != ""; pages++ {
		page := read[admin.PartitionPage](t, y.want(200, "GET", path+"?limit=300&after="+after, nil))
		testkit.Equal(t, page.Total, 1024)
		for _, p := range page.Partitions {
			ids = append(ids, p.ID)
		}
		after = page.Next
	}
	testkit.Equal(t, pages, 4)
	testkit.That(t, len(ids) == 1024 && ids[300] == "300" && ids[1023] == "1023", "all pages have %d partitions", len(ids))
	rest := read[admin.PartitionPage](t, y.want(200, "GET", path+"?after=1020", nil))
	testkit.That(t, len(rest.Partitions) == 3 && rest.Next == "" && rest.Partitions[0].LastOffset == "-1", "the last ones: %+v", rest)

	lean := y.want(200, "GET", path+"?fields=last,empty", nil)
	rows := read[map[string][]map[string]any](t, lean)["partitions"]
	testkit.Equal(t, len(rows), 1024)
	testkit.Equal(t, fmt.Sprint(rows[7]), "map[empty:true id:7 last:-1]")
	testkit.That(t, 3*len(lean.body) < len(whole.body), "%d bytes with some members, and %d with all", len(lean.body), len(whole.body))

	for _, query := range []string{"limit=0", "limit=some", "after=1024", "after=x", "fields=nothing", "fields=id,", "fields=ID"} {
		y.refused(400, "bad-request", "GET", path+"?"+query, nil)
	}
	y.want(404, "GET", "/api/v1/hubs/nowhere/partitions?limit=1", nil)
}

// P6: the table of a group has pages of its partitions, and what it tells of all stays as it is.
func TestPagesOfOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.owned(1)
		all := y.ownership("")
		first, second := y.ownership("?limit=1"), y.ownership("?limit=1&after=0")
		testkit.That(t, first.Next == "0" && second.Next == "" && all.Next == "", "next: %q, %q, %q", first.Next, second.Next, all.Next)
		testkit.Deep(t, append(first.Partitions, second.Partitions...), all.Partitions)
		testkit.That(t, second.LagEvents == all.LagEvents && len(second.Instances) == len(all.Instances), "what it tells of all: %+v", second)

		some := read[struct{ Partitions []map[string]any }](t, y.want(200, "GET", ownershipPath+"?fields=owner,lagEvents", nil))
		testkit.Equal(t, fmt.Sprint(some.Partitions), "[map[lagEvents:2 owner:worker partition:0] map[lagEvents:0 partition:1]]")
		for _, query := range []string{"?limit=0", "?after=2", "?fields=lag", "?watch=true&after=2"} {
			y.refused(400, "bad-request", "GET", ownershipPath+query, nil)
		}

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, data := y.watchOwnership(ctx, "&limit=1&fields=owner").next()
		testkit.That(t, strings.Contains(string(data), `"partitions":[{"owner":"worker","partition":"0"}]`), "watched: %s", data)
		cancel()
		synctest.Wait()
	})
}
