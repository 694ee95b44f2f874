package backup

import (
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Summary is what a backup has, for people and programs.
type Summary struct {
	// Namespace and Program are whose it is and who wrote it, Taken is when its entries were read.
	Namespace string    `json:"namespace"`
	Program   string    `json:"program"`
	Taken     time.Time `json:"taken"`
	// Replicas is how many servers kept each event; zero where a folder held all.
	Replicas int `json:"replicas,omitempty"`
	// Bytes is the size of the archive.
	Bytes      int64 `json:"bytes"`
	Entries    int64 `json:"entries"`
	Logs       int   `json:"logs"`
	Partitions int   `json:"partitions"`
	Events     int64 `json:"events"`
	// Bodies are those of blobs that are too large for an entry, Files those of the yard's id and certificates.
	Bodies int `json:"bodies"`
	Files  int `json:"files"`
	// SecretKeys are the ids of the keys that its secrets are sealed with. Without them it cannot be
	// restored, and it does not hold them.
	SecretKeys []string `json:"secretKeys"`
	// Lost are sentences about what the yard could not read, and what is therefore not in the backup.
	Lost []string `json:"lost"`
	// Removed are logs that were deleted while the backup was taken: they are there without events.
	Removed []string `json:"removed"`

	// Revision is the highest of an entry.
	Revision meta.Revision `json:"-"`
}

// Summarize sums up the items of an archive, as Take gives them, with so many bytes.
func Summarize(head archive.Head, items []archive.Item, bytes int64) Summary {
	s := Summary{
		Namespace: head.Namespace, Program: head.Program, Taken: head.Taken, Replicas: head.Replicas, Bytes: bytes,
		SecretKeys: []string{}, Lost: []string{}, Removed: []string{},
	}
	logs := map[string]bool{}
	for _, item := range items {
		switch item.Type {
		case archive.TypeEntries:
			s.Entries, s.Revision = item.Count, meta.Revision(item.Revision)
			s.SecretKeys = append(s.SecretKeys, item.Keys...)
		case archive.TypePartition:
			logs[item.Name] = true
			s.Partitions++
			s.addPartition(item)
		case archive.TypeBody:
			s.Bodies++
			if item.Missing != "" {
				s.Lost = append(s.Lost, fmt.Sprintf("%s: it could not be read: %s", item.ID(), item.Missing))
			}
		case archive.TypeFile:
			s.Files++
		}
	}
	s.Logs = len(logs)
	return s
}

func (s *Summary) addPartition(item archive.Item) {
	p := item.Partition
	events := int64(p.Next - p.First)
	for _, lost := range p.Lost {
		events -= int64(lost.Next - lost.First)
		s.Lost = append(s.Lost, fmt.Sprintf("%s: events %d to %d could not be read: %s", item.ID(), lost.First, lost.Next-1, lost.Reason))
	}
	s.Events += events
	if p.Removed && !slices.Contains(s.Removed, item.Name) {
		s.Removed = append(s.Removed, item.Name)
	}
}
