package legacy

import "strings"

// DaprBlob names the blob in which Dapr keeps a partition's lease, a text of the host for Go.
func DaprBlob(hub, group, partition string) string {
	return "dapr-" + hub + "-" + group + "-" + partition
}

// DaprPartition gives the partition of which a blob of Dapr's is. Hub and group have to be known,
// as their own hyphens cannot be told from those between them.
func DaprPartition(blob, hub, group string) (string, bool) {
	p, found := strings.CutPrefix(blob, DaprBlob(hub, group, ""))
	return p, found && p != "" && !strings.ContainsAny(p, "-/")
}
