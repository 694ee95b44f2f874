package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V1, V4: the map has every hub and topic with who gets its events, in the colour of how they are, and says
// where nobody does.
func TestTheMapHasWhoGetsWhat(t *testing.T) {
	lists := yardLists{
		hubs: []admin.Hub{
			{Name: "sensors", Partitions: 3, Groups: []string{"aggregator", "score"}, Stats: &admin.HubStats{Published: new(6667.)}},
			{Name: "audit", Partitions: 1},
		},
		topics:        []admin.Topic{{Name: "alarms"}, {Name: yardEvents}},
		subscriptions: []admin.Subscription{{Name: "company", Topic: "alarms", State: "active", Stats: &admin.DeliveryStats{Behind: 7, Endpoint: admin.EndpointHealth{State: "probation"}}}},
		functions:     []admin.Function{{Name: "score", Hub: "sensors", Group: "score", State: "open", Lag: new(int64(12))}},
		needs:         []admin.Need{{Severity: admin.SeverityWarning, Object: admin.NeedObject{Kind: "group", Hub: "sensors", Group: "aggregator"}}},
	}
	var said []string
	for _, s := range lists.sources(noon) {
		for _, to := range s.Stops {
			said = append(said, fmt.Sprintf("%s to %s: %s %s", s.Name, to.Name, to.Tone, to.State))
		}
	}
	testkit.Diff(t, strings.Join([]string{
		"sensors to score: bad open, 12 wait",
		"sensors to aggregator: odd ",
		"audit to nobody:  ",
		"alarms to company: odd probation, 7 wait",
	}, "\n"), strings.Join(said, "\n"))
}

// V4: of many the busiest are on the map, and all that are ill; they stand by name.
func TestTheMapHasTheBusiestAndTheIll(t *testing.T) {
	var sources []source
	for i := range 60 {
		s := source{Name: fmt.Sprintf("hub-%02d", i), Rate: new(float64(i)), Stops: []stop{{Name: "well", Tone: "good"}}}
		if i == 3 {
			s.Stops = append(s.Stops, stop{Name: "ill", Tone: "bad"})
		}
		sources = append(sources, s)
	}
	chosen, more := choose(sources, mapRows)
	testkit.Equal(t, len(chosen), mapRows+1)
	testkit.Equal(t, chosen[0].Name, "hub-03")
	testkit.Equal(t, chosen[0].Stops[0].Name, "ill")
	testkit.Equal(t, chosen[1].Name, "hub-20")
	testkit.Equal(t, more, 20)
}

// V4: tracks lead from the middle of a source's rows to each of them, as wide as the rate.
func TestTracks(t *testing.T) {
	m := newMap([]source{
		{Name: "a", Stops: []stop{{Tone: "good", Rate: new(9999.)}, {Tone: "good"}, {Tone: "bad", Rate: new(0.)}}},
		{Name: "b", Stops: []stop{{}}},
	}, 0)
	var said []string
	for _, track := range m.Tracks {
		said = append(said, fmt.Sprint(track))
	}
	testkit.Diff(t, strings.Join([]string{
		"{to0-t M0 78C52 78 60 26 112 26 rail 3.4 true}",
		"{to1-t M0 78C52 78 60 78 112 78 rail 1 false}",
		"{to2-t M0 78C52 78 60 130 112 130 stopped l-bad 1 false}",
		"{to3-t M0 182C52 182 60 182 112 182 stopped l-idle 1 false}",
	}, "\n"), strings.Join(said, "\n"))
	testkit.Equal(t, m.Label, "2 sources of events, 4 readers; 1 not well")
	testkit.Equal(t, m.Height, 4*rowHeight)
}
