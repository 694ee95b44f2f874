package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/spf13/cobra"
)

// How much goes into one request at most, unless a single event is larger: enough to
// share the cost of a sync, little enough to stay well within what a yard takes.
const (
	maxBatchEvents = 500
	maxBatchBytes  = 256 << 10
)

// maxInputBytes bounds a line; the yard has the last word on how large an event may be.
const maxInputBytes = 8 << 20

// item is one event on its way.
type item struct {
	event  json.RawMessage
	key    string // of its own, with --json
	number int    // counts from 1
	size   int    // of its body or, with --json, of its line
}

// maker turns bodies into events.
type maker struct {
	template admin.Event
	json     bool
}

func newMaker(flags sendFlags) (maker, error) {
	properties, err := parseProperties(flags.properties)
	if err != nil {
		return maker{}, err
	}
	switch {
	case flags.key != "" && flags.partition != "":
		err = errors.New("--key and --partition do not go together: a key chooses its own partition")
	case flags.whole && flags.json:
		err = errors.New("--whole and --json do not go together")
	case flags.json && (properties != nil || flags.contentType != ""):
		err = errors.New("--json says all about an event: --property and --content-type do not go with it")
	case flags.count < 0 || flags.rate < 0 || flags.size < 0:
		err = errors.New("--count, --rate and --size are at least 1")
	}
	if err != nil {
		return maker{}, err
	}
	return maker{template: admin.Event{Properties: properties, ContentType: flags.contentType}, json: flags.json}, nil
}

func (m maker) item(body []byte, number int) (item, error) {
	if m.json {
		return jsonItem(body, number)
	}
	event := m.template
	event.Body = body
	encoded, err := event.Encode()
	return item{event: encoded, number: number, size: len(body)}, err
}

func jsonItem(line []byte, number int) (item, error) {
	var head struct {
		Key                     string `json:"key"`
		Body, BodyBase64, Value json.RawMessage
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return item{}, &advisedError{fmt.Sprintf("event %s is no JSON object as read -o json prints it: %s", thousands(number), jsonFault(err)), withoutJSON}
	}
	if head.Body == nil && head.BodyBase64 == nil && head.Value == nil {
		return item{}, &advisedError{
			fmt.Sprintf("event %s has no body: with --json each is an event as read -o json prints it, like {\"body\":\"hello\"}", thousands(number)),
			withoutJSON,
		}
	}
	return item{event: bytes.Clone(line), key: head.Key, number: number, size: len(line)}, nil
}

// withoutJSON is for who meant that the text is JSON, and not the event.
const withoutJSON = "leave --json out to send the text itself, whatever it is; --content-type application/json says that it is JSON"

// input is where bodies come from.
type input struct {
	bodies iter.Seq2[[]byte, error]
	// endless: it ends only when somebody ends it.
	endless bool
	// ready: all bodies are there at once, so that batches may be filled up.
	ready bool
	// total is how many there will be; zero where that is not known.
	total int
	close func()
	// err is why it could not be read to its end. Written by the reading goroutine
	// before it closes its channel, read once the batches have ended.
	err error
}

// openInput finds the bodies: arguments, a file, made-up ones, or the standard input.
func (c sendCommand) openInput(cmd *cobra.Command, flags sendFlags, texts []string) (*input, error) {
	from, shut := c.stdin, func() {}
	invent := len(texts) == 0 && flags.file == "" && (flags.count > 0 || flags.size > 0)
	switch {
	case len(texts) > 0 && (flags.file != "" || flags.whole):
		return nil, usagef(cmd, "--file and --whole do not go with a TEXT")
	case flags.size > 0 && !invent:
		return nil, usagef(cmd, "--size is for events that are made up: it does not go with a TEXT or --file")
	case invent && (flags.whole || flags.json):
		return nil, usagef(cmd, "--whole and --json do not go with events that are made up")
	case len(texts) > 0:
		total := flags.count
		if total == 0 {
			total = len(texts)
		}
		return &input{bodies: repeat(texts, total), total: total, ready: flags.rate == 0, close: shut}, nil
	case invent:
		return &input{bodies: madeUp(int(flags.size), flags.count), endless: flags.count == 0, total: flags.count, ready: flags.rate == 0, close: shut}, nil
	case flags.file != "" && flags.file != "-":
		f, err := os.Open(flags.file)
		if err != nil {
			return nil, &advisedError{"--file: " + err.Error(), "check the path; without --file the lines of the standard input are sent"}
		}
		from, shut = f, func() { _ = f.Close() }
	case isTerminal(c.stdin):
		fmt.Fprintln(c.stderr, "type events, one a line; end with Ctrl-D")
	}
	if flags.whole {
		return &input{bodies: whole(from), total: 1, close: shut}, nil
	}
	return &input{bodies: first(lines(from), flags.count), close: shut}, nil
}

// repeat gives so many bodies, beginning again with the first text when they run out.
func repeat(texts []string, count int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range count {
			if !yield([]byte(texts[i%len(texts)]), nil) {
				return
			}
		}
	}
}

// madeUp gives numbered bodies of one size, without end if count is zero.
func madeUp(size, count int) iter.Seq2[[]byte, error] {
	size = cmp.Or(size, 1<<10)
	return func(yield func([]byte, error) bool) {
		for i := 1; count == 0 || i <= count; i++ {
			body := bytes.Repeat([]byte("."), size)
			copy(body, fmt.Sprintf("event %d ", i))
			if !yield(body, nil) {
				return
			}
		}
	}
}

// whole gives everything as one body.
func whole(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		body, err := io.ReadAll(io.LimitReader(r, maxInputBytes+1))
		if err == nil && len(body) > maxInputBytes {
			err = fmt.Errorf("the input is larger than %s, and an event may take %s", quantity.FormatSize(maxInputBytes), quantity.FormatSize(admin.MaxEventBytes))
		}
		yield(body, err)
	}
}

// lines gives each line without its end. The last one needs none.
func lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		scan := bufio.NewScanner(r)
		scan.Buffer(make([]byte, 64<<10), maxInputBytes)
		n := 0
		for scan.Scan() {
			n++
			if !yield(scan.Bytes(), nil) {
				return
			}
		}
		switch err := scan.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(nil, fmt.Errorf("line %s is larger than %s, and an event may take %s; nothing from there on was sent",
				thousands(n+1), quantity.FormatSize(maxInputBytes), quantity.FormatSize(admin.MaxEventBytes)))
		case err != nil:
			yield(nil, fmt.Errorf("read line %s: %w", thousands(n+1), err))
		}
	}
}

// first gives the first so many, or all if count is zero.
func first(bodies iter.Seq2[[]byte, error], count int) iter.Seq2[[]byte, error] {
	if count == 0 {
		return bodies
	}
	return func(yield func([]byte, error) bool) {
		left := count
		for body, err := range bodies {
			if !yield(body, err) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// start reads ahead: one goroutine reads, a second gathers what has come while a
// batch was on its way. Both end with ctx, but for one that waits for an input that
// cannot be interrupted, such as a terminal; that one ends with the process.
func (in *input) start(ctx context.Context, made maker, p *pacer) <-chan []item {
	items, batches := make(chan item, 16), make(chan []item)
	go func() {
		defer close(items)
		in.err = in.read(ctx, made, p, items)
	}()
	go gather(ctx, items, batches, in.ready)
	return batches
}

func (in *input) read(ctx context.Context, made maker, p *pacer, items chan<- item) error {
	number := 0
	for body, err := range in.bodies {
		if err != nil {
			return err
		}
		number++
		it, err := made.item(body, number)
		if err != nil {
			return err
		}
		if !p.wait(ctx) {
			return nil
		}
		select {
		case items <- it:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// gather puts items into batches: whatever is there when the sender is free, or as much as fits
// where all is there at once. It closes batches at the end of items, not at that of ctx.
func gather(ctx context.Context, items <-chan item, batches chan<- []item, fill bool) {
	var g gathering
	for items != nil || len(g.batch) > 0 {
		in, out := items, batches
		if g.full() {
			in = nil
		}
		if len(g.batch) == 0 || fill && !g.full() && items != nil {
			out = nil
		}
		select {
		case it, more := <-in:
			if !more {
				items = nil
				continue
			}
			g.add(it)
		case out <- g.batch:
			g.next()
		case <-ctx.Done():
			return
		}
	}
	close(batches)
}

// gathering is a batch in the making.
type gathering struct {
	batch []item
	bytes int
	// held is an item that would have made the batch too large, and begins the next.
	held *item
}

func (g *gathering) full() bool {
	return g.held != nil || len(g.batch) >= maxBatchEvents || g.bytes >= maxBatchBytes
}

func (g *gathering) add(it item) {
	if len(g.batch) > 0 && g.bytes+len(it.event) > maxBatchBytes {
		g.held = &it
		return
	}
	g.batch = append(g.batch, it)
	g.bytes += len(it.event)
}

func (g *gathering) next() {
	held := g.held
	*g = gathering{}
	if held != nil {
		g.add(*held)
	}
}

// pacer spreads events evenly over time.
type pacer struct {
	rate  int // a second; zero: no limit
	began time.Time
	given int
}

func newPacer(rate int) *pacer { return &pacer{rate: rate, began: time.Now()} }

// leastPause is not worth a timer: who is early by less goes on at once.
const leastPause = time.Millisecond

// wait returns when the next event is due, or false when ctx has ended.
func (p *pacer) wait(ctx context.Context) bool {
	if p.rate == 0 {
		return true
	}
	early := p.due(p.given) - time.Since(p.began)
	p.given++
	if early < leastPause {
		return true
	}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// due is when event n, counted from zero, may go, since the beginning.
func (p *pacer) due(n int) time.Duration {
	return time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
}
