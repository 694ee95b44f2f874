package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// tally is what one partition has of one period: for each home what each sensor said. A reading that
// is there already changes nothing, so that what is read twice, or sent twice, is counted once. It is
// pure; one goroutine uses it.
type tally struct {
	lines    []line
	index    map[string]int // by home
	readings int
	// version is that of the blob that it was written to or read from; empty: there is none.
	version string
}

// line is one home's.
type line struct {
	home   string
	has    uint8 // a bit for each sensor
	values [sensorKinds]int
}

func newTally() *tally { return &tally{index: map[string]int{}} }

// add counts a reading; false: it was counted before.
func (t *tally) add(home string, s sensor, value int) bool {
	i, ok := t.index[home]
	if !ok {
		i = len(t.lines)
		t.index[home] = i
		t.lines = append(t.lines, line{home: home})
	}
	l := &t.lines[i]
	if l.has&(1<<s) != 0 {
		return false
	}
	l.has |= 1 << s
	l.values[s] = value
	t.readings++
	return true
}

// merge adds what another tally of the same period has.
func (t *tally) merge(o *tally) {
	for _, l := range o.lines {
		for s := range sensorKinds {
			if l.has&(1<<s) != 0 {
				t.add(l.home, s, l.values[s])
			}
		}
	}
}

// head is the first line of a blob, and of each open period in a state.
type head struct {
	Partition string    `json:"partition"`
	Period    time.Time `json:"period"`
	Homes     int       `json:"homes"`
	Readings  int       `json:"readings"`
}

// appendTo writes the tally as lines of JSON, its head first.
func (t *tally) appendTo(b []byte, partition string, period time.Time) []byte {
	first, _ := json.Marshal(head{Partition: partition, Period: period, Homes: len(t.lines), Readings: t.readings}) // of plain fields
	b = append(append(b, first...), '\n')
	for i := range t.lines {
		b = t.lines[i].appendTo(b)
	}
	return b
}

func (l *line) appendTo(b []byte) []byte {
	b = append(b, `{"home":"`...)
	b = append(b, l.home...)
	b = append(b, '"')
	for s := range sensorKinds {
		if l.has&(1<<s) != 0 {
			b = append(b, ',', '"')
			b = append(b, sensorNames[s]...)
			b = append(b, '"', ':')
			b = strconv.AppendInt(b, int64(l.values[s]), 10)
		}
	}
	return append(b, '}', '\n')
}

// written is a tally as it was read, with what its head and its lines say of it.
type written struct {
	*tally
	head    head
	repeats int // readings that stand there more than once
}

// readTallies reads what appendTo wrote, any number of times.
func readTallies(r io.Reader) ([]written, error) {
	var all []written
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"partition":`)) {
			w := written{tally: newTally()}
			if err := json.Unmarshal(lines.Bytes(), &w.head); err != nil {
				return nil, fmt.Errorf("read the head of a period: %w", err)
			}
			all = append(all, w)
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("the line %.60q stands before any head", lines.Text())
		}
		if err := all[len(all)-1].read(lines.Bytes()); err != nil {
			return nil, err
		}
	}
	return all, lines.Err()
}

func (w *written) read(text []byte) error {
	var l struct {
		Home     string `json:"home"`
		Motion   *int   `json:"motion"`
		Entrance *int   `json:"door"`
		Window   *int   `json:"window"`
		Glass    *int   `json:"glass"`
		CO       *int   `json:"co"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("read the line of a home: %w", err)
	}
	for s, value := range [sensorKinds]*int{l.Motion, l.Entrance, l.Window, l.Glass, l.CO} {
		if value != nil && !w.add(l.Home, sensor(s), *value) {
			w.repeats++
		}
	}
	return nil
}
