package hub_test

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
)

// A position gives back what it was made of, and nothing that it was not.
func TestPositionsGiveBackWhatTheyWereMadeOf(t *testing.T) {
	then := time.Unix(1, 0)
	for _, c := range []struct {
		position  hub.Position
		sequence  int64
		offset    string
		at        time.Time
		inclusive bool
	}{
		{position: hub.Earliest, sequence: -1},
		{position: hub.Latest, sequence: -1},
		{position: hub.At(7), sequence: 7, inclusive: true},
		{position: hub.After(7), sequence: 7},
		{position: hub.AtOffset("x"), sequence: -1, offset: "x", inclusive: true},
		{position: hub.AfterOffset("x"), sequence: -1, offset: "x"},
		{position: hub.Since(then), sequence: -1, at: then},
	} {
		t.Run(c.position.String(), func(t *testing.T) {
			sequence, in, numbered := c.position.Sequence()
			if numbered != (c.sequence >= 0) || numbered && (sequence != c.sequence || in != c.inclusive) {
				t.Errorf("sequence %d, %v, %v", sequence, in, numbered)
			}
			offset, in, placed := c.position.Offset()
			if placed != (c.offset != "") || placed && (offset != c.offset || in != c.inclusive) {
				t.Errorf("offset %q, %v, %v", offset, in, placed)
			}
			if at, dated := c.position.Time(); dated != !c.at.IsZero() || !at.Equal(c.at) {
				t.Errorf("time %v, %v", at, dated)
			}
		})
	}
}
