package v1

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/processor"
)

func showCheckpoint(c processor.Checkpoint) admin.Checkpoint {
	shown := admin.Checkpoint{
		Partition: c.Partition, Offset: c.Offset, Epoch: c.Epoch, HubID: c.HubID, Updated: showTimeIfAny(c.Updated),
	}
	if c.Sequence >= 0 || c.Offset == "-1" {
		shown.Sequence = &c.Sequence
	}
	return shown
}

func (d *Handler) listCheckpoints(w http.ResponseWriter, r *http.Request) error {
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
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
	list := admin.Checkpoints{
		Hub: hub.Name, HubCreated: showTime(hub.Created), Group: group.Name, Checkpoints: []admin.Checkpoint{},
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

func showMoved(m groups.Moved) admin.Moved {
	shown := admin.Moved{To: showCheckpoint(m.To)}
	if m.From != nil {
		shown.From = new(showCheckpoint(*m.From))
	}
	return shown
}

// moveCheckpoint sets one partition's checkpoint (P7).
func (d *Handler) moveCheckpoint(w http.ResponseWriter, r *http.Request) error {
	var q admin.CheckpointMove
	if err := readJSON(r, &q); err != nil {
		return err
	}
	steps := []groups.Step{{Partition: r.PathValue("partition"), To: groups.Target(q.To)}}
	moved, err := d.cfg.Groups.Move(r.Context(), r.PathValue("hub"), r.PathValue("group"), steps, groups.MoveConfig(q.MoveOptions))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, showMoved(moved[0]))
}

// maxImportBytes has room for the checkpoints of as many partitions as a hub may have.
const maxImportBytes = 1 << 20

// importCheckpoints sets those of many partitions: all, or none if one of them cannot be.
func (d *Handler) importCheckpoints(w http.ResponseWriter, r *http.Request) error {
	var q admin.CheckpointImport
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if err := d.fits(r.PathValue("hub"), q.Checkpoints, q.Force); err != nil {
		return err
	}
	steps, err := stepsOf(q.Checkpoints.Checkpoints)
	if err != nil {
		return err
	}
	moved, err := d.cfg.Groups.Move(r.Context(), r.PathValue("hub"), r.PathValue("group"), steps, groups.MoveConfig(q.MoveOptions))
	list := admin.MovedList{DryRun: q.DryRun, Moved: make([]admin.Moved, len(moved))}
	for i, m := range moved {
		list.Moved[i] = showMoved(m)
	}
	return answer(w, list, err)
}

// fits refuses what was exported of another hub, or of one that had this name before: its
// numbers mean other events here. The group may be another: so one takes over from it.
func (d *Handler) fits(name string, list admin.Checkpoints, force bool) error {
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
func stepsOf(list []admin.Checkpoint) ([]groups.Step, error) {
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
