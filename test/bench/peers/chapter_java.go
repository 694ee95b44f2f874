package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// javaLoad is what Java's tools send, and how many records in a turn of a second, by what the server does with them: about
// what it can do in that time, so that the fast do not end before they have begun.
type javaLoad struct {
	load
	records map[durability]int
}

// javaLoads have batches of 16 KiB, the default of Java's client.
var javaLoads = []javaLoad{
	{load{name: "1 KiB", eventBytes: 1024}, map[durability]int{page: 100_000, fsync: 40_000, none: 100_000}},
	{load{name: "100 B", eventBytes: 100}, map[durability]int{page: 400_000, fsync: 150_000, none: 400_000}},
}

// raceJava is Kafka's own tools, ProducerPerformance and ConsumerPerformance, with the defaults of Java's client, whose
// consumer is in a group. What was synced is read as what was not, so only the latter is consumed.
func raceJava(ctx context.Context, b *bench) (err error) {
	classPath, err := kafkaFolder()
	if err != nil {
		b.leaveOut("Java's tools", err)
		return nil
	}
	in, stop, err := b.stand(ctx, b.yard(page), b.yard(fsync), b.kafka(page), b.kafka(fsync), b.thrownAway())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	idle := residents(in)
	// Java's tools warm up as well, so that the memory in the end is what they cost alone. Each of their runs starts a JVM,
	// so those that need no warming go without.
	small := javaLoads[len(javaLoads)-1]
	cold := slices.DeleteFunc(slices.Clone(in), func(p peer) bool { return !p.about().jvm })
	err = b.warmBy(ctx, franz{}, cold, b.partitions, b.options.warm, func(ctx context.Context, p peer, topic string, events int64) error {
		if _, err := producePerf(ctx, classPath, p, topic, small.load, int(events)); err != nil {
			return err
		}
		_, err := consumePerf(ctx, classPath, p, topic, int(events))
		return err
	})
	if err != nil {
		return err
	}
	for _, l := range javaLoads {
		if err := b.raceJavaLoad(ctx, classPath, in, l); err != nil {
			return err
		}
	}
	b.reportMemory("in the race by Kafka's protocol, Java's clients", in, idle, b.kafkaPairs(), tenthBar)
	return nil
}

func (b *bench) raceJavaLoad(ctx context.Context, classPath string, in []peer, l javaLoad) error {
	produced, consumed := scores{}, scores{}
	shown := l.load
	shown.name += ", Java"
	for round := range b.rounds {
		err := b.withTopics(ctx, franz{}, in, b.partitions, func(topic string) error {
			return b.lap(ctx, in, func(ctx context.Context, p peer) error {
				if err := (franz{}).touch(ctx, p, topic, l.load); err != nil {
					return err
				}
				records := max(int(b.period.Seconds()*float64(l.records[p.about().stores])), 1_000)
				w, err := producePerf(ctx, classPath, p, topic, l.load, records)
				if err != nil {
					return err
				}
				produced.addWork(p.about().name, w)
				b.showTurn(round, "produce", shown, p, w)
				if p.about().stores != page {
					return nil
				}
				if w, err = consumePerf(ctx, classPath, p, topic, records); err != nil {
					return err
				}
				consumed.addWork(p.about().name, w)
				b.showTurn(round, "consume", shown, p, w)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	toProduce, toConsume := produceBar, consumeBar
	if b.partitions != barPartitions {
		toProduce, toConsume = noBar, noBar
	}
	b.compare("Java's ProducerPerformance, "+l.name, produced, rate, false, toProduce)
	b.compare("Java's ConsumerPerformance, "+l.name, consumed, rate, false, toConsume)
	sink := b.thrownAway().is.name
	b.report.ratio(
		ratio{what: "Java's ProducerPerformance, " + l.name + ", the ceiling: thrown away / Kafka's default", values: produced.over(sink, b.kafka(page).is.name, rate), ceiling: true},
		ratio{what: "Java's ProducerPerformance, " + l.name + ", yard `os` / thrown away", values: produced.over(b.yard(page).is.name, sink, rate), ceiling: true})
	for _, one := range []struct {
		verb, tool string
		scores     scores
	}{{"produce", "ProducerPerformance", produced}, {"consume", "ConsumerPerformance", consumed}} {
		b.report.table(one.scores.table(fmt.Sprintf("Kafka, %s %s, %d partitions, Java's %s 4.3.1", one.verb, l.name, b.partitions, one.tool), names(in), rateFigures,
			"Its own figure of records/s; a JVM of its own for each turn, whose start is a part of the client's CPU time."))
	}
	return nil
}

// producePerf sends records and reads what the tool says of it.
func producePerf(ctx context.Context, classPath string, p peer, topic string, l load, records int) (work, error) {
	return perfTool(ctx, classPath, p, "ProducerPerformance", producePerfResult,
		"--topic", topic, "--num-records", strconv.Itoa(records), "--record-size", strconv.Itoa(l.eventBytes), "--throughput", "-1",
		"--producer-props", "bootstrap.servers="+p.address("kafka"), "acks=all")
}

// consumePerf reads as many records, in a group of its own.
func consumePerf(ctx context.Context, classPath string, p peer, topic string, records int) (work, error) {
	return perfTool(ctx, classPath, p, "ConsumerPerformance", consumePerfResult,
		"--bootstrap-server", p.address("kafka"), "--topic", topic, "--num-records", strconv.Itoa(records), "--group", topic, "--timeout", "30000")
}

// perfTool runs one of Kafka's tools in a JVM of its own.
func perfTool(ctx context.Context, classPath string, p peer, tool string, result func(printed string) (work, error), args ...string) (work, error) {
	cmd := exec.CommandContext(ctx, "java", append([]string{"-Xmx512m", "-cp", classPath, "org.apache.kafka.tools." + tool}, args...)...)
	_, before := cpuTimes(p)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return work{}, fmt.Errorf("%s: %w\n%s", tool, err, out)
	}
	_, after := cpuTimes(p)
	w, err := result(string(out))
	if err != nil {
		return work{}, fmt.Errorf("%s printed %q: %w", tool, out, err)
	}
	w.client, w.server = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), after-before
	return w, nil
}

// perfSum is the last line of ProducerPerformance: what it sent in all.
var perfSum = regexp.MustCompile(`(?m)^(\d+) records sent, ([\d.]+) records/sec .*99\.9th`)

func producePerfResult(printed string) (work, error) {
	found := perfSum.FindStringSubmatch(printed)
	if found == nil {
		return work{}, errors.New("there is no sum in it")
	}
	return workOf(found[1], found[2])
}

// consumePerfResult reads the table of ConsumerPerformance: what was read, and at what rate once its group had
// partitions.
func consumePerfResult(printed string) (work, error) {
	var head []string
	for line := range strings.Lines(printed) {
		cells := strings.Split(strings.TrimSpace(line), ", ")
		if slices.Contains(cells, "fetch.nMsg.sec") {
			head = cells
			continue
		}
		if head == nil || len(cells) != len(head) {
			continue
		}
		return workOf(cells[slices.Index(head, "data.consumed.in.nMsg")], cells[slices.Index(head, "fetch.nMsg.sec")])
	}
	return work{}, errors.New("there is no table in it")
}

// workOf is so many events, at so many a second.
func workOf(events, perSecond string) (work, error) {
	n, err := strconv.ParseInt(events, 10, 64)
	if err != nil {
		return work{}, err
	}
	r, err := strconv.ParseFloat(perSecond, 64)
	if err != nil {
		return work{}, err
	}
	if r <= 0 {
		return work{}, fmt.Errorf("%s events/s", perSecond)
	}
	return work{events: n, took: time.Duration(float64(n) / r * float64(time.Second))}, nil
}
