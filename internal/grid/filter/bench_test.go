package filter

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
)

// crowd is 10,000 filters of one kind, and an event of about 600 bytes that few of them pass.
type crowd struct {
	name string
	make func(i int) Config
}

const crowdSize = 10000

var crowds = []crowd{
	{"event type", func(i int) Config { return Config{EventTypes: []string{fmt.Sprintf("shop.type%d", i)}} }},
	{"subject prefix", func(i int) Config { return Config{SubjectBeginsWith: fmt.Sprintf("/tenants/%d/", i)} }},
	{"subject suffix", func(i int) Config { return Config{SubjectEndsWith: fmt.Sprintf("-%d.jpg", i)} }},
	{"subject prefix, case kept", func(i int) Config {
		return Config{SubjectBeginsWith: fmt.Sprintf("/tenants/%d/", i), SubjectCaseSensitive: true}
	}},
	{"StringIn", one("StringIn", "data.tenant", `["tenant-%[1]d","other-%[1]d"]`)},
	{"StringIn behind a common type", func(i int) Config {
		return Config{EventTypes: []string{"shop.type7"}, Advanced: []Condition{condition("StringIn", "data.tenant", fmt.Sprintf(`["tenant-%d"]`, i))}}
	}},
	{"StringBeginsWith", one("StringBeginsWith", "data.path", `["/a/%[1]d/","/b/%[1]d/"]`)},
	{"NumberIn", one("NumberIn", "data.customer.id", `[%d]`)},
	{"BoolEquals with a type", func(i int) Config {
		return Config{EventTypes: []string{fmt.Sprintf("shop.type%d", i)}, Advanced: []Condition{condition("BoolEquals", "data.paid", "true")}}
	}},
	{"NumberGreaterThan, few below", one("NumberGreaterThan", "data.total", `%d`)},
	{"NumberInRange", one("NumberInRange", "data.customer.id", `[[%[1]d,%[1]d.5]]`)},
	{"NumberGreaterThan behind one of ten types", func(i int) Config {
		return Config{EventTypes: []string{fmt.Sprintf("shop.type%d", i%10)}, Advanced: []Condition{condition("NumberGreaterThan", "data.total", fmt.Sprint(i))}}
	}},
	{"an array's StringIn", func(i int) Config {
		return Config{Arrays: true, Advanced: []Condition{condition("StringIn", "data.tags", fmt.Sprintf(`["tag-%d"]`, i))}}
	}},
	{"10,000 keys", func(i int) Config {
		return Config{Advanced: []Condition{condition("StringIn", fmt.Sprintf("data.key%d", i), `["x"]`)}}
	}},
	// The rest are asked one by one.
	{"asked: StringContains", one("StringContains", "data.path", `["needle-%d"]`)},
	{"asked: NumberNotInRange, few pass", func(i int) Config {
		return Config{Advanced: []Condition{condition("NumberNotInRange", "data.total", fmt.Sprintf(`[[0,%d]]`, 100+i))}}
	}},
	{"asked: StringNotContains, few pass", func(i int) Config {
		return Config{Advanced: []Condition{condition("StringNotContains", "data.path", fmt.Sprintf(`["/a/","%d"]`, i))}}
	}},
	{"asked: StringNotIn, all pass", one("StringNotIn", "data.tenant", `["tenant-x%d"]`)},
}

func one(operator, key, operand string) func(i int) Config {
	return func(i int) Config {
		return Config{Advanced: []Condition{condition(operator, key, fmt.Sprintf(operand, i))}}
	}
}

func (c crowd) filters(t testing.TB) []*Filter {
	filters := make([]*Filter, crowdSize)
	for i := range filters {
		filters[i] = mustCompile(t, c.make(i))
	}
	return filters
}

func crowdEvent() *schema.Envelope {
	return &schema.Envelope{
		Form: schema.EventGridForm, ID: []byte("0b0a8cdf-1ba0-4a5c-8b24-8bf0d5a2f9d1"), Type: []byte("shop.type7"), Time: []byte("2026-01-02T03:04:05Z"),
		Subject: []byte("/tenants/4711/pictures/image-4711.jpg"), Topic: "/subscriptions/x/topics/y",
		Data: []byte(`{"tenant":"tenant-4711","path":"/a/4711/The Quick Brown Fox Jumps","paid":true,"tags":["New","tag-4711","tag-12"],
			"lines":[{"sku":"AB-1","count":3,"price":9.99},{"sku":"AB-2","count":1,"price":19.99},{"sku":"AB-3","count":12,"price":0.49}],
			"note":"please leave it at the gate, \"thank you\"","customer":{"name":"Jane Doe","id":4711,"address":{"street":"Long Street 1","city":"Springfield","zip":"12345"}},
			"total":12.5,"currency":"EUR","history":["created","checked","packed"]}`),
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, c := range crowds {
		b.Run(c.name, func(b *testing.B) {
			m, e := NewIndex(c.filters(b)).Matcher(), crowdEvent()
			matched := m.Match(e, nil)
			b.ReportAllocs()
			for b.Loop() {
				matched = m.Match(e, matched[:0])
			}
			b.ReportMetric(float64(len(matched)), "matched")
		})
	}
}

func BenchmarkNewIndex(b *testing.B) {
	for _, c := range crowds {
		b.Run(c.name, func(b *testing.B) {
			filters := c.filters(b)
			for b.Loop() {
				NewIndex(filters)
			}
		})
	}
}

func BenchmarkFilterMatch(b *testing.B) {
	f := mustCompile(b, Config{EventTypes: []string{"shop.type7"}, SubjectBeginsWith: "/tenants/",
		Advanced: []Condition{condition("NumberGreaterThan", "data.total", "5"), condition("StringIn", "data.tenant", `["tenant-4711"]`)}})
	e := crowdEvent()
	b.ReportAllocs()
	for b.Loop() {
		if !f.Match(e) {
			b.Fatal("does not match")
		}
	}
}

// Nothing is allocated for an event once the room is there.
func TestMatchDoesNotAllocate(t *testing.T) {
	var mixed []*Filter
	for i := range 500 {
		mixed = append(mixed, mustCompile(t, crowds[i%len(crowds)].make(4600+i)))
	}
	m, e := NewIndex(mixed).Matcher(), crowdEvent()
	matched := m.Match(e, nil)
	if len(matched) == 0 {
		t.Fatal("nothing matches")
	}
	testkit.Equal(t, testing.AllocsPerRun(100, func() { matched = m.Match(e, matched[:0]) }), 0, "allocates")
}
