package v1

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V2, H10: events are found by a text or a condition, within a bound that the answer tells.
func TestEventsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := openYard(t)
		y.openHandler()
		y.want(201, "POST", "/api/v1/hubs", `{"name":"homes","partitions":1}`)
		path := "/api/v1/hubs/homes/partitions/0/events"
		for i := range 10 {
			y.want(201, "POST", "/api/v1/hubs/homes/events", fmt.Sprintf(`[{"body":{"sensor":"Glass","n":%d},"key":"h%d"}]`, i, i))
			y.want(201, "POST", "/api/v1/hubs/homes/events", `[{"body":"smoke","properties":{"room":"Kitchen"}}]`)
		}
		for find, want := range map[string]int{
			"gLASS": 10, "kitchen": 10, "h7": 1, "nothing": 0, "data.n NumberLessThan 3": 3, "subject StringIn h4,h5": 2, `"data.n NumberLess 3"`: 0, `"sensor":"glass"`: 10, "type of glass": 0,
		} {
			got := read[admin.FoundPage](t, y.want(200, "GET", path+"?find="+url.QueryEscape(find), nil))
			testkit.That(t, len(got.Events) == want && got.Looked == 20 && got.End && got.Next == 20, "%s: %d of %+v", find, len(got.Events), got)
		}
		for find, want := range map[string]string{
			"data.n NumberLess 3": `there is no operator "NumberLess"`, "data.n above 3": `there is no operator "above"`, "subject = h4": `there is no operator "="`,
			"data.n NumberLessThan three": "NumberLessThan", "data.n NumberLessThan": "NumberLessThan",
		} {
			answer := string(y.want(400, "GET", path+"?find="+url.QueryEscape(find), nil).body)
			for _, says := range []string{want, "StringContains", "IsNotNull", "in double quotes"} {
				testkit.That(t, strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), says), "%s: it does not say %q: %s", find, says, answer)
			}
		}
		some := read[admin.FoundPage](t, y.want(200, "GET", path+"?find=glass&max=3&from=2", nil))
		testkit.That(t, len(some.Events) == 3 && !some.End && some.Next == 7 && some.Looked == 5, "some: %+v", some)
		y.want(400, "GET", path+"?find=x&wait=1s", nil)
		y.want(400, "GET", path+"?find="+strings.Repeat("x", maxFindBytes+1), nil)

		many := "[" + strings.Repeat(`{"body":"x"},`, 2999) + `{"body":"x"}]`
		for range 4 {
			y.want(201, "POST", "/api/v1/hubs/homes/events", many)
		}
		far := read[admin.FoundPage](t, y.want(200, "GET", path+"?find=nowhere", nil))
		testkit.That(t, far.Looked == maxLooked && !far.End && far.Next == maxLooked, "far: %+v", far)
	})
}

// V2: what a partition gets in a second is of the last minute, by its time index, and told to who asks for it.
func TestRatesOfPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := openYard(t)
		y.openHandler()
		y.want(201, "POST", "/api/v1/hubs", `{"name":"homes","partitions":2}`)
		rates := func() (all []string) {
			for _, p := range read[admin.PartitionPage](t, y.want(200, "GET", "/api/v1/hubs/homes/partitions?rates=true", nil)).Partitions {
				all = append(all, fmt.Sprint(*p.Published))
			}
			return all
		}
		for range 3 {
			y.want(201, "POST", "/api/v1/hubs/homes/events?partition=1", `[{"body":"x"}]`)
		}
		time.Sleep(2 * time.Minute)
		testkit.Slices(t, rates(), []string{"0", "0"})
		for range 6 {
			y.want(201, "POST", "/api/v1/hubs/homes/events?partition=1", `[{"body":"x"}]`)
		}
		time.Sleep(time.Second)
		testkit.Slices(t, rates(), []string{"0", "0.1"})
		plain := read[admin.PartitionPage](t, y.want(200, "GET", "/api/v1/hubs/homes/partitions", nil)).Partitions
		testkit.That(t, plain[1].Published == nil, "it is told unasked")
		y.want(400, "GET", "/api/v1/hubs/homes/partitions?rates=perhaps", nil)
	})
}

// V2: a density counts each event once, in the bucket of its time, without reading it.
func TestDensity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := openYard(t)
		y.openHandler()
		y.want(201, "POST", "/api/v1/hubs", `{"name":"homes","partitions":3}`)
		began := time.Now()
		for hour := range 6 {
			for p := range 3 {
				for range hour * (p + 1) {
					y.want(201, "POST", fmt.Sprintf("/api/v1/hubs/homes/events?partition=%d", p), `[{"body":"x"}]`)
				}
			}
			time.Sleep(time.Hour)
		}
		at := func(d time.Duration) string { return began.Add(d).UTC().Format(time.RFC3339) }
		got := read[admin.Density](t, y.want(200, "GET", "/api/v1/hubs/homes/density?buckets=6&from="+at(0)+"&to="+at(6*time.Hour), nil))
		testkit.MustEqual(t, len(got.Buckets), 6)
		for hour, b := range got.Buckets {
			testkit.That(t, b.Events == int64(6*hour) && b.From.Equal(began.Add(time.Duration(hour)*time.Hour)), "hour %d: %+v", hour, b)
		}
		testkit.Equal(t, got.Total, 90)
		got = read[admin.Density](t, y.want(200, "GET", "/api/v1/hubs/homes/density?partition=1", nil))
		testkit.That(t, got.Total == 30 && len(got.Buckets) == defaultBuckets && got.From.Equal(began.Add(time.Hour)), "one partition: %+v", got)
		got = read[admin.Density](t, y.want(200, "GET", "/api/v1/hubs/homes/density?buckets=99999&from=2h", nil))
		testkit.That(t, got.Total == 24+30 && len(got.Buckets) == maxBuckets, "the last two hours: %d of %d", got.Total, len(got.Buckets))
		y.want(400, "GET", "/api/v1/hubs/homes/density?from=1h&to=2h", nil)
		y.want(400, "GET", "/api/v1/hubs/homes/density?from=x", nil)
		y.want(404, "GET", "/api/v1/hubs/nowhere/density", nil)
		y.want(201, "POST", "/api/v1/hubs", `{"name":"empty"}`)
		testkit.Equal(t, read[admin.Density](t, y.want(200, "GET", "/api/v1/hubs/empty/density", nil)).Total, 0)
	})
}
