package v1

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/processor"
)

// checkpointJSON is how far a group has come with a partition.
type checkpointJSON struct {
	Partition string `json:"partition"`
	Offset    string `json:"offset,omitempty"`
	// Sequence is absent where it is not known; -1 stands before the first event.
	Sequence *int64 `json:"sequence,omitempty"`
	Epoch    int64  `json:"epoch,omitempty"`
	HubID    string `json:"hubId,omitempty"`
	Updated  string `json:"updated,omitempty"`
}

// checkpointListJSON is what is exported, and imported again.
type checkpointListJSON struct {
	Hub         string           `json:"hub,omitempty"`
	HubCreated  string           `json:"hubCreated,omitempty"`
	Group       string           `json:"group,omitempty"`
	Checkpoints []checkpointJSON `json:"checkpoints"`
}

func showCheckpoint(c processor.Checkpoint) checkpointJSON {
	shown := checkpointJSON{
		Partition: c.Partition, Offset: c.Offset, Epoch: c.Epoch, HubID: c.HubID, Updated: showTimeIfAny(c.Updated),
	}
	if c.Sequence >= 0 || c.Offset == "-1" {
		shown.Sequence = &c.Sequence
	}
	return shown
}

func (d *Handler) listCheckpoints(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.Hub(r.PathValue("hub"))
	if err != nil {
		return err
	}
	group, err := d.cfg.Broker.Group(r.Context(), hub.Name, r.PathValue("group"))
	if err != nil {
		return err
	}
	all, err := d.cfg.Groups.Checkpoints(r.Context(), processor.Group{Hub: hub.Name, Group: group.Name})
	if err != nil {
		return err
	}
	list := checkpointListJSON{
		Hub: hub.Name, HubCreated: showTime(hub.Created), Group: group.Name, Checkpoints: []checkpointJSON{},
	}
	slices.SortFunc(all, func(a, b processor.Checkpoint) int {
		return partitionNumber(a.Partition) - partitionNumber(b.Partition)
	})
	for _, c := range all {
		if c.Sequence >= 0 || c.Offset != "" { // else it was begun and nothing is done
			list.Checkpoints = append(list.Checkpoints, showCheckpoint(c))
		}
	}
	return writeJSON(w, http.StatusOK, list)
}

func partitionNumber(partition string) int {
	n, _ := strconv.Atoi(partition)
	return n
}

// targetJSON says where a checkpoint is to be: exactly one of its fields.
type targetJSON struct {
	Offset   *string `json:"offset"`
	Sequence *int64  `json:"sequence"`
	Time     *string `json:"time"`
	Earliest bool    `json:"earliest"`
	Latest   bool    `json:"latest"`
}

func (t targetJSON) target() (groups.Target, error) {
	to := groups.Target{Offset: t.Offset, Sequence: t.Sequence, Earliest: t.Earliest, Latest: t.Latest}
	if t.Time == nil {
		return to, nil
	}
	at, err := time.Parse(time.RFC3339, *t.Time)
	if err != nil {
		return to, badRequest("write the time like 2026-01-02T15:04:05Z", "%.64q is no time", *t.Time)
	}
	to.Time = &at
	return to, nil
}

// movedJSON is what became of a checkpoint.
type movedJSON struct {
	From *checkpointJSON `json:"from,omitempty"`
	To   checkpointJSON  `json:"to"`
}

func showMoved(m groups.Moved) movedJSON {
	shown := movedJSON{To: showCheckpoint(m.To)}
	if m.From != nil {
		shown.From = new(showCheckpoint(*m.From))
	}
	return shown
}

// moveCheckpoint sets one partition's checkpoint (P7).
func (d *Handler) moveCheckpoint(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		To     targetJSON `json:"to"`
		Force  bool       `json:"force"`
		DryRun bool       `json:"dryRun"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	to, err := q.To.target()
	if err != nil {
		return err
	}
	steps := []groups.Step{{Partition: r.PathValue("partition"), To: to}}
	moved, err := d.cfg.Groups.Move(r.Context(), r.PathValue("hub"), r.PathValue("group"), steps,
		groups.MoveConfig{Force: q.Force, DryRun: q.DryRun})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, showMoved(moved[0]))
}

// maxImportBytes has room for the checkpoints of as many partitions as a hub may have.
const maxImportBytes = 1 << 20

// importCheckpoints sets those of many partitions: all, or none if one of them cannot be.
func (d *Handler) importCheckpoints(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		checkpointListJSON
		Force  bool `json:"force"`
		DryRun bool `json:"dryRun"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if err := d.fits(r.PathValue("hub"), q.checkpointListJSON, q.Force); err != nil {
		return err
	}
	steps, err := stepsOf(q.Checkpoints)
	if err != nil {
		return err
	}
	moved, err := d.cfg.Groups.Move(r.Context(), r.PathValue("hub"), r.PathValue("group"), steps,
		groups.MoveConfig{Force: q.Force, DryRun: q.DryRun})
	if err != nil {
		return err
	}
	answer := struct {
		DryRun bool        `json:"dryRun"`
		Moved  []movedJSON `json:"moved"`
	}{DryRun: q.DryRun, Moved: make([]movedJSON, len(moved))}
	for i, m := range moved {
		answer.Moved[i] = showMoved(m)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// fits refuses what was exported of another hub, or of one that had this name before: its
// numbers mean other events here. The group may be another: so one takes over from it.
func (d *Handler) fits(name string, list checkpointListJSON, force bool) error {
	hub, err := d.cfg.Broker.Hub(name)
	if err != nil || force {
		return err
	}
	const next = "its positions mean other events here; leave hub and hubCreated out, or force, if you know that they fit"
	if list.Hub != "" && !strings.EqualFold(list.Hub, hub.Name) {
		return badRequest(next, "the checkpoints are those of hub %.64q, and this is %q", list.Hub, hub.Name)
	}
	if list.HubCreated != "" && list.HubCreated != showTime(hub.Created) {
		return badRequest(next, "the checkpoints are those of a hub created at %.64s, and this one was created at %s", list.HubCreated, showTime(hub.Created))
	}
	return nil
}

// stepsOf goes by the sequence number where there is one, else by the offset.
func stepsOf(list []checkpointJSON) ([]groups.Step, error) {
	steps := make([]groups.Step, len(list))
	for i, c := range list {
		steps[i].Partition = c.Partition
		switch {
		case c.Sequence != nil:
			steps[i].To.Sequence = c.Sequence
		case c.Offset != "":
			steps[i].To.Offset = &c.Offset
		default:
			return nil, badRequest("give each an offset or a sequence number", "the checkpoint of partition %.64q has neither", c.Partition)
		}
	}
	return steps, nil
}
