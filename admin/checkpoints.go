package admin

import (
	"context"
	"net/http"
	"time"
)

// Checkpoint is how far a group has come with a partition.
type Checkpoint struct {
	Partition string `json:"partition"`
	Offset    string `json:"offset,omitempty"`
	// Sequence is nil where it is not known; -1 stands before the first event.
	Sequence *int64 `json:"sequence,omitempty"`
	Epoch    int64  `json:"epoch,omitempty"`
	HubID    string `json:"hubId,omitempty"`
	Updated  *Time  `json:"updated,omitempty"`
}

// Checkpoints are those of a group, as they are exported and imported. The times are text so that
// what was exported goes back as it was.
type Checkpoints struct {
	Hub         string       `json:"hub,omitempty"`
	HubCreated  string       `json:"hubCreated,omitempty"`
	Group       string       `json:"group,omitempty"`
	Checkpoints []Checkpoint `json:"checkpoints"`
}

// Target says where a checkpoint is to be: exactly one of its fields.
type Target struct {
	Offset   *string    `json:"offset,omitempty"`
	Sequence *int64     `json:"sequence,omitempty"`
	Time     *time.Time `json:"time,omitempty"`
	Earliest bool       `json:"earliest,omitempty"`
	Latest   bool       `json:"latest,omitempty"`
}

// MoveOptions say how checkpoints are moved: Force also those of partitions that are owned,
// DryRun none, only to tell what would be done.
type MoveOptions struct {
	Force  bool `json:"force,omitempty"`
	DryRun bool `json:"dryRun,omitempty"`
}

// CheckpointMove moves the checkpoint of a partition.
type CheckpointMove struct {
	To Target `json:"to"`
	MoveOptions
}

// CheckpointImport sets those of several partitions.
type CheckpointImport struct {
	Checkpoints
	MoveOptions
}

// MovedList is what came of an import.
type MovedList struct {
	DryRun bool    `json:"dryRun"`
	Moved  []Moved `json:"moved"`
}

// Moved is what became, or would become, of a checkpoint; From is nil if there was none.
type Moved struct {
	From *Checkpoint `json:"from,omitempty"`
	To   Checkpoint  `json:"to"`
}

// Checkpoints lists those of a group: what ImportCheckpoints takes.
func (c *Client) Checkpoints(ctx context.Context, hub, group string) (Checkpoints, error) {
	return one[Checkpoints](ctx, c, request{method: http.MethodGet, path: checkpointsPath(hub, group)})
}

// MoveCheckpoint rewinds or advances that of a partition.
func (c *Client) MoveCheckpoint(ctx context.Context, hub, group, partition string, to Target, opt MoveOptions) (Moved, error) {
	path := append(checkpointsPath(hub, group), partition)
	return one[Moved](ctx, c, request{method: http.MethodPut, path: path, body: CheckpointMove{to, opt}})
}

// ImportCheckpoints sets those of several partitions: all, or none if one cannot be.
func (c *Client) ImportCheckpoints(ctx context.Context, hub, group string, list Checkpoints, opt MoveOptions) ([]Moved, error) {
	answer, err := one[MovedList](ctx, c, request{method: http.MethodPost, path: checkpointsPath(hub, group), body: CheckpointImport{list, opt}})
	return answer.Moved, err
}

func checkpointsPath(hub, group string) []string {
	return []string{"hubs", hub, "groups", group, "checkpoints"}
}
