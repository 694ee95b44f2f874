package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// kafkaLoads are what is sent by Kafka's protocol. Batches of 16 KiB are the default of Java's client, those of 1 MB that
// of franz-go.
var kafkaLoads = []load{
	{"1 KiB, batches ≤ 1 MB", 1024, 1_000_000},
	{"1 KiB, batches ≤ 16 KiB", 1024, 16 << 10},
	{"100 B, batches ≤ 1 MB", 100, 1_000_000},
	{"100 B, batches ≤ 16 KiB", 100, 16 << 10},
}

// otherPartitions are those of the topics with which the first load is raced again, in otherRounds at most: no target
// is set for them.
var otherPartitions = []int{1, 128}

const otherRounds = 3

// latencyRates are the steady loads at which latency is measured, in events of 1 KiB a second.
var latencyRates = []int{1_000, 10_000}

// catchUpRate is what comes in while a consumer reads from the beginning, in events of 1 KiB a second.
const catchUpRate = 20_000

// raceKafka is the race by Kafka's protocol with franz-go: the yard, Apache Kafka, and a server that throws away.
func raceKafka(ctx context.Context, b *bench) (err error) {
	in, stop, err := b.stand(ctx, b.yard(page), b.yard(fsync), b.kafka(page), b.kafka(fsync), b.thrownAway())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	idle := residents(in)
	client, secure := franz{}, franz{secure: b.trusted}
	if err = b.warm(ctx, client, in, kafkaLoads[2], b.partitions, b.options.warm); err != nil {
		return err
	}
	for i, l := range kafkaLoads {
		var withTLS driver
		if i == 0 {
			withTLS = secure
		}
		r, err := b.raceRates(ctx, client, withTLS, in, l, b.partitions, b.rounds)
		if err != nil {
			return err
		}
		b.reportKafkaRates(names(in), l, b.partitions, r)
	}
	for _, partitions := range otherPartitions {
		r, err := b.raceRates(ctx, client, nil, in, kafkaLoads[0], partitions, min(b.rounds, otherRounds))
		if err != nil {
			return err
		}
		b.reportKafkaRates(names(in), kafkaLoads[0], partitions, r)
	}
	for _, perSecond := range latencyRates {
		if err := b.raceLatency(ctx, client, storing(in, page, fsync), perSecond); err != nil {
			return err
		}
	}
	if err := b.raceCatchUp(ctx, client, in); err != nil {
		return err
	}
	b.reportMemory("in the race by Kafka's protocol, franz-go", in, idle, b.kafkaPairs(), tenthBar)
	return nil
}

// pair is two servers that are compared.
type pair struct {
	what         string
	ours, theirs string
	alike        bool // in what they have done with an event when they acknowledge it
}

// kafkaPairs are those of like durability, and the two defaults, which are not.
func (b *bench) kafkaPairs() []pair {
	yardOS, yardAlways := b.yard(page).is.name, b.yard(fsync).is.name
	kafkaPage, kafkaFsync := b.kafka(page).is.name, b.kafka(fsync).is.name
	return []pair{
		{"page cache: yard `os` / Kafka's default", yardOS, kafkaPage, true},
		{"fsync: yard `always` / Kafka `flush.messages=1`", yardAlways, kafkaFsync, true},
		{"defaults, not alike: yard `always` / Kafka's default", yardAlways, kafkaPage, false},
	}
}

// What is to be reached of Kafka with like durability and barPartitions; of its memory and its start always. p99 is to
// be lower by far.
var (
	noBar      = bar{}
	produceBar = bar{bound: 1.5, orCeiling: true}
	consumeBar = bar{bound: 0.95}
	secureBar  = bar{bound: 1.5, orCeiling: true}
	p99Bar     = bar{bound: 0.5}
	tenthBar   = bar{bound: 0.1}
)

// barPartitions are those of the topics with which rates and latencies are judged, barLatency the events a second.
const (
	barPartitions = 16
	barLatency    = 10_000
)

// compare adds ratios of a figure for all pairs that were in the race.
func (b *bench) compare(what string, s scores, f figure, lowWins bool, to bar) {
	sink := b.thrownAway().is.name
	for _, p := range b.kafkaPairs() {
		one := ratio{what: what + ", " + p.what, values: s.over(p.ours, p.theirs, f), lowWins: lowWins}
		if p.alike {
			one.goal = goal{bar: to, room: s.over(sink, p.theirs, f), used: s.over(p.ours, sink, f)}
		}
		b.report.ratio(one)
	}
}

func (b *bench) reportKafkaRates(order []string, l load, partitions int, r rates) {
	sink, kafkaPage, yardOS := b.thrownAway().is.name, b.kafka(page).is.name, b.yard(page).is.name
	for _, one := range []struct {
		verb, note string
		scores     scores
		bar        bar
	}{
		{"produce", "One producer, acks=all, idempotent, no compression. The server that throws away is the ceiling of what this client can do here.", r.produced, produceBar},
		{"consume", "One consumer, from the page cache. The server that throws away sends one batch of each partition from memory, again and again.", r.consumed, consumeBar},
		{"consume with TLS", "The same certificate (ECDSA P-256) at all servers.", r.secure, secureBar},
	} {
		if len(one.scores) == 0 {
			continue
		}
		what := one.verb + " " + l.name
		if partitions != b.partitions {
			what += fmt.Sprintf(", %d %s", partitions, map[bool]string{true: "partition", false: "partitions"}[partitions == 1])
		}
		to := one.bar
		if partitions != barPartitions {
			to = noBar
		}
		b.compare(what, one.scores, rate, false, to)
		b.report.ratio(
			ratio{what: what + ", the ceiling: thrown away / Kafka's default", values: one.scores.over(sink, kafkaPage, rate), ceiling: true},
			ratio{what: what + ", yard `os` / thrown away", values: one.scores.over(yardOS, sink, rate), ceiling: true})
		b.compare("server's CPU to "+what, one.scores, serverCPU, true, noBar)
		title := "Kafka, " + what
		if partitions == b.partitions {
			title += fmt.Sprintf(", %d partitions", partitions)
		}
		b.report.table(one.scores.table(title+", franz-go", order, rateFigures, one.note))
	}
}

func (b *bench) raceLatency(ctx context.Context, client franz, in []peer, perSecond int) error {
	s, order := scores{}, names(in)
	l := kafkaLoads[0]
	for round := range b.rounds {
		err := b.withTopics(ctx, client, in, b.partitions, func(topic string) error {
			return b.lap(ctx, in, func(ctx context.Context, p peer) error {
				all, err := client.latencies(ctx, p, topic, l, perSecond, max(int(b.period.Seconds()*float64(perSecond)), 20))
				if err != nil {
					return err
				}
				s.addLatencies(p.about().name, all)
				b.progress("  %d/%d  latency at %d/s: %s", round+1, b.rounds, perSecond, p.about().name)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	for _, f := range []figure{p50, p99} {
		to := noBar
		if f == p99 && perSecond == barLatency && b.partitions == barPartitions {
			to = p99Bar
		}
		b.compare(fmt.Sprintf("latency at %d events/s, %s", perSecond, f), s, f, true, to)
	}
	b.report.table(s.table(fmt.Sprintf("Kafka, end-to-end latency at %d events/s of 1 KiB, %d partitions, franz-go", perSecond, b.partitions),
		order, []figure{p50, p99}, "From when an event was due to when it was read; no linger."))
	return nil
}

// raceCatchUp has a consumer read from the beginning what was sent before, while more comes at a steady rate.
func (b *bench) raceCatchUp(ctx context.Context, client franz, in []peer) error {
	s, order, l := scores{}, names(in), kafkaLoads[0]
	in = storing(in, page, fsync)
	for round := range b.rounds {
		err := b.withTopics(ctx, client, in, b.partitions, func(topic string) error {
			return b.lap(ctx, in, func(ctx context.Context, p peer) error {
				// As many for all: the slower of two would else have less to catch up with.
				behind := max(int64(b.period.Seconds()*100_000), 1_000)
				if _, err := produce(ctx, client, p, topic, l, limit{events: behind}); err != nil {
					return err
				}
				read, acks, err := catchUp(ctx, client, p, topic, l, behind)
				if err != nil {
					return err
				}
				s.addWork(p.about().name, read)
				s.addLatencies(p.about().name, acks)
				b.showTurn(round, "catch up", l, p, read)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("catch up while %d events/s come", catchUpRate)
	b.compare(what, s, rate, false, noBar)
	b.compare(what+", p99 of the producer's acknowledgements", s, p99, true, noBar)
	b.report.table(s.table(fmt.Sprintf("Kafka, %s of 1 KiB, %d partitions, franz-go", what, b.partitions), order, []figure{rate, serverCPU, p50, p99},
		"events/s are the consumer's, percentiles those of the producer: from when an event was due to its acknowledgement. The server's CPU time is for both."))
	return nil
}

// catchUp reads so many events while a producer sends on, and gives how long the latter waited for acknowledgements.
func catchUp(ctx context.Context, client franz, p peer, topic string, l load, events int64) (read work, acks []time.Duration, err error) {
	sender, err := client.open(ctx, p, topic, l)
	if err != nil {
		return read, nil, err
	}
	defer sender.close()
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards acks, which callbacks append to
	sent := make(chan error, 1)
	go func() {
		sent <- sender.pace(sending, time.Now(), catchUpRate, 0, func(took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			acks = append(acks, took)
		})
	}()
	read, err = metered(p, func() (int64, error) { return events, client.consume(ctx, p, topic, l, events) })
	cancel()
	err = errors.Join(err, <-sent)
	if err == nil && len(acks) == 0 {
		err = errors.New("nothing was acknowledged meanwhile")
	}
	return read, acks, err
}

// residents are what servers hold in memory, in MiB.
func residents(all []peer) map[string]float64 {
	held := map[string]float64{}
	for _, p := range all {
		if kib, ok := measure.ResidentKiB(p.pid()); ok {
			held[p.about().name] = kib / 1024
		}
	}
	return held
}

// reportMemory shows what servers held after their start, hold now, and have held at most.
func (b *bench) reportMemory(where string, in []peer, idle map[string]float64, pairs []pair, to bar) {
	t := measure.Table{Title: "Resident memory " + where + " (MiB)", Head: []string{"what", "after the start", "after the race", "most"},
		Notes: []string{"A JVM has its heap by its settings: 1 GiB for Kafka, as its own script has it, and 512 MiB for Artemis."}}
	now, most := residents(in), map[string]float64{}
	for _, p := range in {
		name := p.about().name
		if kib, ok := measure.PeakKiB(p.pid()); ok {
			most[name] = kib / 1024
		}
		t.Rows = append(t.Rows, []string{name, measure.Number(idle[name]), measure.Number(now[name]), measure.Number(most[name])})
	}
	b.report.table(t)
	for _, p := range pairs {
		if most[p.ours] == 0 || most[p.theirs] == 0 {
			continue
		}
		one := ratio{what: "most memory " + where + ", " + p.what, values: measure.Series{most[p.ours] / most[p.theirs]}, lowWins: true}
		if p.alike {
			one.goal.bar = to
		}
		b.report.ratio(one)
	}
}
