package filter

import (
	"bytes"
	"slices"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// fewElements is how many elements an index looks up one by one. For a longer array it asks
// the filters instead: the length is an outsider's choice, and the filters are ours. It is
// changed by tests only.
var fewElements = 64

const (
	// keptNumbers bounds the room for numbers that is kept from one event to the next.
	keptNumbers = 256
	// edge stands before, between and behind the texts of an array. No text has that byte.
	edge = '\xff'
)

// elements are what an array has, by type: which booleans, which numbers, and all texts as
// one. So a question about all of them is one question, however often it is asked.
type elements struct {
	count   int
	bools   [2]bool
	numbers []num
	// looks is how often numbers were gone through; sorted, they need not be any more.
	looks  int
	sorted bool
	// texts are folded, with edges around them.
	texts haystack
	// plain is room for a text without escapes.
	plain []byte
}

// all gives the elements of an array.
func (v *value) all() *elements {
	if !v.has(asElements) {
		v.elements.split(v.text)
	}
	return &v.elements
}

func (e *elements) split(array []byte) {
	texts := e.texts.text[:0]
	for at := 1; ; {
		var raw []byte
		if raw, at = nextElement(array, at); raw == nil {
			break
		}
		e.count++
		switch kindOf(raw) {
		case boolean:
			e.bools[boolBucket(raw[0] == 't')] = true
		case number:
			if n, ok := parseNum(raw); ok {
				e.numbers = append(e.numbers, n)
			}
		case str:
			text := raw[1 : len(raw)-1]
			if bytes.IndexByte(text, '\\') >= 0 {
				e.plain = schema.AppendUnescaped(e.plain[:0], text)
				text = e.plain
			}
			if len(texts) == 0 {
				texts = append(texts, edge)
			}
			texts = append(appendFolded(texts, text), edge)
		}
	}
	e.texts.text = texts
}

// eachText gives the folded texts one by one.
func (e *elements) eachText(yield func([]byte) bool) {
	for rest := e.texts.text; len(rest) > 1; {
		text := rest[1:]
		end := bytes.IndexByte(text, edge)
		if !yield(text[:end]) {
			return
		}
		rest = text[end:]
	}
}

// hit says whether some element passes a condition's test.
func (e *elements) hit(c *cond) bool {
	switch c.test {
	case testBool:
		return e.bools[boolBucket(c.yes)]
	case testSpans:
		return slices.ContainsFunc(c.spans, e.inSpan)
	}
	if len(e.texts.text) == 0 {
		return false
	}
	for i := range c.texts {
		t := &c.texts[i]
		if part := t.between(c.test); part != nil && e.texts.has(part, t.sketch) {
			return true
		}
	}
	return false
}

// inSpan says whether some number is in a span.
func (e *elements) inSpan(s span) bool {
	if e.looks++; e.looks > manyLooks && !e.sorted {
		slices.SortFunc(e.numbers, num.compare)
		e.sorted = true
	}
	if !e.sorted {
		return slices.ContainsFunc(e.numbers, s.contains)
	}
	i, _ := slices.BinarySearchFunc(e.numbers, s.low, func(n num, low bound) int { return bound{at: n}.compare(low) })
	return i < len(e.numbers) && s.contains(e.numbers[i])
}

// reset forgets the array, and keeps room for the next.
func (e *elements) reset() {
	if e.count == 0 {
		return
	}
	numbers, texts, plain := e.numbers[:0], keepRoom(e.texts.text), keepRoom(e.plain)
	if cap(numbers) > keptNumbers {
		numbers = nil
	}
	*e = elements{numbers: numbers, texts: haystack{text: texts}, plain: plain}
}
