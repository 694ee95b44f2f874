package groups

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

func (y *yard) move(t *testing.T, g processor.Group, to Target, cfg MoveConfig) ([]Moved, error) {
	t.Helper()
	return y.Move(t.Context(), g.Hub, g.Group, []Step{{Partition: "0", To: to}}, cfg)
}

// P7: an operator moves a checkpoint to an offset, a sequence number, a time, or an end.
func TestCheckpointsAreMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		g := y.group(t, "orders", "billing", 1)
		y.publish(t, "orders", "0", 10)
		time.Sleep(time.Hour)
		noon := time.Now()
		y.publish(t, "orders", "0", 5)
		time.Sleep(time.Hour)
		for _, tt := range []struct {
			name string
			to   Target
			want int64
		}{
			{"to an offset", Target{Offset: new("7")}, 7},
			{"before the first offset", Target{Offset: new("-1")}, -1},
			{"to a sequence number", Target{Sequence: new(int64(12))}, 12},
			{"to the newest number", Target{Sequence: new(int64(14))}, 14},
			{"to a time: the last event before it", Target{Time: &noon}, 9},
			{"to a time before all", Target{Time: new(noon.Add(-48 * time.Hour))}, -1},
			{"to a time after all", Target{Time: new(noon.Add(48 * time.Hour))}, 14},
			{"to the earliest", Target{Earliest: true}, -1},
			{"to the latest", Target{Latest: true}, 14},
		} {
			moved, err := y.move(t, g, tt.to, MoveConfig{})
			if err != nil || len(moved) != 1 || moved[0].To.Sequence != tt.want {
				t.Fatalf("%s: got %+v, %v, want %d", tt.name, moved, err, tt.want)
			}
			all, err := y.Checkpoints(t.Context(), g)
			if err != nil || len(all) != 1 || all[0].Sequence != tt.want || all[0].Offset != strconv.FormatInt(tt.want, 10) {
				t.Errorf("%s: stored is %+v, %v", tt.name, all, err)
			}
		}
	})
}

// P7: what makes no sense is refused, and nothing is written.
func TestMovesThatMakeNoSense(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 2)
	y.publish(t, "orders", "0", 3)
	valid := Step{Partition: "0", To: Target{Latest: true}}
	for _, tt := range []struct {
		name  string
		steps []Step
		want  error
	}{
		{"beyond the newest event", []Step{valid, {"1", Target{Sequence: new(int64(0))}}}, ErrOutOfRange},
		{"below the first", []Step{{"0", Target{Sequence: new(int64(-2))}}}, ErrOutOfRange},
		{"an offset that is no number", []Step{{"0", Target{Offset: new("abc")}}}, ErrInvalid},
		{"nowhere", []Step{valid, {"1", Target{}}}, ErrInvalid},
		{"two places at once", []Step{{"0", Target{Latest: true, Earliest: true}}}, ErrInvalid},
		{"one partition twice", []Step{valid, valid}, ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(y.Move(t.Context(), g.Hub, g.Group, tt.steps, MoveConfig{Force: true})), tt.want)
		})
	}
	if _, err := y.Move(t.Context(), g.Hub, g.Group, []Step{{"2", Target{Latest: true}}}, MoveConfig{}); !isNotFound(err, broker.KindPartition) {
		t.Error(err)
	}
	if all, err := y.Checkpoints(t.Context(), g); err != nil || len(all) != 0 {
		t.Errorf("written: %+v, %v", all, err)
	}
}

// P7: a move is refused while a living owner has the partition, unless it is forced.
func TestMovesAreRefusedWhileThePartitionIsOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		g := y.group(t, "orders", "billing", 1)
		y.publish(t, "orders", "0", 10)
		l := y.own(t, g, "0", "worker", 3)
		mine := y.checkpointAt(t, g, l, 4, "4")

		var owned *OwnedError
		if _, err := y.move(t, g, Target{Earliest: true}, MoveConfig{}); !errors.As(err, &owned) || owned.Owner != "worker" {
			t.Fatalf("owned: %v", err)
		}
		if moved, err := y.move(t, g, Target{Earliest: true}, MoveConfig{Force: true}); err != nil || moved[0].From.Sequence != 4 {
			t.Fatalf("forced: %+v, %v", moved, err)
		}
		testkit.ErrorIs(t, testkit.Err(y.Save(t.Context(), g, l, mine)), processor.ErrConflict, "the owner's save")
		time.Sleep(AliveWithin)
		testkit.Check(t, testkit.Err(y.move(t, g, Target{Latest: true}, MoveConfig{})), "an owner that is dead")
	})
}

// P7: a reader with an epoch is an owner, too, whatever store it uses; a plain one is not.
func TestMovesAreRefusedWhileAReaderHasAnEpoch(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	read := func(epoch *int64) *broker.Receiver {
		r, err := y.broker.Receive(t.Context(), broker.ReceiverConfig{
			Hub: g.Hub, Group: g.Group, Partition: "0", At: eventlog.Earliest(), Epoch: epoch, Name: "sdk",
		})
		testkit.Must(t, err)
		t.Cleanup(func() { r.Close(); r.Cursor.Close() })
		return r
	}
	read(nil)
	testkit.Check(t, testkit.Err(y.move(t, g, Target{Latest: true}, MoveConfig{})), "a plain reader")
	exclusive := read(new(int64(0)))
	var owned *OwnedError
	if _, err := y.move(t, g, Target{Latest: true}, MoveConfig{}); !errors.As(err, &owned) || owned.Reader != "sdk" {
		t.Errorf("a reader with an epoch: %v", err)
	}
	exclusive.Close()
	testkit.Check(t, testkit.Err(y.move(t, g, Target{Latest: true}, MoveConfig{})), "a reader that has gone")
}

// P7: a dry run tells what would be done and does nothing.
func TestADryRunWritesNothing(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	y.publish(t, "orders", "0", 3)
	moved, err := y.move(t, g, Target{Latest: true}, MoveConfig{DryRun: true})
	if err != nil || len(moved) != 1 || moved[0].To.Sequence != 2 || moved[0].From != nil {
		t.Errorf("got %+v, %v", moved, err)
	}
	if all, err := y.Checkpoints(t.Context(), g); err != nil || len(all) != 0 {
		t.Errorf("written: %+v, %v", all, err)
	}
}
