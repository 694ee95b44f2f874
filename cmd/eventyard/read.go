package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/spf13/cobra"
)

const readHelp = `Read a hub's events: those that are there now or, with --follow, also those that
come. A tail that loses its yard waits for it and continues where it was, without a
gap and without a repeat.

--from says where to begin:
  earliest                 the oldest event that is kept
  latest                   behind the newest
  2026-01-31T12:00:00Z     the first event enqueued at that time or later; without
                           a zone it is local time, and without a clock midnight
  15m, 24h, 7d             so long ago
  1041, after:1041         with, or behind, the event of that number; such a number
                           counts within one partition
  0:17,1:4                 each partition at its own number, as the id of a tail's
                           event has it; so does p1.…, for many partitions`

// readCommand is `eventyard read`.
type readCommand struct{ *cli }

func (c readCommand) command() *cobra.Command {
	query := admin.Query{}
	var from, find string
	var follow, cloud bool
	var form eventForm
	cmd := &cobra.Command{
		Use:   "read HUB",
		Short: "Read events, and follow new ones",
		Long:  readHelp,
		Example: `  eventyard read orders
  eventyard read orders --from 15m --follow
  eventyard read orders --from earliest -o json | jq .body
  eventyard read orders --from 24h --find 'data.total NumberGreaterThan 100'`,
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "earliest", "`position` to begin at")
	f.StringSliceVarP(&query.Partitions, "partition", "p", nil, "`ids` of the partitions to read, separated by commas (default all)")
	f.StringVarP(&query.Group, "group", "g", "", "consumer `group` to read as (default $Default)")
	f.BoolVarP(&follow, "follow", "f", false, "continue with new events as they come")
	f.IntVarP(&query.Count, "count", "n", 0, "end after so many events")
	f.StringVar(&find, "find", "", "only events with this `text`, in any case, or that meet a condition such as 'data.total NumberGreaterThan 100'")
	f.BoolVar(&form.properties, "properties", false, "show the properties of each event, too, as -o json does")
	f.BoolVar(&cloud, "cloudevents", false, "with -o json, each event as subscriptions of the hub see it, a CloudEvent in cloudEvent")
	form.addTo(cmd)
	form.head = isTerminal(c.stdout)
	return c.asking(cmd, func(cmd *cobra.Command, client *admin.Client, args []string) error {
		query.Hub = args[0]
		if find != "" && follow {
			return usagef(cmd, "--find looks at what is there, and --follow at what comes: give one of them")
		}
		if cloud {
			if form.output == asText || find != "" {
				return usagef(cmd, "--cloudevents is for -o json, and not for --find")
			}
			query.Bodies = "cloudevents"
		}
		var err error
		if query.From, err = parseFrom(from, time.Now()); err != nil {
			return usagef(cmd, "--from: %w", err)
		}
		if query.Count < 0 || query.Count == 0 && cmd.Flags().Changed("count") {
			return usagef(cmd, "--count is at least 1")
		}
		if err := checkNumber(cmd, client, query); err != nil {
			return err
		}
		if find != "" {
			return c.search(cmd.Context(), client, query, find, form)
		}
		return c.read(cmd.Context(), client, query, follow, form)
	})
}

// parseFrom turns what people write into a position of the API.
func parseFrom(text string, now time.Time) (string, error) {
	if text == "earliest" || text == "latest" || isPositions(text) {
		return text, nil
	}
	number, _ := strings.CutPrefix(text, "after:")
	if _, err := strconv.ParseUint(number, 10, 62); err == nil {
		return text, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t.UTC().Format(time.RFC3339Nano), nil
		}
	}
	if ago, err := quantity.ParseDuration(text); err == nil {
		return now.Add(-ago).UTC().Format(time.RFC3339Nano), nil
	}
	return "", fmt.Errorf("%q is neither earliest nor latest, a number, a time like 2026-01-31T12:00:00Z or an age like 15m", text)
}

// isPositions tells a position of several partitions: 0:17,1:4, or packed, as the yard
// writes it for many.
func isPositions(text string) bool {
	if packed, ok := strings.CutPrefix(text, "p1."); ok {
		_, err := base64.RawURLEncoding.DecodeString(packed)
		return err == nil && packed != ""
	}
	for part := range strings.SplitSeq(text, ",") {
		id, number, _ := strings.Cut(part, ":")
		if _, err := strconv.ParseUint(id, 10, 16); err != nil {
			return false
		}
		if _, err := strconv.ParseUint(number, 10, 62); err != nil {
			return false
		}
	}
	return true
}

// checkNumber refuses one number for several partitions in the words of this command.
func checkNumber(cmd *cobra.Command, client *admin.Client, q admin.Query) error {
	number, _ := strings.CutPrefix(q.From, "after:")
	if _, err := strconv.ParseUint(number, 10, 62); err != nil || len(q.Partitions) == 1 {
		return nil
	}
	hub, err := client.Hub(cmd.Context(), q.Hub)
	if err != nil || hub.Partitions == 1 {
		return err
	}
	return usagef(cmd, "--from %s counts within one partition, and %s has %d: name one with --partition", q.From, hub.Name, hub.Partitions)
}

func (c readCommand) read(ctx context.Context, client *admin.Client, q admin.Query, follow bool, form eventForm) error {
	revoked := false
	notice := func(n admin.Notice) {
		revoked = isRevoked(n)
		c.notice(n)
	}
	events := client.Read(ctx, q, notice)
	if follow {
		events = client.Follow(ctx, q, notice)
	}
	err := c.printEvents(events, follow, form)
	var refused *admin.Problem
	switch {
	case follow && ctx.Err() != nil:
		return nil // an interrupt is how following ends
	case ctx.Err() != nil:
		return errInterrupted
	case follow && revoked && errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return &advisedError{"the tail has ended: the key it was let in by was replaced, or its policy or hub deleted", nextForUnauthorized}
	}
	return err
}

// isRevoked tells whether a tail broke off because its key is good no more. The yard says
// so in words only.
func isRevoked(n admin.Notice) bool {
	return n.Lost != nil && strings.HasPrefix(n.Lost.Error(), auth.ErrRevoked.Error())
}

// notice tells what happens to a reading between its events.
func (c readCommand) notice(n admin.Notice) {
	switch {
	case n.Skipped:
		fmt.Fprintf(c.stderr, "%s %v\n", newPaint(c.stderr).yellow("skipped:"), n.Lost)
	case isRevoked(n):
		// The same key is refused when the tail asks again, and read tells of that.
	case n.Lost != nil:
		fmt.Fprintf(c.stderr, "%s %v; waiting for the yard\n", newPaint(c.stderr).yellow("lost:"), n.Lost)
	default:
		fmt.Fprintln(c.stderr, newPaint(c.stderr).green("back:"), "going on where it was")
	}
}

// eventForm is how events are printed.
type eventForm struct {
	output
	// properties: those of each event stand behind its body. head: what stands where is said first,
	// as somebody sees it.
	properties, head bool
}

// printEvents prints events as they come. Who follows sees each at once.
func (c *cli) printEvents(events iter.Seq2[json.RawMessage, error], atOnce bool, form eventForm) error {
	out := bufio.NewWriterSize(c.stdout, 64<<10)
	show := printJSON
	if form.output == asText {
		show = form.print
		if form.head {
			fmt.Fprintln(out, newPaint(c.stdout).bold("PARTITION/NUMBER  ENQUEUED  KEY  BODY"))
		}
	}
	for event, err := range events {
		if err == nil {
			err = show(out, event)
		}
		if err == nil && atOnce {
			err = out.Flush()
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}

func printJSON(w io.Writer, event json.RawMessage) error {
	_, err := w.Write(append(event, '\n'))
	return err
}

// print prints partition/number, time, key and body on one line.
func (f eventForm) print(w io.Writer, event json.RawMessage) error {
	var e struct {
		Partition  string          `json:"partition"`
		Sequence   int64           `json:"sequence"`
		Enqueued   string          `json:"enqueued"`
		Key        string          `json:"key"`
		Body       json.RawMessage `json:"body"`
		BodyBase64 *string         `json:"bodyBase64"`
		Value      json.RawMessage `json:"value"`
		Unreadable string          `json:"unreadable"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	var body string
	switch {
	case e.Unreadable != "":
		body = "(unreadable: " + e.Unreadable + ")"
	case e.BodyBase64 != nil:
		body = showBytes(*e.BodyBase64)
	case e.Body != nil:
		if json.Unmarshal(e.Body, &body) != nil { // text is shown without its quotes, other JSON as it is
			body = string(e.Body)
		}
	default:
		body = string(e.Value)
	}
	if f.properties && e.Properties != nil {
		body += "  " + string(e.Properties)
	}
	_, err := fmt.Fprintf(w, "%s/%d  %s  %s  %s\n", e.Partition, e.Sequence, e.Enqueued, oneLine(cmp.Or(e.Key, "-")), oneLine(body))
	return err
}

// showBytes describes a body that is no text.
func showBytes(encoded string) string {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return encoded
	}
	const most = 24
	more := ""
	if len(data) > most {
		more = "…"
	}
	return fmt.Sprintf("(%s: %x%s)", counted(len(data), "byte"), data[:min(len(data), most)], more)
}
