package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/frame"
)

// Maintenance is what is done to the servers that keep a yard's events. Both methods take long, and end
// with ctx. say sends a line to the client; its error is for the method to return.
type Maintenance interface {
	Scrub(ctx context.Context, q admin.ScrubRequest, say func(admin.ScrubLine) error) error
	SetReplicas(ctx context.Context, q admin.ReplicasRequest, say func(admin.ReplicasLine) error) error
}

func (d *Handler) scrub(w http.ResponseWriter, r *http.Request) error {
	var q admin.ScrubRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Rate < 0 {
		return badRequest("give bytes a second, or leave it out", "the rate is below zero")
	}
	return d.maintain(w, r, func(ctx context.Context, out *lineWriter) error {
		return d.cfg.Maintenance.Scrub(ctx, q, func(l admin.ScrubLine) error { return out.say(l) })
	})
}

func (d *Handler) setReplicas(w http.ResponseWriter, r *http.Request) error {
	var q admin.ReplicasRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Replicas != 1 && q.Replicas != 3 && q.Replicas != 5 {
		return badRequest(`send {"replicas":3}`, "there are 1, 3 or 5 replicas of each event, and not %d", q.Replicas)
	}
	return d.maintain(w, r, func(ctx context.Context, out *lineWriter) error {
		became := "" // what is changed stays so, also when the change breaks off
		defer func() {
			if became != "" {
				d.note(r, activity.Entry{Kind: activity.ReplicasChanged, Object: "cluster", Detail: became})
			}
		}()
		return d.cfg.Maintenance.SetReplicas(ctx, q, func(l admin.ReplicasLine) error {
			switch {
			case l.Progress != nil:
				became = fmt.Sprintf("to %d; it broke off, with %d of %d streams done", q.Replicas, l.Progress.Done, l.Progress.Streams)
			case l.Done != nil:
				became = fmt.Sprintf("from %d to %d", l.Done.Before, l.Done.Replicas)
			}
			return out.say(l)
		})
	})
}

// maintain does something that takes long, one at a time, and sends lines of JSON meanwhile. What goes wrong
// before the first is a problem like others; behind it a problem is the last line.
func (d *Handler) maintain(w http.ResponseWriter, r *http.Request, do func(context.Context, *lineWriter) error) error {
	if !d.maintaining.TryLock() {
		return &frame.Refusal{
			Status: http.StatusConflict, Code: "maintenance-under-way", Title: "The servers are being maintained",
			Detail: "this node scrubs, or changes the number of replicas", Next: "try again when that is done",
		}
	}
	defer d.maintaining.Unlock()
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	defer cancel()
	out := &lineWriter{handler: d, w: w}
	err = do(ctx, out)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	switch {
	case err == nil || out.stream == nil:
		return err
	case errors.Is(err, errClientGone) || r.Context().Err() != nil:
		return nil
	}
	if !as[*frame.Refusal](err) {
		d.logOurs("maintenance broke off", err)
	}
	_ = out.say(admin.ProblemLine{Problem: problemOf(judge(err))}) // who is gone needs no reason
	return nil
}

// lineWriter is an answer that begins with its first line.
type lineWriter struct {
	handler *Handler
	w       http.ResponseWriter
	stream  *stream
}

// say sends a line at once.
func (l *lineWriter) say(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if l.stream == nil {
		l.stream = newStream(l.w, "application/x-ndjson", l.handler.cfg.WriteTimeout)
	}
	if l.stream.send(string(text)+"\n") != nil {
		return errClientGone
	}
	return nil
}
