package demo

import (
	"fmt"
	"strings"
	"time"
)

// leversView is the page with the levers.
type leversView struct {
	*Board
	Wrong string
	Cards []card
	Every string
	Home  string
}

// card is one thing to try.
type card struct {
	Lever, Icon, Title, Expect string
	Seen                       Trial
	Buttons                    []button
	More, MoreText             string // a link to where one sees it
}

// button pulls a lever.
type button struct{ Lever, Text, Look string }

// Mark is the icon of what was seen.
func (c card) Mark() string {
	switch c.Seen.Mood {
	case moodWell:
		return "circle-check"
	case moodWaits, moodBroken:
		return "triangle-alert"
	}
	return "clock"
}

// cards are the things to try, and how they went.
func cards(b *Board, broken, away bool) []card {
	all := []card{
		{
			Lever: "kill", Icon: "skull", Title: "Kill a consumer",
			Expect:  "Its leases run out; the others take its partitions and go on from the last checkpoint.",
			Buttons: []button{{"kill", "Kill one", "danger"}, {"kill2", "Kill two", ""}},
			More:    b.Console + "hubs/" + sensorsHub + "/groups/" + aggregatorGroup, MoreText: "The group in the console",
		}, {
			Lever: "co", Icon: "plus", Title: "Add carbon monoxide sensors",
			Expect:  "A fifth sensor for each home: a quarter more events, a new type of event, a new filter, a new line on residents' pages. Then add a consumer, and see partitions move without a repeat.",
			Buttons: []button{{"co", "Add the sensor", "main"}},
		}, {
			Lever: "webhook", Icon: "unplug", Title: "Break a webhook",
			Expect:  "The alarm company answers 503 from now on. Ten failures, then probation; the resident's push goes on as before.",
			Buttons: []button{{"webhook", "Break it", "danger"}},
			More:    b.Console + "topics/" + alarmsTopic, MoreText: "The topic in the console",
		}, {
			Lever: "poison", Icon: "biohazard", Title: "Poison the stream",
			Expect:  "Events that cannot be handled. Batches are divided until only the guilty ones are put away; the rest goes on in order. 200 are too many: the circuit opens.",
			Buttons: []button{{"poison", "Poison 20", ""}, {"poison200", "Poison 200", ""}},
			More:    b.Console + "functions/" + scorer, MoreText: "The function in the console",
		}, {
			Lever: "circuit", Icon: "zap", Title: "Open the circuit",
			Expect:  "Stop what score-anomaly depends on. After ten seconds all instances stop, nothing is put away, and you get a notice with a link.",
			Buttons: []button{{"circuit", "Take the store away", "danger"}, {"resume", "Bring it back and resume", ""}},
			More:    "/mailbox", MoreText: "The mailbox",
		}, {
			Lever: "plug", Icon: "power", Title: "Pull the plug",
			Expect:  "SIGKILL to the yard itself, in mid-load, and start it again after three seconds. What was acknowledged is there.",
			Buttons: []button{{"plug", "Kill the yard", "danger"}},
		},
	}
	for i := range all {
		c := &all[i]
		c.Seen = Trial{Text: "Not tried yet."}
		if t, tried := b.trial(c.Lever); tried {
			c.Seen = t
		}
		switch {
		case c.Lever == "webhook" && broken:
			c.Buttons = []button{{"mend", "Let it answer again", "main"}}
		case c.Lever == "circuit" && away:
			c.Buttons = []button{{"resume", "Bring it back and resume", "main"}, {"store", "Only bring it back", ""}}
		case c.Lever == "circuit" && b.Scorer.Open():
			c.Buttons = []button{{"resume", "Resume", "main"}}
		case c.Lever == "poison" && b.Scorer.Open():
			c.Buttons = append(c.Buttons, button{"resume", "Resume", "main"})
		}
	}
	return all
}

// Title is the page's heading.
func (v leversView) Title() string {
	return fmt.Sprintf("%s homes, %s events a second, %s", thousands(v.Rate.Homes), thousands(int64(v.Rate.Promised+0.5)), consumersWord(v.working()))
}

func consumersWord(n int) string {
	if n == 1 {
		return "one consumer"
	}
	return fmt.Sprintf("%d consumers", n)
}

// Running is how long the demo has been running.
func (v leversView) Running() time.Duration { return v.At.Sub(v.Started) }

// Suggest is what to try next; empty: the reader knows by now.
func (v leversView) Suggest() string {
	switch {
	case len(v.Trials) == 0 && v.Running() > 20*time.Second:
		return "Kill a consumer, and watch its partitions find new owners."
	case len(v.Trials) == 1 && v.Trials[0].Done:
		switch v.Trials[0].Lever {
		case "webhook":
			return "Now kill a consumer, or pull the plug."
		case "plug":
			return "Now kill a consumer, or break the webhook."
		}
		return "Now break the webhook, or pull the plug."
	}
	return ""
}

// Tone is the colour of a consumer: one of eight.
func (r ConsumerRow) Tone() int {
	n := number(strings.TrimPrefix(r.Name, "consumer-"))
	return (n-1)%8 + 1
}

// spark is the path of a small chart, 120 by 30; closed: with the area under it.
func spark(values []float64, closed bool) string {
	if len(values) < 2 {
		return ""
	}
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for i, v := range values {
		command := "L"
		if i == 0 {
			command = "M"
		}
		y := 28.0
		if most > 0 {
			y = 28 - 24*max(0, v)/most
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, 120*float64(i)/float64(len(values)-1), y)
	}
	if closed {
		b.WriteString("L120 30L0 30Z")
	}
	return b.String()
}

// homePage is a resident's page.
type homePage struct {
	Home, Address      string
	Known              bool
	Title, More, Icon  string
	Mood               Mood
	Rooms              []room
	Bars               []bar
	Began              string
	Behind             time.Duration
	Consumer, Blob     string
	Partition, Another string
}

// bar is a period of the chart.
type bar struct {
	X, Y, Height float64
}

func newHomePage(h homeState, known bool, n int, cfg Config, b *Board, now time.Time) homePage {
	p := homePage{Home: homeName(n), Address: address(n), Known: known, Another: homeName(another(n, cfg.Homes))}
	if !known {
		return p
	}
	p.Title, p.More, p.Icon, p.Mood = h.calm()
	p.Rooms, p.Bars = h.rooms(now), bars(h.hour())
	p.Began = time.Unix(0, (h.Newest-hourLength+1)*int64(cfg.Every)).Local().Format("15:04")
	p.Partition = h.Partition
	p.Blob = blobName(h.Partition, periodOf(h.Sensors[motion].At, cfg.Every), cfg.Every)
	if b != nil {
		p.Behind = b.ToPage
		for _, o := range b.Owners {
			if o.Partition == h.Partition {
				p.Consumer = o.Owner
			}
		}
	}
	return p
}

// another is a home to look at next. It reports also when homes were halved a few times.
func another(n, homes int) int { return (n + 1024*7) % max(1, homes) / 8 * 8 }

// bars draw the movements of an hour, 420 wide and 62 high.
func bars(hour []int) []bar {
	most := 1
	for _, n := range hour {
		most = max(most, n)
	}
	var all []bar
	for i, n := range hour {
		height := 1.5
		if n < 0 {
			continue
		}
		if n > 0 {
			height = max(1.5, 56*float64(n)/float64(most))
		}
		all = append(all, bar{X: float64(7 * i), Y: 62 - height, Height: height})
	}
	return all
}
