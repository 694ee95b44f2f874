package demo

import (
	"fmt"
	"hash/fnv"
	"time"
)

// The names of what the demo creates in its yard.
const (
	sensorsHub      = "sensors"
	odditiesHub     = "oddities"
	aggregatorGroup = "aggregator"
	liveGroup       = "live-view"
	alarmsTopic     = "home-alarms"
	scorer          = "score-anomaly"
	container       = "aggregates"

	sensorPartitions  = 16
	oddityPartitions  = 4
	sensorsAtFirst    = 4
	sensorsWithCarbon = 5
)

// sensor is a kind of sensor that a home has.
type sensor uint8

const (
	motion sensor = iota
	entrance
	window
	glass
	monoxide
	sensorKinds
)

// sensorNames are the sensors' names in events and blobs.
var sensorNames = [sensorKinds]string{"motion", "door", "window", "glass", "co"}

func (s sensor) String() string { return sensorNames[s] }

// sensorOf finds a sensor by its name.
func sensorOf(name string) (sensor, bool) {
	for s, n := range sensorNames {
		if n == name {
			return sensor(s), true
		}
	}
	return 0, false
}

// reading is the body of an event: what one sensor says about its minute.
type reading struct {
	Home   string    `json:"home"`
	Sensor string    `json:"sensor"`
	At     time.Time `json:"at"`
	// Value is movements in the minute, 1 for open or broken, or parts per million of carbon monoxide.
	Value int `json:"value"`
}

// homeName is how homes are called in events, blobs and pages; it is their partition key as well.
func homeName(n int) string { return fmt.Sprintf("h-%06d", n) }

// homeNumber is the reverse of homeName.
func homeNumber(name string) (n int, ok bool) {
	if _, err := fmt.Sscanf(name, "h-%06d", &n); err != nil {
		return 0, false
	}
	return n, homeName(n) == name
}

// sense is what a sensor of a home says at some time. It is made up, but always the same, so that a
// report that is sent twice says the same twice.
func sense(home int, s sensor, at time.Time, every time.Duration) int {
	chance := draw(home, s, at.UnixNano()/int64(every))
	asleep := draw(home, motion, at.UnixNano()/int64(20*every))%3 == 0 // for twenty reports at a time
	switch s {
	case motion:
		if asleep {
			return 0
		}
		if chance%100 == 0 {
			return 40 + int(chance/100%20) // unusual: the scorer is to look at it
		}
		return int(chance % 12)
	case entrance:
		return oneIn(chance, 50)
	case window:
		return oneIn(draw(home, s, at.UnixNano()/int64(10*every)), 8) // open for ten reports
	case glass:
		return oneIn(chance, 2000)
	case monoxide:
		if oneIn(chance, 1000) == 1 {
			return 60 + int(chance/1000%40)
		}
		return int(chance % 9)
	}
	return 0
}

// odd is how many movements a minute the scorer looks at.
const odd = 40

// isOdd tells whether the scorer should look at a reading.
func (r reading) isOdd() bool { return r.Sensor == motion.String() && r.Value >= odd }

// alarm is the type of the alarm that a reading gives; empty: none.
func (r reading) alarm() string {
	s, _ := sensorOf(r.Sensor)
	switch {
	case s == entrance && r.Value == 1:
		return "door.opened"
	case s == glass && r.Value == 1:
		return "glass.broken"
	case s == monoxide && r.Value >= 50:
		return "co.high"
	}
	return ""
}

func oneIn(chance uint64, n uint64) int {
	if chance%n == 0 {
		return 1
	}
	return 0
}

func draw(home int, s sensor, when int64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d/%d", home, s, when)
	return h.Sum64() >> 8 // the upper bits are the better ones
}

// streets make addresses for residents' pages.
var streets = []string{"Alder Lane", "Birch Road", "Cherry Street", "Dune Walk", "Elm Court", "Fern Close", "Garden Row", "Hill Street"}

func address(home int) string { return fmt.Sprintf("%d %s", home%97+1, streets[home%len(streets)]) }
