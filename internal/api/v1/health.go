package v1

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
)

// healthy says that the process is alive and answers, nothing more.
func (d *Handler) healthy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "healthy"})
}

// ready says whether requests may be sent here: not before start is done, and not
// once the yard is stopping, so that a balancer looks elsewhere in time.
func (d *Handler) ready(w http.ResponseWriter, _ *http.Request) error {
	if d.cfg.Stopping.Err() != nil {
		return fmt.Errorf("not ready: %w", frame.ErrStopping)
	}
	err := d.cfg.Ready()
	d.unready.log(d.cfg.Log, err)
	if err != nil {
		said := "it cannot serve at present"
		if why, ok := errors.AsType[*NotReady](err); ok {
			said = why.Text
		}
		return &frame.Refusal{
			Status: http.StatusServiceUnavailable,
			Code:   "not-ready",
			Title:  "The yard is not ready yet",
			Detail: said,
			Next:   "ask again in a moment; the log has more, and so has eventyard cluster status for who may manage",
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// NotReady is why a yard is not ready.
type NotReady struct {
	// Text is for anybody. Cause, which may name files, servers and whatever else those say, is for the log.
	Text  string
	Cause error
}

func (e *NotReady) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

func (e *NotReady) Unwrap() error { return e.Cause }

// unready is why the yard was not ready when that was last asked.
type unready struct{ why atomic.Pointer[string] }

// log says why the yard is not ready, where that has changed: anybody may ask, as often as he likes.
func (u *unready) log(log *slog.Logger, err error) {
	if err == nil {
		if u.why.Swap(nil) != nil {
			log.Info("ready again")
		}
		return
	}
	why := err.Error()
	if was := u.why.Swap(&why); was == nil || *was != why {
		log.Warn("not ready", "error", err)
	}
}

// info says who answers here.
func (d *Handler) info(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, admin.Info{
		Name:      "eventyard",
		Version:   d.cfg.Version,
		Namespace: d.cfg.Broker.Namespace(),
		Engine:    d.cfg.Engine,
		Listeners: d.cfg.Listeners(),
		OpenAPI:   "/api/v1/openapi.json",
	})
}
