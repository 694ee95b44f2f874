package demo

import (
	"fmt"
	"time"
)

// hourLength is how many periods of movements are remembered of a home.
const hourLength = 60

// homeState is the newest of a home, as a watcher remembers it. It is pure.
type homeState struct {
	Home      string                 `json:"home"`
	Partition string                 `json:"partition"`
	Sensors   [sensorKinds]lastValue `json:"sensors"`
	// Movements are those of each period, by its number modulo hourLength; Newest is the number of the
	// newest, and First that of the first ever.
	Movements [hourLength]int16 `json:"movements"`
	First     int64             `json:"first"`
	Newest    int64             `json:"newest"`
}

// lastValue is what a sensor said last, and since when it says so.
type lastValue struct {
	Value int       `json:"value"`
	At    time.Time `json:"at,omitzero"` // zero: it never said anything
	Since time.Time `json:"since,omitzero"`
}

// take remembers a reading, unless a newer one of its sensor is known.
func (h *homeState) take(s sensor, r reading, every time.Duration) {
	last := &h.Sensors[s]
	if !r.At.After(last.At) {
		return
	}
	if last.At.IsZero() || last.Value != r.Value {
		last.Since = r.At
	}
	last.Value, last.At = r.Value, r.At
	if s != motion {
		return
	}
	period := r.At.UnixNano() / int64(every)
	if h.Newest == 0 {
		h.First = period
	}
	for p := max(h.Newest+1, period-hourLength+1); p < period; p++ {
		h.Movements[p%hourLength] = 0 // nothing was heard
	}
	h.Movements[period%hourLength] = int16(r.Value)
	h.Newest = period
}

// hour is the movements of the last periods, the oldest first; -1: nothing is known.
func (h *homeState) hour() []int {
	all := make([]int, hourLength)
	for i := range all {
		p := h.Newest - int64(hourLength-1-i)
		if p < h.First || h.Newest == 0 {
			all[i] = -1
			continue
		}
		all[i] = int(h.Movements[p%hourLength])
	}
	return all
}

// room is a line of a resident's page.
type room struct {
	Icon, Name, Kind, Text string
	Mood                   Mood
}

// rooms are what a resident sees of a home, and calm is the sentence above it.
func (h *homeState) rooms(now time.Time) (rooms []room) {
	for s, last := range h.Sensors {
		if last.At.IsZero() {
			continue
		}
		r := roomNames[s]
		r.Text, r.Mood = last.words(sensor(s), now)
		rooms = append(rooms, r)
	}
	return rooms
}

var roomNames = [sensorKinds]room{
	{Icon: "footprints", Name: "Hall", Kind: "motion"},
	{Icon: "entrance", Name: "Front door", Kind: "door"},
	{Icon: "app-window", Name: "Kitchen window", Kind: "window"},
	{Icon: "shield-check", Name: "Glass", Kind: "6 panes"},
	{Icon: "wind", Name: "Carbon monoxide", Kind: "new, cellar"},
}

// words say what a sensor means.
func (v lastValue) words(s sensor, now time.Time) (string, Mood) {
	switch {
	case s == motion && v.Value > 0:
		return "moved " + seconds(now.Sub(v.At).Round(time.Second)) + " ago", ""
	case s == motion:
		return "still", ""
	case s == entrance && v.Value == 1, s == window && v.Value == 1:
		return "open for " + seconds(now.Sub(v.Since).Round(time.Second)), moodWaits
	case s == entrance, s == window:
		return "closed", ""
	case s == glass && v.Value == 1:
		return "broken", moodWaits
	case s == glass:
		return "whole", ""
	case v.Value >= 50:
		return fmt.Sprintf("%d ppm, too much", v.Value), moodWaits
	}
	return fmt.Sprintf("%d ppm", v.Value), moodWell
}

// calm is the one sentence that a resident wants to read.
func (h *homeState) calm() (title, more, icon string, mood Mood) {
	for _, s := range []sensor{monoxide, glass, entrance, window} {
		last := h.Sensors[s]
		_, m := last.words(s, last.At)
		if last.At.IsZero() || m != moodWaits {
			continue
		}
		titles := map[sensor]string{
			monoxide: "Too much carbon monoxide", glass: "A pane is broken", entrance: "The front door is open", window: "The kitchen window is open",
		}
		return titles[s], "since " + last.Since.Local().Format("15:04") + ". Everything else is quiet.", roomNames[s].Icon, moodWaits
	}
	return "All is quiet", "Everything is closed and whole.", "shield-check", moodWell
}
