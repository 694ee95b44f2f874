package v1

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	kafkagroups "github.com/eventyard/eventyard/internal/kafka/groups"
)

// KafkaGroups is what the listener asks of the coordinator of Kafka's groups. All methods may be called by many
// goroutines at once.
type KafkaGroups interface {
	All(ctx context.Context) ([]kafkagroups.Description, error)
	Look(ctx context.Context, id string) (kafkagroups.Description, error)
	Hubs(d kafkagroups.Description) []string
	Assigned(d kafkagroups.Description, m kafkagroups.Member) map[string][]int32
	Rows(ctx context.Context, d kafkagroups.Description, hub string) ([]kafkagroups.Row, error)
	Committed(ctx context.Context, id, hub string) (map[int32]kafkagroups.Position, error)
	SetOffsets(ctx context.Context, id, hub string, offsets map[int32]int64) error
	Forget(ctx context.Context, id, hub string) error
	Delete(ctx context.Context, id string, may func(logs []string) error) error
}

var _ KafkaGroups = kafkagroups.Operator{}

// anyGroup is a group that every hub has, by which positions of a hub are found.
const anyGroup = "$Default"

// kafkaRefusal tells what the coordinator of Kafka's groups says.
func kafkaRefusal(err error) error {
	refuse := func(status int, code, title, next string) error {
		return &frame.Refusal{Status: status, Code: code, Title: title, Detail: err.Error(), Next: next, Cause: err}
	}
	switch {
	case errors.Is(err, kafkagroups.ErrNotFound):
		return refuse(http.StatusNotFound, "not-found", "It does not exist", "GET /api/v1/kafka-groups lists those there are; a consumer makes its group by its first use")
	case errors.Is(err, kafkagroups.ErrNotEmpty), errors.Is(err, kafkagroups.ErrSubscribed):
		return refuse(http.StatusConflict, "group-has-members", "Somebody is in the group", "stop its consumers, and try again when their sessions have ended")
	case errors.Is(err, kafkagroups.ErrRights):
		return fmt.Errorf("%w: %w", frame.ErrRights, err)
	case errors.Is(err, kafkagroups.ErrInvalidID):
		return refuse(http.StatusBadRequest, "invalid-name", "That is no name", "use 1 to 256 bytes")
	case errors.Is(err, kafkagroups.ErrNotCoordinator), errors.Is(err, kafkagroups.ErrStopping):
		return &frame.Refusal{Status: http.StatusServiceUnavailable, Code: "group-moves", Title: "Another node has taken the group", Detail: err.Error(), Next: "repeat the request", RetryAfter: time.Second, Cause: err}
	case errors.Is(err, kafkagroups.ErrBusy), errors.Is(err, kafkagroups.ErrTooManyGroups):
		return refuse(http.StatusTooManyRequests, "too-many-groups", "There are too many Kafka groups", "delete some that are not needed")
	}
	return err
}

// mayKafka refuses who has not the right to each hub that a Kafka group is about, as the Kafka listener does; to one
// that is about none it takes the right to the namespace.
func mayKafka(r *http.Request, need auth.Rights, hubs []string) error {
	grant, now := grantOf(r), time.Now()
	if len(hubs) == 0 && !grant.Allows(auth.Entity{}, need, now) {
		return kafkagroups.ErrRights
	}
	for _, hub := range hubs {
		if !grant.Allows(auth.At(hub), need, now) {
			return kafkagroups.ErrRights
		}
	}
	return nil
}

func showKafkaGroup(d kafkagroups.Description, hubs []string) admin.KafkaGroup {
	return admin.KafkaGroup{
		Name: d.ID, Kind: d.Kind, State: d.State, Type: d.Type, Protocol: d.Protocol, Generation: int(d.Generation),
		Members: len(d.Members), Hubs: append([]string{}, hubs...), Node: d.Node,
	}
}

// listKafkaGroups lists those of a hub, or all; only those that the request's grant reaches.
func (d *Handler) listKafkaGroups(w http.ResponseWriter, r *http.Request) error {
	var only string
	if name := r.PathValue("hub"); name != "" {
		hub, err := d.cfg.Broker.LookUp(r.Context(), name)
		if err != nil {
			return err
		}
		only = hub.Name
	}
	all, err := d.cfg.KafkaGroups.All(r.Context())
	if err != nil {
		return kafkaRefusal(err)
	}
	shown := []admin.KafkaGroup{}
	for _, one := range all {
		hubs := d.cfg.KafkaGroups.Hubs(one)
		if (only == "" || slices.Contains(hubs, only)) && mayKafka(r, auth.Listen, hubs) == nil {
			shown = append(shown, showKafkaGroup(one, hubs))
		}
	}
	return writeJSON(w, http.StatusOK, map[string][]admin.KafkaGroup{"groups": shown})
}

// kafkaGroup finds the group of a request, which is about the hub in its path.
func (d *Handler) kafkaGroup(r *http.Request) (one kafkagroups.Description, hub string, hubs []string, err error) {
	h, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return one, "", nil, err
	}
	one, err = d.cfg.KafkaGroups.Look(r.Context(), r.PathValue("group"))
	if err == nil {
		hubs = d.cfg.KafkaGroups.Hubs(one)
		err = mayKafka(r, auth.Listen, hubs)
	}
	if err == nil && !slices.Contains(hubs, h.Name) {
		err = fmt.Errorf("%w in hub %q: nobody in it subscribes to that, and it has no offsets there", kafkagroups.ErrNotFound, h.Name)
	}
	return one, h.Name, hubs, kafkaRefusal(err)
}

// showKafkaTable tells who is in a Kafka group, and how far it is in a hub (P6).
func (d *Handler) showKafkaTable(w http.ResponseWriter, r *http.Request) error {
	one, hub, hubs, err := d.kafkaGroup(r)
	if err != nil {
		return err
	}
	rows, err := d.cfg.KafkaGroups.Rows(r.Context(), one, hub)
	if err != nil {
		return kafkaRefusal(err)
	}
	t := admin.KafkaGroupTable{
		KafkaGroup: showKafkaGroup(one, hubs), Hub: hub, At: admin.Time{Time: time.Now()},
		Instances: []admin.KafkaMember{}, Partitions: []admin.KafkaPartition{},
	}
	for _, m := range one.Members {
		t.Instances = append(t.Instances, admin.KafkaMember{
			ID: m.ID, Instance: m.Instance, Client: m.Client, Host: m.Host, Partitions: len(d.cfg.KafkaGroups.Assigned(one, m)[hub]),
		})
	}
	for _, row := range rows {
		p := admin.KafkaPartition{
			Partition: strconv.Itoa(int(row.Partition)), Owner: row.Member, Client: row.Client, First: row.First, Last: row.Last, BeyondEnd: row.Beyond,
		}
		if row.Committed != nil {
			p.Committed, p.Updated = &row.Committed.Offset, showTimeIfAny(row.Committed.Time)
		}
		if row.Lag != nil {
			p.LagEvents, p.LagSeconds = &row.Lag.Events, new(row.Lag.Oldest.Seconds())
			t.LagEvents += row.Lag.Events
		}
		t.Partitions = append(t.Partitions, p)
	}
	return writeJSON(w, http.StatusOK, t)
}

// deleteKafkaGroup deletes a group with its offsets in all hubs. It takes Manage to each of these.
func (d *Handler) deleteKafkaGroup(w http.ResponseWriter, r *http.Request) error {
	one, _, _, err := d.kafkaGroup(r)
	if err != nil {
		return err
	}
	return done(w, kafkaRefusal(d.cfg.KafkaGroups.Delete(r.Context(), one.ID, func(logs []string) error {
		return mayKafka(r, auth.Manage, d.cfg.KafkaGroups.Hubs(kafkagroups.Description{Logs: logs}))
	})))
}

// forgetKafkaOffsets deletes what a group has committed in a hub.
func (d *Handler) forgetKafkaOffsets(w http.ResponseWriter, r *http.Request) error {
	one, hub, _, err := d.kafkaGroup(r)
	if err != nil {
		return err
	}
	return done(w, kafkaRefusal(d.cfg.KafkaGroups.Forget(r.Context(), one.ID, hub)))
}

// kafkaCheckpoint is an offset as a checkpoint: that names the last event that is done, the offset the one behind it.
func kafkaCheckpoint(partition string, p kafkagroups.Position) admin.Checkpoint {
	done := p.Offset - 1
	return admin.Checkpoint{Partition: partition, Sequence: &done, Offset: strconv.FormatInt(done, 10), Updated: showTimeIfAny(p.Time)}
}

// moveKafkaOffset sets what a group has committed of one partition (P7).
func (d *Handler) moveKafkaOffset(w http.ResponseWriter, r *http.Request) error {
	var q admin.CheckpointMove
	if err := readJSON(r, &q); err != nil {
		return err
	}
	one, hub, _, err := d.kafkaGroup(r)
	if err != nil {
		return err
	}
	step := groups.Step{Partition: r.PathValue("partition"), To: groups.Target(q.To)}
	moved, err := d.moveKafka(r.Context(), one, hub, []groups.Step{step}, q.DryRun)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, moved[0])
}

// moveKafka sets what a group has committed in a hub, or tells what that would come to.
func (d *Handler) moveKafka(ctx context.Context, one kafkagroups.Description, hub string, steps []groups.Step, dryRun bool) ([]admin.Moved, error) {
	if len(one.Members) > 0 {
		return nil, kafkaRefusal(kafkagroups.ErrNotEmpty)
	}
	found, err := d.cfg.Groups.Move(ctx, hub, anyGroup, steps, groups.MoveConfig{Force: true, DryRun: true})
	if err != nil {
		return nil, err
	}
	before, err := d.cfg.KafkaGroups.Committed(ctx, one.ID, hub)
	if err != nil {
		return nil, kafkaRefusal(err)
	}
	moved, offsets := make([]admin.Moved, len(found)), make(map[int32]int64)
	for i, f := range found {
		n := int32(partitionNumber(f.To.Partition))
		offsets[n] = f.To.Sequence + 1
		moved[i].To = kafkaCheckpoint(f.To.Partition, kafkagroups.Position{Offset: offsets[n]})
		if had, there := before[n]; there {
			moved[i].From = new(kafkaCheckpoint(f.To.Partition, had))
		}
	}
	if dryRun || len(offsets) == 0 {
		return moved, nil
	}
	return moved, kafkaRefusal(d.cfg.KafkaGroups.SetOffsets(ctx, one.ID, hub, offsets))
}

// copyKafkaOffsets copies positions between a Kafka group and a group of the hub: all of them, or none.
func (d *Handler) copyKafkaOffsets(w http.ResponseWriter, r *http.Request) error {
	var q admin.KafkaCopy
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Group == "" {
		return badRequest("name the consumer group of the hub by group", "no group is named")
	}
	list := admin.MovedList{DryRun: q.DryRun}
	var err error
	switch q.To {
	case admin.ToKafka:
		list.Moved, err = d.copyToKafka(r, q)
	case admin.ToProcessor:
		list.Moved, err = d.copyToProcessor(r, q)
	default:
		err = badRequest("say kafka or processor", "positions cannot go to %.64q", q.To)
	}
	if err == nil && len(list.Moved) == 0 {
		err = badRequest("a group that has committed nothing has nothing to copy", "there is no position to copy")
	}
	return answer(w, list, err)
}

func (d *Handler) copyToKafka(r *http.Request, q admin.KafkaCopy) ([]admin.Moved, error) {
	t, err := d.cfg.Groups.Table(r.Context(), r.PathValue("hub"), q.Group)
	if err != nil {
		return nil, err
	}
	one, err := d.cfg.KafkaGroups.Look(r.Context(), r.PathValue("group"))
	if errors.Is(err, kafkagroups.ErrNotFound) { // it is made then
		one, err = kafkagroups.Description{ID: r.PathValue("group")}, nil
	} else if err == nil {
		err = mayKafka(r, auth.Listen, d.cfg.KafkaGroups.Hubs(one))
	}
	if err != nil {
		return nil, kafkaRefusal(err)
	}
	var steps []groups.Step
	for _, row := range t.Partitions {
		if row.Checkpoint == nil {
			continue
		}
		step := groups.Step{Partition: row.Partition, To: groups.Target{Offset: &row.Checkpoint.Offset}}
		if row.Checkpoint.Sequence >= 0 {
			step.To = groups.Target{Sequence: &row.Checkpoint.Sequence}
		}
		steps = append(steps, step)
	}
	return d.moveKafka(r.Context(), one, t.Hub, steps, q.DryRun)
}

func (d *Handler) copyToProcessor(r *http.Request, q admin.KafkaCopy) ([]admin.Moved, error) {
	one, hub, _, err := d.kafkaGroup(r)
	if err != nil {
		return nil, err
	}
	committed, err := d.cfg.KafkaGroups.Committed(r.Context(), one.ID, hub)
	if err != nil {
		return nil, kafkaRefusal(err)
	}
	var steps []groups.Step
	for _, n := range slices.Sorted(maps.Keys(committed)) {
		steps = append(steps, groups.Step{Partition: strconv.Itoa(int(n)), To: groups.Target{Sequence: new(committed[n].Offset - 1)}})
	}
	if _, err := d.cfg.Broker.Group(r.Context(), hub, q.Group); err != nil {
		return nil, err
	}
	found, err := d.cfg.Groups.Move(r.Context(), hub, q.Group, steps, groups.MoveConfig(q.MoveOptions))
	moved := make([]admin.Moved, len(found))
	for i, m := range found {
		moved[i] = showMoved(m)
	}
	return moved, err
}
