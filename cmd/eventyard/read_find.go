package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/eventyard/eventyard/admin"
)

// search prints the events that are found, up to the ends of the partitions, and how many were
// looked at.
func (c readCommand) search(ctx context.Context, client *admin.Client, q admin.Query, find string, form eventForm) error {
	hub, err := client.Hub(ctx, q.Hub)
	if err != nil {
		return err
	}
	ids := q.Partitions
	if len(ids) == 0 {
		for i := range hub.Partitions {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	found, looked := 0, int64(0)
	events := func(yield func(json.RawMessage, error) bool) {
		for _, id := range ids {
			for event, err := range c.found(ctx, client, q, id, find, &looked) {
				found++
				if !yield(event, err) || err != nil || found == q.Count {
					return
				}
			}
		}
	}
	if err := c.printEvents(events, true, form); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	fmt.Fprintf(c.stderr, "found %s in %s\n", counted(found, "event"), counted(int(looked), "event"))
	return nil
}

// found gives what is found in one partition, page by page.
func (c readCommand) found(ctx context.Context, client *admin.Client, q admin.Query, id, find string, looked *int64) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for from := q.From; ; {
			page, err := client.Find(ctx, q.Hub, id, q.Group, from, find)
			if err != nil {
				yield(nil, err)
				return
			}
			*looked += page.Looked
			for _, event := range page.Events {
				if !yield(event, nil) {
					return
				}
			}
			if page.End {
				return
			}
			from = strconv.FormatInt(page.Next, 10)
		}
	}
}
