package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/spf13/cobra"
)

const sendHelp = `Send events to a hub. Each TEXT is an event; without any, each line of the standard
input is one. Lines are stored in batches when they come fast, and one by one when
they come slowly: nothing waits for a batch to fill. Where a quota is used up, it
waits until there is room.

With --count or --size, and no TEXT or file, events are made up, for load.`

const sendExamples = `  eventyard send orders "hello" "world"
  eventyard send orders --key customer-42 < orders.txt
  eventyard send orders --file photo.jpg --whole --content-type image/jpeg
  eventyard read orders -o json | eventyard send copies --json
  eventyard send orders --count 100000 --size 1KiB --rate 5000`

// sendFlags are the flags of send.
type sendFlags struct {
	key, partition string
	file           string
	whole, json    bool
	properties     []string
	contentType    string
	rate, count    int
	size           quantity.Size
	form           output
}

// sendCommand is `eventyard send`.
type sendCommand struct{ *cli }

func (c sendCommand) command() *cobra.Command {
	var flags sendFlags
	cmd := &cobra.Command{
		Use:     "send HUB [TEXT...]",
		Short:   "Send events: arguments, lines, files, or load",
		Long:    sendHelp,
		Example: sendExamples,
	}
	f := cmd.Flags()
	f.StringVarP(&flags.key, "key", "k", "", "partition key: events of one `key` stay in order, in one partition")
	f.StringVarP(&flags.partition, "partition", "p", "", "`id` of the partition to send to")
	f.StringVar(&flags.file, "file", "", "read lines from this `file` in place of the standard input")
	f.StringVarP(&flags.file, "former-file", "f", "", "what -f was before it meant --follow alone")
	_ = f.MarkHidden("former-file")
	f.BoolVar(&flags.whole, "whole", false, "the file or input is one event, not one for each line")
	f.BoolVar(&flags.json, "json", false, "each text or line is an event as read -o json prints it")
	f.StringArrayVar(&flags.properties, "property", nil, "property that every event gets, as `name=value`; may be repeated")
	f.StringVar(&flags.contentType, "content-type", "", "content `type` of every event, like application/json")
	f.IntVar(&flags.rate, "rate", 0, "send at most so many events a second")
	f.IntVar(&flags.count, "count", 0, "send so many events, beginning again with the first TEXT when they run out")
	f.Var(&flags.size, "size", "size of the bodies that are made up (1KiB if not given)")
	f.Lookup("size").DefValue = ""
	flags.form.addTo(cmd)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		for _, name := range []string{"count", "rate"} {
			if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "0" {
				return usagef(cmd, "--%s is at least 1", name)
			}
		}
		return c.send(cmd, client, flags, args[0], args[1:])
	})
}

func (c sendCommand) send(cmd *cobra.Command, client *admin.Client, flags sendFlags, hub string, texts []string) error {
	made, err := newMaker(flags)
	if err != nil {
		return usagef(cmd, "%w", err)
	}
	for _, text := range texts {
		c.warn(fileMeant(text, "--file FILE sends its lines, and with --whole all of it as one event"))
	}
	in, err := c.openInput(cmd, flags, texts)
	if err != nil {
		return err
	}
	defer in.close()

	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s := &sender{client: client, hub: hub, flags: flags, out: c.stdout, total: in.total, progress: newProgress(c.stderr), began: time.Now()}
	err = s.sendAll(ctx, in, in.start(ctx, made, newPacer(flags.rate)))
	s.progress.clear()
	if in.endless && errors.Is(err, errInterrupted) {
		err = nil // it is the only end there is
	}
	if flags.form == asText && (err == nil || s.sent > 0) {
		fmt.Fprintln(c.stdout, s.summary())
		for _, stored := range s.shown() {
			fmt.Fprintln(c.stdout, "  "+showStored(stored))
		}
	}
	if flags.json && isProblem(err, "bad-request") {
		err = &advisedError{strings.Replace(err.Error(), "the body is not what is wanted", "an event is not what is wanted", 1),
			"eventyard read -o json prints events as they are written; " + withoutJSON}
	}
	return err
}

// sender stores batches, one after another, so that order holds.
type sender struct {
	client   *admin.Client
	hub      string
	flags    sendFlags
	out      io.Writer // hears of every batch, if it is to be JSON
	total    int       // events there will be; zero: not known
	progress *progress
	began    time.Time
	sent     int64
	highest  int // number of the last event that is stored
	// stored are the first batches.
	stored []admin.Sent
}

// maxStoredShown is how many batches are named.
const maxStoredShown = 3

// shown are the batches that are named.
func (s *sender) shown() []admin.Sent {
	if len(s.stored) > maxStoredShown {
		return nil
	}
	return s.stored
}

// showStored says by which partition and numbers the events of a batch are found again.
func showStored(s admin.Sent) string {
	if s.Count == 1 {
		return fmt.Sprintf("partition %s, number %d", s.Partition, s.First)
	}
	return fmt.Sprintf("partition %s, numbers %d to %d", s.Partition, s.First, s.First+int64(s.Count)-1)
}

// sendAll stores batches until the input ends or ctx does.
func (s *sender) sendAll(ctx context.Context, in *input, batches <-chan []item) error {
	for {
		select {
		case <-ctx.Done():
			return errInterrupted
		case batch, more := <-batches:
			if !more {
				return in.err
			}
			if err := s.sendBatch(ctx, batch); err != nil {
				return err
			}
			s.progress.show(s.line)
		}
	}
}

// sendBatch stores what came together. Events with keys of their own go to different
// partitions and hence in different requests.
func (s *sender) sendBatch(ctx context.Context, batch []item) error {
	for _, part := range splitByKey(batch, s.flags.partition != "") {
		request := admin.Batch{Key: s.flags.key, Partition: s.flags.partition}
		for _, it := range part {
			request.Events = append(request.Events, it.event)
		}
		stored, err := s.store(ctx, request)
		if err != nil {
			return s.failed(part, err)
		}
		s.sent += int64(len(part))
		if len(s.stored) <= maxStoredShown {
			s.stored = append(s.stored, stored)
		}
		s.highest = max(s.highest, part[len(part)-1].number)
		if s.flags.form == asJSON {
			if err := json.NewEncoder(s.out).Encode(stored); err != nil {
				return err
			}
		}
	}
	return nil
}

// store stores a batch. While the quota is used up it waits as long as the yard says and tries again:
// then nothing was stored. What is on its way is let finish: an interrupt leaves no doubt behind.
func (s *sender) store(ctx context.Context, batch admin.Batch) (admin.Sent, error) {
	for {
		stored, err := s.client.Send(context.WithoutCancel(ctx), s.hub, batch)
		var refused *admin.Problem
		if !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests || refused.RetryAfter == 0 {
			return stored, err
		}
		s.progress.show(func() string { return s.line() + ", waiting for the quota" })
		select {
		case <-time.After(refused.RetryAfter):
		case <-ctx.Done():
			return stored, errInterrupted
		}
	}
}

// splitByKey groups items by key, in the order in which the keys first come.
func splitByKey(batch []item, together bool) [][]item {
	if together {
		return [][]item{batch}
	}
	var parts [][]item
	position := map[string]int{}
	for _, it := range batch {
		i, known := position[it.key]
		if !known {
			i = len(parts)
			position[it.key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], it)
	}
	return parts
}

func (s *sender) line() string {
	took := time.Since(s.began).Seconds()
	what := counted(s.sent, "event")
	if s.flags.count > 0 {
		what = thousands(s.sent) + " of " + counted(s.flags.count, "event")
	}
	return fmt.Sprintf("sent %s, %s/s", what, thousands(int64(float64(s.sent)/took)))
}

// summary is the last word of a job. How long it took is told of jobs that took long.
func (s *sender) summary() string {
	text := fmt.Sprintf("sent %s to %s", counted(s.sent, "event"), s.hub)
	if took := time.Since(s.began); took >= progressAfter {
		text += fmt.Sprintf(" in %s, %s/s", showSpan(took), thousands(int64(float64(s.sent)/took.Seconds())))
	}
	return text
}

// parseProperties reads name=value pairs.
func parseProperties(pairs []string) (map[string]any, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	properties := map[string]any{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--property %q is not of the form name=value", pair)
		}
		properties[name] = value
	}
	return properties, nil
}
