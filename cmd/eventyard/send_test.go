package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

func bodiesOf(t *testing.T, in *input) []string {
	t.Helper()
	var all []string
	for body, err := range in.bodies {
		testkit.Must(t, err)
		all = append(all, string(body))
	}
	return all
}

func TestWhereBodiesComeFrom(t *testing.T) {
	const text = "one\r\n\nthree"
	for name, test := range map[string]struct {
		flags sendFlags
		texts []string
		want  []string
	}{
		"arguments":                  {texts: []string{"a", "b"}, want: []string{"a", "b"}},
		"arguments again and again":  {texts: []string{"a", "b"}, flags: sendFlags{count: 3}, want: []string{"a", "b", "a"}},
		"fewer than the arguments":   {texts: []string{"a", "b"}, flags: sendFlags{count: 1}, want: []string{"a"}},
		"lines, with no end at last": {want: []string{"one", "", "three"}},
		"lines by another name":      {flags: sendFlags{file: "-", count: 2}, want: []string{"one", ""}},
		"all of it":                  {flags: sendFlags{whole: true}, want: []string{text}},
		"made up":                    {flags: sendFlags{count: 2, size: 10}, want: []string{"event 1 ..", "event 2 .."}},
		"made up, very small":        {flags: sendFlags{count: 1, size: 3}, want: []string{"eve"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := sendCommand{&cli{stdin: strings.NewReader(text)}}
			in, err := c.openInput(c.command(), test.flags, test.texts)
			testkit.Must(t, err)
			defer in.close()
			testkit.Slices(t, bodiesOf(t, in), test.want, "bodies")
		})
	}
}

func TestALineTooLongIsNamed(t *testing.T) {
	c := sendCommand{&cli{stdin: strings.NewReader("short\n" + strings.Repeat("x", maxInputBytes+1))}}
	in, err := c.openInput(c.command(), sendFlags{}, nil)
	testkit.Must(t, err)
	var last error
	for _, err := range in.bodies {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "line 2") {
		t.Errorf("error is %v", last)
	}
}

func TestFlagsThatDoNotGoTogether(t *testing.T) {
	for name, test := range map[string]struct {
		flags sendFlags
		texts []string
	}{
		"key and partition":          {flags: sendFlags{key: "k", partition: "1"}},
		"whole and json":             {flags: sendFlags{whole: true, json: true}},
		"json and a property":        {flags: sendFlags{json: true, properties: []string{"a=b"}}},
		"json and a content type":    {flags: sendFlags{json: true, contentType: "x"}},
		"a negative count":           {flags: sendFlags{count: -1}},
		"a negative rate":            {flags: sendFlags{rate: -1}},
		"a property without a name":  {flags: sendFlags{properties: []string{"=b"}}},
		"a property without a value": {flags: sendFlags{properties: []string{"b"}}},
		"a text and a file":          {flags: sendFlags{file: "f"}, texts: []string{"a"}},
		"a text and whole":           {flags: sendFlags{whole: true}, texts: []string{"a"}},
		"a text and a size":          {flags: sendFlags{size: 1}, texts: []string{"a"}},
		"a file and a size":          {flags: sendFlags{size: 1, file: "f"}},
		"made up and json":           {flags: sendFlags{count: 1, json: true}},
		"made up and whole":          {flags: sendFlags{count: 1, whole: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := sendCommand{&cli{stdin: strings.NewReader("")}}
			cmd := c.command()
			err := c.send(cmd, nil, test.flags, "h", test.texts)
			var usage *usageError
			if !errors.As(err, &usage) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func numbered(n int) item { return item{event: json.RawMessage("{}"), number: n} }

// A line typed by hand is on its way at once; what comes while a batch is on its way
// goes together in the next.
func TestNothingWaitsForABatchToFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items, batches := make(chan item), make(chan []item)
		go gather(t.Context(), items, batches, false)
		items <- numbered(1)
		if batch := <-batches; len(batch) != 1 {
			t.Errorf("first batch has %d", len(batch))
		}
		for n := range 10 { // the sender is busy
			items <- numbered(2 + n)
		}
		if batch := <-batches; len(batch) != 10 || batch[0].number != 2 || batch[9].number != 11 {
			t.Errorf("second batch is %v", batch)
		}
		close(items)
		if _, more := <-batches; more {
			t.Error("there is more")
		}
	})
}

func TestBatchesAreBounded(t *testing.T) {
	const small, half, large = 10, maxBatchBytes / 2, maxBatchBytes * 2
	for name, test := range map[string]struct {
		sizes []int
		want  []int
	}{
		"by number":                   {slices.Repeat([]int{small}, maxBatchEvents*2+1), []int{maxBatchEvents, maxBatchEvents, 1}},
		"by size":                     {slices.Repeat([]int{half}, 5), []int{2, 2, 1}},
		"large ones go alone":         {[]int{large, large}, []int{1, 1}},
		"also behind small ones":      {[]int{small, half, large, small}, []int{2, 1, 1}},
		"nor does one go past a half": {[]int{half, half + 1, half - 1, small}, []int{1, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				items, batches := make(chan item), make(chan []item)
				go gather(t.Context(), items, batches, true)
				go func() {
					defer close(items)
					for n, size := range test.sizes {
						items <- item{event: make(json.RawMessage, size), number: n}
					}
				}()
				var got []int
				number := 0
				for batch := range batches {
					got = append(got, len(batch))
					for _, it := range batch {
						testkit.Equal(t, it.number, number, "item comes")
						number++
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("batches of %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestGatheringEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		items := make(chan item)
		go gather(ctx, items, make(chan []item), false)
		items <- numbered(1)
		cancel()
		synctest.Wait() // or the bubble deadlocks
	})
}

func TestTheRateIsKept(t *testing.T) {
	for _, rate := range []int{1, 10, 300, 50_000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPacer(rate)
				for range 3 * rate {
					if !p.wait(t.Context()) {
						t.Fatal("ended")
					}
				}
				// The last of n events goes after n-1 pauses.
				want := time.Duration(float64(3*rate-1) / float64(rate) * float64(time.Second))
				if took := time.Since(p.began); took < want-leastPause || took > want {
					t.Errorf("%d events took %v, want %v", 3*rate, took, want)
				}
			})
		})
	}
}

func TestPacingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := newPacer(1)
		n := 0
		for p.wait(ctx) && n < 100 {
			n++
		}
		if n > 2 {
			t.Errorf("%d events in a second", n)
		}
	})
}

// H2: events of one key keep their order.
func TestSplittingByKeyKeepsOrder(t *testing.T) {
	batch := []item{{key: "x", number: 1}, {key: "y", number: 2}, {key: "x", number: 3}, {number: 4}}
	var got []string
	for _, part := range splitByKey(batch, false) {
		var numbers []string
		for _, it := range part {
			numbers = append(numbers, fmt.Sprint(it.number))
		}
		got = append(got, part[0].key+":"+strings.Join(numbers, ","))
	}
	testkit.Slices(t, got, []string{"x:1,3", "y:2", ":4"}, "parts")
	if parts := splitByKey(batch, true); len(parts) != 1 || len(parts[0]) != 4 {
		t.Errorf("together: %v", parts)
	}
}
