package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// maxManagementBytes bounds the body of a request whose route says nothing else.
const maxManagementBytes = 64 << 10

// timeFormat writes times the way the log keeps them: in whole milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

type hubJSON struct {
	Name         string        `json:"name"`
	Partitions   int           `json:"partitions"`
	PartitionIDs []string      `json:"partitionIds"`
	Created      string        `json:"created"`
	Retention    retentionJSON `json:"retention"`
	Groups       []string      `json:"groups"`
}

type retentionJSON struct {
	Age   string `json:"age"`
	Bytes int64  `json:"bytes"`
}

// hubRequest is the body that creates or changes a hub.
type hubRequest struct {
	Name       string            `json:"name"`
	Partitions *int              `json:"partitions"`
	Retention  *retentionRequest `json:"retention"`
}

type retentionRequest struct {
	Age   *string `json:"age"`
	Bytes *int64  `json:"bytes"`
}

// read gives what the request sets, nil for what it does not.
func (q *retentionRequest) read() (age *time.Duration, bytes *int64, err error) {
	if q == nil {
		return nil, nil, nil
	}
	if q.Age != nil {
		parsed, err := parseAge(*q.Age)
		if err != nil {
			return nil, nil, err
		}
		age = &parsed
	}
	return age, q.Bytes, nil
}

// overDefault gives the retention of a new hub.
func (q *retentionRequest) overDefault() (*broker.Retention, error) {
	age, bytes, err := q.read()
	retention := broker.Retention{Age: broker.DefaultRetentionAge}
	if age != nil {
		retention.Age = *age
	}
	if bytes != nil {
		retention.Bytes = *bytes
	}
	return &retention, err
}

// parseAge reads a Go duration, or whole days as in "7d".
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if age := time.Duration(n) * 24 * time.Hour; err == nil && age/(24*time.Hour) == time.Duration(n) {
			return age, nil
		}
	}
	age, err := time.ParseDuration(s)
	if err != nil {
		return 0, badRequest(`write it like "168h", "90m" or "7d"; "0s" keeps for ever`, "retention age %q is no duration", s)
	}
	return age, nil
}

// listHubs shows the hubs that the request's grant reaches.
func (d *Handler) listHubs(w http.ResponseWriter, r *http.Request) error {
	grant, now := grantOf(r), time.Now()
	list := struct {
		Hubs []hubJSON `json:"hubs"`
	}{Hubs: []hubJSON{}}
	for _, hub := range d.cfg.Broker.Hubs() {
		if !grant.Allows(auth.At(hub.Name), 0, now) {
			continue
		}
		shown, err := d.showHub(r.Context(), hub)
		if as[*broker.NotFoundError](err) {
			continue // deleted since the list was made
		}
		if err != nil {
			return err
		}
		list.Hubs = append(list.Hubs, shown)
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Handler) createHub(w http.ResponseWriter, r *http.Request) error {
	var q hubRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	cfg := broker.HubConfig{Name: q.Name}
	if q.Partitions != nil {
		// The broker takes zero for "as usual"; whoever writes a 0 means it.
		if *q.Partitions == 0 {
			return fmt.Errorf("create hub %q with 0 partitions: %w", q.Name, broker.ErrInvalidPartitionCount)
		}
		cfg.Partitions = *q.Partitions
	}
	var err error
	if cfg.Retention, err = q.Retention.overDefault(); err != nil {
		return err
	}
	hub, err := d.cfg.Broker.CreateHub(r.Context(), cfg)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/hubs/"+url.PathEscape(hub.Name))
	return d.answerHub(w, r, http.StatusCreated, hub)
}

func (d *Handler) getHub(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.Hub(r.PathValue("hub"))
	if err != nil {
		return err
	}
	return d.answerHub(w, r, http.StatusOK, hub)
}

func (d *Handler) updateHub(w http.ResponseWriter, r *http.Request) error {
	var q hubRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	hub, err := d.cfg.Broker.Hub(r.PathValue("hub"))
	if err != nil {
		return err
	}
	if q.Name != "" && !strings.EqualFold(q.Name, hub.Name) {
		return badRequest("create another hub instead", "hub %q cannot be renamed to %q", hub.Name, q.Name)
	}
	change := broker.HubChange{Partitions: q.Partitions}
	if change.Age, change.Bytes, err = q.Retention.read(); err != nil {
		return err
	}
	if hub, err = d.cfg.Broker.UpdateHub(r.Context(), hub.Name, change); err != nil {
		return err
	}
	return d.answerHub(w, r, http.StatusOK, hub)
}

func (d *Handler) deleteHub(w http.ResponseWriter, r *http.Request) error {
	if err := d.cfg.Broker.DeleteHub(r.Context(), r.PathValue("hub")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Handler) answerHub(w http.ResponseWriter, r *http.Request, status int, hub broker.Hub) error {
	shown, err := d.showHub(r.Context(), hub)
	if err != nil {
		return err
	}
	return writeJSON(w, status, shown)
}

func (d *Handler) showHub(ctx context.Context, hub broker.Hub) (hubJSON, error) {
	groups, err := d.cfg.Broker.Groups(ctx, hub.Name)
	if err != nil {
		return hubJSON{}, err
	}
	shown := hubJSON{
		Name:         hub.Name,
		Partitions:   hub.Partitions,
		PartitionIDs: hub.PartitionIDs(),
		Created:      showTime(hub.Created),
		Retention:    retentionJSON{Age: hub.Retention.Age.String(), Bytes: hub.Retention.Bytes},
		Groups:       make([]string, len(groups)),
	}
	for i, g := range groups {
		shown.Groups[i] = g.Name
	}
	return shown, nil
}

func showTime(t time.Time) string { return t.UTC().Format(timeFormat) }

// readJSON reads the whole body of a management request into v.
// The client may take its time over the body, so what it was let in with is looked at
// again.
func readJSON(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return notJSON(err)
	}
	if err := endOfJSON(dec); err != nil {
		return err
	}
	return stillLetIn(r)
}

// endOfJSON makes sure that nothing follows the value that was read.
func endOfJSON(dec *json.Decoder) error {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		if as[*http.MaxBytesError](err) {
			return err
		}
		return badRequest("send one JSON value", "the body goes on after its JSON value")
	}
	return nil
}

// notJSON tells a client what is wrong with its JSON, in the decoder's words.
func notJSON(err error) error {
	const next = "all bodies are described at /api/v1/openapi.json"
	switch {
	case as[*http.MaxBytesError](err), as[*frame.Refusal](err):
		return err
	case errors.Is(err, io.EOF):
		return badRequest(next, "the body is empty, and JSON is wanted")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest(next, "the body ends in the middle of its JSON")
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return badRequest(next, "field %q cannot be a JSON %s", e.Field, e.Value)
	}
	return badRequest(next, "the body is not what is wanted: %s", strings.TrimPrefix(err.Error(), "json: "))
}
