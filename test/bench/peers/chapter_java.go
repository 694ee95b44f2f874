package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// javaRecords is how many records Java's tool sends in a turn of a second, by what the server does with them: about
// what it can do in that time, so that the fast do not end before they have begun.
var javaRecords = map[durability]int{page: 100_000, fsync: 40_000, none: 100_000}

// raceJava is produce by Kafka's own tool, ProducerPerformance, with the defaults of Java's client: batches of 16 KiB.
// The tool for consumers wants groups, and is not used.
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
	if err := b.warm(ctx, franz{}, in, kafkaLoads[2], b.partitions); err != nil {
		return err
	}
	s, order := scores{}, names(in)
	for round := range b.rounds {
		err := b.withTopics(ctx, franz{}, in, b.partitions, func(topic string) (err error) {
			in, err = b.lap(ctx, in, func(ctx context.Context, p peer) error {
				records := max(int(b.period.Seconds()*float64(javaRecords[p.about().stores])), 1_000)
				w, err := perfTool(ctx, classPath, p, topic, records)
				if err != nil {
					return err
				}
				s.addWork(p.about().name, w)
				b.showTurn(round, "Java", load{name: "1 KiB"}, p, w)
				return nil
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	b.compare("Java's ProducerPerformance, 1 KiB", s, rate, false)
	sink := b.thrownAway().is.name
	b.report.ratio(
		ratio{what: "Java's ProducerPerformance, 1 KiB, the ceiling: thrown away / Kafka's default", values: s.over(sink, b.kafka(page).is.name, rate), ceiling: true},
		ratio{what: "Java's ProducerPerformance, 1 KiB, yard `os` / thrown away", values: s.over(b.yard(page).is.name, sink, rate), ceiling: true})
	b.report.table(s.table(fmt.Sprintf("Kafka, produce 1 KiB, %d partitions, Java's ProducerPerformance 4.3.1", b.partitions), order, rateFigures,
		"Its own figure of records/s; a JVM of its own for each turn, whose start is a part of the client's CPU time."))
	return nil
}

// perfTool sends records and reads what the tool says of it.
func perfTool(ctx context.Context, classPath string, p peer, topic string, records int) (work, error) {
	cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-cp", classPath, "org.apache.kafka.tools.ProducerPerformance",
		"--topic", topic, "--num-records", strconv.Itoa(records), "--record-size", "1024", "--throughput", "-1",
		"--producer-props", "bootstrap.servers="+p.address("kafka"), "acks=all")
	_, before := cpuTimes(p)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return work{}, fmt.Errorf("ProducerPerformance: %w\n%s", err, out)
	}
	_, after := cpuTimes(p)
	w, err := perfResult(string(out))
	w.client, w.server = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), after-before
	return w, err
}

// perfSum is the last line of the tool: what it sent in all.
var perfSum = regexp.MustCompile(`(?m)^(\d+) records sent, ([\d.]+) records/sec .*99\.9th`)

func perfResult(printed string) (work, error) {
	found := perfSum.FindStringSubmatch(printed)
	if found == nil {
		return work{}, fmt.Errorf("ProducerPerformance printed no sum: %q", printed)
	}
	events, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return work{}, err
	}
	perSecond, err := strconv.ParseFloat(found[2], 64)
	if err != nil || perSecond <= 0 {
		return work{}, fmt.Errorf("ProducerPerformance printed %q records/sec", found[2])
	}
	return work{events: events, took: time.Duration(float64(events) / perSecond * float64(time.Second))}, nil
}
