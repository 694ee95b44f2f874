package cluster

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

const (
	// kinds of yards share the time of a run.
	kinds = 3
	// diskBytes is the size of a disk that can be filled: many times what a round stores.
	diskBytes = 512 << 20
)

// C1 to C5, C7: the same as TestNothingAcknowledgedIsLost with faults at random, among them cuts of the
// network, full disks, the loss of all servers at once and a minute without a majority of them.
func TestChaosOfThreeServers(t *testing.T) { chaosOnServers(t, 3) }

// C1 to C5, C7: the same with five servers, which all keep everything.
func TestChaosOfFiveServers(t *testing.T) { chaosOnServers(t, 5) }

// C1 to C5, C7, C8: the same with servers inside the nodes.
func TestChaosOfPeers(t *testing.T) {
	endureAtRandom(t, size, size, func(network *parts.Network) *yard { return startPeers(t, network) }, faultsOfPeers)
}

func chaosOnServers(t *testing.T, servers int) {
	t.Helper()
	endureAtRandom(t, servers+size, servers, func(network *parts.Network) *yard { return startOn(t, network, servers) }, faultsOfServers)
}

// endureAtRandom has a yard on that many hosts endure faults for its part of the time of the flag. The
// first hosts store, and have a disk each, if the machine allows it.
func endureAtRandom(t *testing.T, hosts, storing int, start func(*parts.Network) *yard, all func(*yard, *rand.Rand) []fault) {
	t.Helper()
	if *chaos == 0 {
		t.Skip("make chaos has it")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	network := network(t, hosts)
	if network == nil {
		t.Skip("no host can be cut off here")
	}
	giveDisks(t, network, storing)
	y := start(network)
	random := rand.New(rand.NewPCG(*seed, 0))
	c := &course{faults: map[string]int{}}
	defer c.log(t)
	d := deck{deal: func() []fault { return chosen(t, all(y, random)) }, random: random}
	for end := time.Now().Add(*chaos / kinds); time.Now().Before(end) && !t.Failed(); {
		c.round(t, y, &d, end)
	}
}

// chosen are the faults that the flag asks for.
func chosen(t *testing.T, all []fault) []fault {
	t.Helper()
	asked := regexp.MustCompile(*only)
	all = slices.DeleteFunc(all, func(f fault) bool { return !asked.MatchString(f.name) })
	testkit.MustThat(t, len(all) > 0, "there is no fault whose name has %q", *only)
	return all
}

// giveDisks gives the first hosts a disk each, or says why not.
func giveDisks(t *testing.T, network *parts.Network, hosts int) {
	t.Helper()
	for i := range hosts {
		disk, err := parts.NewDisk(t, diskBytes)
		if err != nil {
			t.Logf("no disk is filled, since none can be mounted here: %v", err)
			return
		}
		network.Host(i).Disk = disk
	}
}

// course is what has happened so far.
type course struct {
	rounds, events int
	faults         map[string]int       // by kind
	known          []admin.ScrubFinding // of rounds in which a disk was full
}

// round has everything begin, endure up to four faults, and be judged.
func (c *course) round(t *testing.T, y *yard, d *deck, end time.Time) {
	t.Helper()
	c.rounds++
	r := y.begin(t, fmt.Sprintf("orders%d", c.rounds))
	r.epochs.race(t)
	filled := false
	for i := 0; i < 4 && (i == 0 || time.Now().Before(end)); i++ {
		f := d.next()
		c.faults[which.ReplaceAllString(f.name, "$1")]++
		filled = filled || f.fills
		r.endure(t, f)
		if y.servers == nil {
			y.whole(t) // else the next may leave one node alone with all data
		}
	}
	r.end(t)
	c.scrub(t, y, filled)
	c.events += r.load.acknowledged()
	r.remove(t)
}

// scrub has what each server keeps compared. Servers lack something after a disk was full, which is no failure: which
// server answers is nobody's to choose, so that whatever the yard has made of it was judged before. Nothing else that
// happens to them may do that.
func (c *course) scrub(t testing.TB, y *yard, filled bool) {
	t.Helper()
	found := y.scrub(t)
	if filled {
		c.known = append(c.known, found...)
		return
	}
	for _, f := range found {
		testkit.That(t, isKnown(f, c.known), "without a full disk the servers have come to this: %+v", f)
	}
}

// scrub has what each server keeps compared, and gives what differs. What could not be looked at is looked at again:
// servers may be behind for a while, and not for good.
func (y *yard) scrub(t testing.TB) (found []admin.ScrubFinding) {
	t.Helper()
	client := y.nodes[0].admin(t)
	eventually(t, "no scrub looks at all that servers keep", func() bool {
		found = nil
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		done, err := client.Scrub(ctx, admin.ScrubRequest{}, func(l admin.ScrubLine) {
			if l.Finding != nil {
				t.Logf("scrub: %+v", *l.Finding)
				found = append(found, *l.Finding)
			}
		})
		t.Logf("scrub: %d streams, %d findings, problems %q, error %v", done.Streams, done.Findings, done.Problems, err)
		return err == nil && len(done.Problems) == 0
	})
	return found
}

// isKnown tells whether one of several findings was of the same, or of a part of it: some of it may be gone by age.
func isKnown(f admin.ScrubFinding, known []admin.ScrubFinding) bool {
	return slices.ContainsFunc(known, func(k admin.ScrubFinding) bool {
		return f.Kind == k.Kind && f.Stream == k.Stream && f.Server == k.Server && f.Entry == k.Entry && f.Blob == k.Blob &&
			f.FirstMessage >= k.FirstMessage && f.LastMessage <= k.LastMessage
	})
}

// A finding is excused where a full disk has left the same behind.
func TestFindingsThatAreKnown(t *testing.T) {
	known := []admin.ScrubFinding{{Kind: admin.FindingMissing, Stream: "S", Server: "one", FirstMessage: 10, LastMessage: 20}}
	for name, tt := range map[string]struct {
		f    admin.ScrubFinding
		want bool
	}{
		"the same":         {known[0], true},
		"a part of it":     {admin.ScrubFinding{Kind: admin.FindingMissing, Stream: "S", Server: "one", FirstMessage: 15, LastMessage: 20}, true},
		"more":             {admin.ScrubFinding{Kind: admin.FindingMissing, Stream: "S", Server: "one", FirstMessage: 10, LastMessage: 21}, false},
		"another server":   {admin.ScrubFinding{Kind: admin.FindingMissing, Stream: "S", Server: "two", FirstMessage: 10, LastMessage: 20}, false},
		"another kind":     {admin.ScrubFinding{Kind: admin.FindingDiffers, Stream: "S", Server: "one", FirstMessage: 10, LastMessage: 20}, false},
		"of another place": {admin.ScrubFinding{Kind: admin.FindingMissing, Stream: "T", Server: "one", FirstMessage: 10, LastMessage: 20}, false},
	} {
		t.Run(name, func(t *testing.T) { testkit.Equal(t, isKnown(tt.f, known), tt.want) })
	}
}

// which is what of a fault's name does not belong to its kind.
var which = regexp.MustCompile(`(server|node) \d+| from \d+ on`)

// log sums it up.
func (c *course) log(t *testing.T) {
	t.Helper()
	var faults []string
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(c.faults)) {
		faults = append(faults, fmt.Sprintf("%s: %d", kind, c.faults[kind]))
		total += c.faults[kind]
	}
	t.Logf("in all: seed %d, %d rounds, %d events acknowledged, all found: %v, %d faults: %s", *seed, c.rounds, c.events, !t.Failed(), total, strings.Join(faults, "; "))
}

// deck deals every kind of fault once, in any order, before it deals one again. The very first is the
// first kind that there is: so short a run as there may be, it has the one that is told of there.
type deck struct {
	deal   func() []fault
	random *rand.Rand
	left   []fault
	begun  bool
}

func (d *deck) next() fault {
	if !d.begun {
		d.begun = true
		return d.deal()[0]
	}
	if len(d.left) == 0 {
		d.left = d.deal()
		d.random.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	f := d.left[0]
	d.left = d.left[1:]
	return f
}

// faultsOfServers are one of each kind, of up to 12 seconds but for a minute without majority, and a full
// disk first.
func faultsOfServers(y *yard, random *rand.Rand) (all []fault) {
	servers := y.servers.Replicas
	s, i, d := random.IntN(servers), random.IntN(size), time.Duration(1+random.IntN(12))*time.Second
	if y.network.Host(servers-1).Disk != nil {
		all = append(all, fillServers(several{s, 1, servers}, d), fillServers(several{s, servers, servers}, d), startServerOnFullDisk(s, d))
	}
	if minority := (servers - 1) / 2; minority > 1 {
		all = append(all, killServers(several{s, minority, servers}))
	}
	return append(all, killServer(s), killLeader(), killServers(several{s, servers, servers}), freezeServer(s, d), cutServer(s, d), withoutMajority(s, time.Minute),
		rollServers(), killNode(i), loseNode(i), restartNode(i), freezeNode(i, d), cutNode(i, d), rollNodes())
}

// faultsOfPeers are those of nodes with servers inside, likewise.
func faultsOfPeers(y *yard, random *rand.Rand) (all []fault) {
	i, d := random.IntN(size), time.Duration(1+random.IntN(12))*time.Second
	if y.network.Host(size-1).Disk != nil {
		all = append(all, fillNodes(several{i, 1, size}, d), fillNodes(several{i, size, size}, d), startNodeOnFullDisk(i, d))
	}
	return append(all,
		killNode(i), killLeader(), loseNode(i), restartNode(i), freezeNode(i, d), cutNode(i, d), nodeAlone(i, time.Minute), killAllNodes(), rollNodes())
}
