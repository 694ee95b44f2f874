package admin

import (
	"context"
	"net/http"
)

// Storage is what the nodes of a yard keep everything in.
type Storage struct {
	Nodes []NodeStorage `json:"nodes"`
	// Unanswered are nodes that live and did not answer.
	Unanswered []string `json:"unanswered,omitempty"`
}

// NodeStorage is that of one node. The counts are since it started.
type NodeStorage struct {
	Node string `json:"node"`
	// Engine is disk or nats; Folder is the data folder, empty where there is none.
	Engine string `json:"engine"`
	Folder string `json:"folder,omitempty"`
	// FreeBytes are left on the folder's disk, which has TotalBytes; nil where that is not known.
	FreeBytes  *int64 `json:"freeBytes,omitempty"`
	TotalBytes *int64 `json:"totalBytes,omitempty"`
	// DaysLeft is in how many days the disk is full if it goes on as over the last day; nil where the node runs
	// for less than ten minutes, or what is free does not shrink.
	DaysLeft *float64 `json:"daysLeft,omitempty"`
	// Syncs is how many there were, and SyncSeconds how long they took together.
	Syncs       int64   `json:"syncs"`
	SyncSeconds float64 `json:"syncSeconds"`
	// Refused is how often events were refused because the disk was full, Fenced how often a write or
	// sync failed, Damaged how often damaged bytes were met.
	Refused int64 `json:"refused"`
	Fenced  int64 `json:"fenced"`
	Damaged int64 `json:"damaged"`
	// Check is the one under way, or the last since the start; nil: there was none.
	Check *StorageCheck `json:"check,omitempty"`
}

// StorageCheck is a reading of all events that a yard keeps.
type StorageCheck struct {
	Began Time `json:"began"`
	// Ended is nil while it is under way.
	Ended *Time `json:"ended,omitempty"`
	// Partitions of all Logs are read; so many Events and Bytes were, of about TotalPartitions.
	Partitions      int   `json:"partitions"`
	TotalPartitions int   `json:"totalPartitions"`
	Events          int64 `json:"events"`
	Bytes           int64 `json:"bytes"`
	// Problems are sentences: where, and which events. There are MoreProblems that are not listed.
	Problems     []string `json:"problems"`
	MoreProblems int      `json:"moreProblems,omitempty"`
	// Failed is why it ended before all was read.
	Failed string `json:"failed,omitempty"`
}

// StorageCheckRequest begins a check. Rate is in bytes a second; 0: 32 MiB.
type StorageCheckRequest struct {
	Rate int64 `json:"rate,omitempty"`
}

// Storage tells how the storage of all nodes is.
func (c *Client) Storage(ctx context.Context) (Storage, error) {
	return one[Storage](ctx, c, request{method: http.MethodGet, path: []string{"storage"}})
}

// CheckStorage has the node that answers read all events, in the background. Storage tells how far it is.
func (c *Client) CheckStorage(ctx context.Context, q StorageCheckRequest) (check StorageCheck, err error) {
	err = c.call(ctx, http.MethodPost, []string{"storage", "check"}, q, &check)
	return check, err
}

// Certificates are those that the nodes of a yard serve with.
type Certificates struct {
	Nodes      []NodeCertificate `json:"nodes"`
	Unanswered []string          `json:"unanswered,omitempty"`
}

// NodeCertificate is that of one node; Certificate is nil where it has no listener with TLS.
type NodeCertificate struct {
	Node        string       `json:"node"`
	Certificate *Certificate `json:"certificate,omitempty"`
	// Authority is the yard's own; nil where the operator gave a certificate.
	Authority *Certificate `json:"authority,omitempty"`
}

// Certificate is what people compare.
type Certificate struct {
	Subject string   `json:"subject"`
	Issuer  string   `json:"issuer,omitempty"`
	Names   []string `json:"names,omitempty"`
	From    *Time    `json:"from,omitempty"`
	Until   Time     `json:"until"`
	SHA256  string   `json:"sha256"`
}

// Certificates asks for those of all nodes.
func (c *Client) Certificates(ctx context.Context) (Certificates, error) {
	return one[Certificates](ctx, c, request{method: http.MethodGet, path: []string{"certificate"}})
}
