package hub

import "fmt"

// Hub is one hub of a namespace.
type Hub struct {
	client *Client
	name   string
}

// Name is the hub's, as it was given.
func (h *Hub) Name() string { return h.name }

// Namespace is the fully qualified name of the hub's namespace, without a port.
func (h *Hub) Namespace() string { return h.client.Namespace() }

// named tells who forgot the hub's name so, before the hub is asked for something else.
func (h *Hub) named() error {
	if h.name == "" {
		return fmt.Errorf("%w: no hub was named, and the connection string has no EntityPath", ErrNotFound)
	}
	return nil
}

// errNoPartition tells who forgot the partition's name so.
var errNoPartition = fmt.Errorf("%w: no partition was named", ErrNotFound)

// The parts of addresses.
func (h *Hub) management() string { return h.name + "/$management" }

func (h *Hub) partition(id string) string { return h.name + "/Partitions/" + id }

func (h *Hub) source(group, partition string) string {
	return h.name + "/ConsumerGroups/" + group + "/Partitions/" + partition
}
