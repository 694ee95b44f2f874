package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// boardAt is a board some seconds after noon, with partitions 0, 1 and 2.
func boardAt(second int, owners ...string) *Board {
	b := &Board{At: noon.Add(time.Duration(second) * time.Second), YardUp: true}
	for i, owner := range owners {
		b.Owners = append(b.Owners, OwnerRow{Partition: string(rune('0' + i)), Owner: owner})
	}
	return b
}

// S: what a lever did is measured: who has the partitions, after how long, and at what cost.
func TestAKillIsOverWhenItsPartitionsHaveOwners(t *testing.T) {
	w := moved("killed", []string{"consumer-2"}, []string{"0", "2"}, noon, Books{ReadTwice: 5})
	_, mood, done := w(boardAt(10, "consumer-2", "consumer-1", "consumer-1"))
	testkit.That(t, !done && mood == moodWaits, "it is over while the dead consumer has a partition")
	_, _, done = w(boardAt(20, "", "consumer-1", "consumer-1"))
	testkit.That(t, !done, "it is over while nobody has a partition")
	_, _, done = w(boardAt(32, "consumer-3", "consumer-1", "consumer-1"))
	testkit.That(t, !done, "it is over before its cost is known")
	b := boardAt(35, "consumer-3", "consumer-1", "consumer-1")
	b.Books.ReadTwice = 1209
	text, mood, done := w(b)
	testkit.That(t, done && mood == moodWell, "it is not over when all partitions have owners")
	testkit.Equal(t, text, clock(noon)+" killed consumer-2. 32 s later partitions 0 and 2 had new owners. 0 lost, 1,204 read twice.")
	b.Books.Lost = 1
	_, mood, _ = w(b)
	testkit.Equal(t, mood, moodBroken, "a loss looks well")
}

func TestPoisonPutsNoInnocentAway(t *testing.T) {
	w := poisoned(20, 24, noon)
	b := boardAt(9)
	b.Scorer = ScorerRow{State: "running", Poisoned: 23}
	_, _, done := w(b)
	testkit.That(t, !done, "19 of 20 are enough")
	b.Scorer.Poisoned = 24
	text, mood, done := w(b)
	testkit.That(t, done && mood == moodWell, "20 of 20 are not enough")
	testkit.Equal(t, text, "20 sent at "+clock(noon)+", 20 put away within 9.0 s, 0 innocent ones.")
	b.Scorer.Innocent = 1
	_, mood, _ = w(b)
	testkit.Equal(t, mood, moodBroken, "an innocent event was put away")
}

// F5, F6: too much poison opens the circuit; who resumes it hears that it opens again, and how all of it ends.
func TestPoisonOpensTheCircuit(t *testing.T) {
	w, again := poisoned(200, 220, noon), resumed(noon.Add(20*time.Second))
	b := boardAt(9)
	b.Scorer = ScorerRow{State: "open", Since: b.At, Poisoned: 70, Waiting: 150}
	text, _, done := w(b)
	testkit.That(t, done, "the trial goes on when the circuit is open")
	testkit.Equal(t, text, "200 sent at "+clock(noon)+", 50 put away so far, 0 innocent ones. The circuit is open, and the rest waits until it is resumed.")
	_, _, done = again(b)
	testkit.That(t, !done, "the circuit as it was before is taken for a new one")
	b = boardAt(22)
	b.Scorer = ScorerRow{State: "open", Since: b.At, Poisoned: 120, Waiting: 100}
	text, mood, done := again(b)
	testkit.That(t, done && mood == moodWaits, "one that opens again is waited for")
	testkit.Equal(t, text, "Resumed at "+clock(noon.Add(20*time.Second))+"; open again since "+clock(b.At)+", for there was more that it cannot take; 100 events wait.")
	b = boardAt(40)
	b.Scorer = ScorerRow{State: "running", Poisoned: 220}
	w(b)
	b.At = b.At.Add(time.Minute)
	text, mood, _ = w(b)
	testkit.Equal(t, text, "200 sent at "+clock(noon)+", 200 put away within 40 s, 0 innocent ones.")
	testkit.Equal(t, mood, moodWell, "the mood when all are put away")
}

// F6, F7: the store can come back without the circuit, for those who follow the link of the notice.
func TestTheCircuitIsResumedByItsLink(t *testing.T) {
	away, back := opened(noon), returned(noon.Add(20*time.Second))
	b := boardAt(11)
	b.Scorer = ScorerRow{State: "open", Since: b.At, Waiting: 7}
	text, _, done := away(b)
	testkit.That(t, done && strings.Contains(text, "11 s after the store went away; 7 events wait"), "it says %q", text)
	text, mood, done := back(b)
	testkit.That(t, done && mood == moodWaits && strings.Contains(text, "by the link in the mailbox"), "it says %q", text)
	b.Scorer = ScorerRow{State: "starting", Waiting: 7}
	text, _, _ = away(b)
	testkit.That(t, strings.HasPrefix(text, "Open since"), "after a restart it says %q", text)
	b.Scorer = ScorerRow{State: "running"}
	text, mood, done = back(b)
	testkit.That(t, done && mood == moodWell && strings.Contains(text, "score-anomaly works; no event waits"), "it says %q", text)
	text, mood, _ = away(b)
	testkit.That(t, mood == moodWaits && strings.Contains(text, "though the store is away"), "it says %q", text)
}

// S: who uses the yard is back when something is acknowledged that was not when the yard came back, and not before.
func TestAPlugIsInAgainWhenItsClientsAre(t *testing.T) {
	w := replugged(noon, Books{Acknowledged: 900})
	b := boardAt(3)
	b.Acked, b.Aggregated, b.Books.Acknowledged = 1000, 5, 1000 // acknowledged before the kill, and not in the books then
	b.YardUp = false
	_, _, done := w(b)
	testkit.That(t, !done, "it is over while the yard is away")
	b = boardAt(4)
	b.Acked, b.Aggregated, b.Books.Acknowledged = 1000, 5, 1000
	_, _, done = w(b)
	testkit.That(t, !done, "it is over before anybody has come back")
	b.At, b.Acked = b.At.Add(2*time.Second), 1004
	_, _, done = w(b)
	testkit.That(t, !done, "it is over before its cost is known")
	b.At = b.At.Add(settleTime)
	text, mood, done := w(b)
	testkit.That(t, done && mood == moodWell, "it is not over when all are back")
	testkit.Equal(t, text, "Killed at "+clock(noon)+". 6.0 s later the yard and its clients were back: all of 900 acknowledged before are there. 0 lost, 0 read twice.")
}

func TestAnEndedTrialIsReportedOnce(t *testing.T) {
	var all trials
	all.begin("kill", noon, "", moved("killed", []string{"consumer-2"}, []string{"0"}, noon, Books{}))
	_, ended := all.judge(boardAt(1, "consumer-2"))
	testkit.Equal(t, len(ended), 0, "trials that have ended too early")
	all.judge(boardAt(2, "consumer-1"))
	_, ended = all.judge(boardAt(6, "consumer-1"))
	testkit.Equal(t, len(ended), 1, "trials that have ended")
	shown, ended := all.judge(boardAt(7, "consumer-1"))
	testkit.Equal(t, len(ended), 0, "trials that have ended again")
	testkit.That(t, shown[0].Text == clock(noon)+" killed consumer-2. 2.0 s later partition 0 had new owners. 0 lost, 0 read twice.", "it goes on counting: %s", shown[0].Text)
}

func TestLeversAreSpreadOverTheTime(t *testing.T) {
	steps := script([]string{"kill", "co", "plug"}, time.Minute)
	testkit.Slices(t, steps, []step{{12 * time.Second, "kill"}, {24 * time.Second, "co"}, {36 * time.Second, "plug"}})
	testkit.Equal(t, len(script(nil, time.Minute)), 0, "steps without levers")
	testkit.That(t, checkLevers([]string{"kill", "nonsense"}) != nil, "a lever that is none is taken")
}

func TestWords(t *testing.T) {
	testkit.Equal(t, thousands(1234567), "1,234,567")
	testkit.Equal(t, thousands(-1000), "-1,000")
	testkit.Equal(t, seconds(1900*time.Millisecond), "1.9 s")
	testkit.Equal(t, seconds(722*time.Second), "12 min 2 s")
	testkit.Equal(t, listed([]string{"3", "9", "14"}), "3, 9 and 14")
}
