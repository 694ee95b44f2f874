package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1, C2: whatever goes wrong, what was acknowledged is where it was said to be, what was refused is
// nowhere, nothing is stored more than twice, and done is called once.
func TestStorm(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, seed) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	chance := func() float64 { return r.Float64() * 0.2 }
	c := New(seed, Faults{})
	names := []string{"a", "b", "c"}
	var nodes []*Node
	for _, name := range names {
		nodes = append(nodes, c.Node(name))
	}
	testkit.Must(t, nodes[0].Make(t.Context(), "s", streams.Config{MaxBytes: 20_000}))
	c.SetFaults(Faults{
		Delay: time.Duration(r.IntN(100)) * time.Millisecond, Lag: time.Second,
		Lost: chance(), AckLost: chance(), Twice: chance(), Late: chance(), Unavailable: chance(), NoSpace: chance(),
	})
	answers := make([][]answer, 2000)
	for i := range answers {
		switch r.IntN(100) {
		case 0:
			c.CutOff(names[r.IntN(3)], time.Duration(r.IntN(8000))*time.Millisecond)
		case 1:
			c.LoseLeader("s", time.Duration(r.IntN(8000))*time.Millisecond)
		case 2:
			c.StopServers(time.Duration(r.IntN(3000)) * time.Millisecond)
		case 3:
			n := r.IntN(3)
			nodes[n].Close()
			nodes[n] = c.Node(names[n])
		}
		nodes[r.IntN(3)].Publish("s", fmt.Sprint(i%3), fmt.Append(nil, i), func(seq streams.Seq, err error) {
			answers[i] = append(answers[i], answer{seq: seq, err: err})
		})
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	checkStorm(t, answers, c.Messages("s"))
}

func checkStorm(t *testing.T, answers [][]answer, stored []streams.Message) {
	copies := map[string]int{}
	at := map[streams.Seq]string{}
	for i, m := range stored {
		testkit.Equal(t, m.Seq, streams.Seq(i+1))
		copies[string(m.Data)]++
		at[m.Seq] = string(m.Data)
	}
	kinds := map[error]int{}
	for i, heard := range answers {
		text := fmt.Sprint(i)
		testkit.MustEqual(t, len(heard), 1, "calls of done for message %d", i)
		err := heard[0].err
		kinds[err]++
		switch {
		case err == nil:
			testkit.Equal(t, at[heard[0].seq], text, "at sequence %d", heard[0].seq)
		case !errors.Is(err, streams.ErrUncertain):
			testkit.Equal(t, copies[text], 0, "copies of message %d, which was refused with %v", i, err)
		}
		testkit.That(t, copies[text] <= 2, "message %d is stored %d times", i, copies[text])
	}
	for _, kind := range []error{nil, streams.ErrUncertain, streams.ErrUnavailable, streams.ErrNoSpace} {
		testkit.That(t, kinds[kind] > 0, "no answer was %v", kind)
	}
}
