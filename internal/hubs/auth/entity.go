package auth

import "strings"

// Entity is what a right is needed for, or is a right to: a hub, or something in one. The zero
// Entity is the namespace. It has fields, and is no path, because names have slashes: a path alone
// does not show whether a/b is the hub of that name or a part of a, nor whether g/x is a group or
// something in g.
type Entity struct {
	// Hub is the hub that is worked on, in lower case.
	Hub string
	// Part is what kind of thing in the hub it is, a word of parts or a node such as $management;
	// empty for the hub itself. Name is which one; empty for all of them.
	Part, Name string
	// Partition is that of a group, where it is not the group as a whole.
	Partition string
}

// The parts of a hub: words that stand in a path between the hub's name and theirs.
const (
	partGroups     = "consumergroups"
	partMessages   = "messages"
	partPartitions = "partitions"
	partPublishers = "publishers"
)

// At gives the entity of a hub or of something in it: At("Orders"), At("Orders", "Partitions", "0"),
// At("Orders", "ConsumerGroups", "g", "Partitions", "0").
func At(hub string, path ...string) Entity {
	e := Entity{Hub: Fold(strings.Trim(hub, "/"))}
	if len(path) > 0 {
		e.Part = Fold(path[0])
	}
	if len(path) > 1 {
		e.Name = foldName(e.Part, path[1])
	}
	if len(path) > 3 {
		e.Partition = path[3]
	}
	return e
}

// EntityOf gives the entity of a path without slashes at its ends.
func EntityOf(path string) Entity {
	hub, part, name := cutHub(path)
	e := At(hub, part)
	if e.Part == partGroups {
		name, e.Partition = cutPartition(name)
	}
	e.Name = foldName(e.Part, name)
	return e
}

// cutPartition takes a partition off the end of what stands behind the word for groups.
func cutPartition(name string) (group, partition string) {
	if end := strings.LastIndexByte(name, '/'); end > 0 {
		start := strings.LastIndexByte(name[:end], '/')
		if start > 0 && Fold(name[start+1:end]) == partPartitions {
			return name[:start], name[end+1:]
		}
	}
	return name, ""
}

// foldName gives the form in which the names of a part are compared. Those of groups are other
// groups in another case, except $Default, and those of publishers other keys.
func foldName(part, name string) string {
	folded := Fold(name)
	if part == partPublishers || part == partGroups && folded != "$default" {
		return name
	}
	return folded
}

// String is the entity as a path, in the form that Path gives.
func (e Entity) String() string {
	path := e.Hub
	if e.Part != "" {
		path += "/" + e.Part
	}
	if e.Name != "" {
		path += "/" + e.Name
	}
	if e.Partition != "" {
		path += "/" + partPartitions + "/" + e.Partition
	}
	return path
}

// covers reports whether another entity is the same or lies in this one. Names count as a whole.
func (e Entity) covers(other Entity) bool {
	return e == Entity{} || e.Hub == other.Hub &&
		(e.Part == "" || e.Part == other.Part) &&
		(e.Name == "" || e.Name == other.Name) &&
		(e.Partition == "" || e.Partition == other.Partition)
}
