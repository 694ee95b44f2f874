package consumer

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// maxJoinBytes is how large a group may be as it is stored for anything to be added to it. It is half of what
// an entry may measure: a group grows further while its members exchange partitions, and must not fail then.
const maxJoinBytes = 256 << 10

// maxNumber is beyond all numbers in an entry.
const maxNumber = 1 << 24

// ErrEntry: what is stored is no group.
var ErrEntry = errors.New("the stored group cannot be read")

// The stored form. Hubs and subscriptions stand in tables, because members have most of them in common. Names
// are short: there may be a thousand members.
type (
	storedGroup struct {
		Epoch         int32                `json:"epoch"`
		Topics        []storedTopic        `json:"topics,omitempty"`
		Subscriptions []storedSubscription `json:"subscriptions,omitempty"`
		Members       []storedMember       `json:"members,omitempty"`
	}
	// storedTopic has no name where nobody subscribes to it any more, and somebody still has partitions of it.
	storedTopic struct {
		ID         string `json:"id"`
		Name       string `json:"name,omitempty"`
		Partitions int32  `json:"n,omitempty"`
	}
	storedSubscription struct {
		Names      []string `json:"names,omitempty"`
		Expression string   `json:"regex,omitempty"`
		Matched    []string `json:"matched,omitempty"`
	}
	storedMember struct {
		ID           string `json:"id"`
		Instance     string `json:"inst,omitempty"`
		Rack         string `json:"rack,omitempty"`
		Client       string `json:"cl,omitempty"`
		Host         string `json:"host,omitempty"`
		Epoch        int32  `json:"e"`
		Previous     int32  `json:"p,omitempty"`
		Timeout      int64  `json:"ms"`
		Assignor     string `json:"by,omitempty"`
		Subscription int    `json:"sub"`
		Assigned     packed `json:"has,omitempty"`
		Revoking     packed `json:"gives,omitempty"`
		// Target is left out where it is what the member has.
		Target *packed `json:"gets,omitempty"`
	}
	// packed is a set, about a byte for each partition: for each hub its index in the table, how many
	// partitions follow, and of each how many numbers lie between it and the one before.
	packed []byte
)

// MarshalJSON and UnmarshalJSON make a group part of an entry.
func (g *Group) MarshalJSON() ([]byte, error) { return g.Encode(), nil }

func (g *Group) UnmarshalJSON(encoded []byte) error {
	read, err := Decode(encoded)
	if err == nil {
		*g = *read
	}
	return err
}

// Encode gives the group as it is stored.
func (g *Group) Encode() []byte {
	out := storedGroup{Epoch: g.Epoch}
	indexes := make(map[TopicID]int)
	index := func(id TopicID) int {
		at, known := indexes[id]
		if !known {
			at = len(out.Topics)
			indexes[id] = at
			out.Topics = append(out.Topics, storedTopic{ID: hex.EncodeToString(id[:])})
		}
		return at
	}
	for _, t := range g.topics {
		at := index(t.ID)
		out.Topics[at].Name, out.Topics[at].Partitions = t.Name, t.Partitions
	}
	subscriptions := make(map[*Subscription]int)
	for _, m := range g.Members() {
		subscription, known := subscriptions[m.Subscription]
		if !known {
			subscription = len(out.Subscriptions)
			subscriptions[m.Subscription] = subscription
			out.Subscriptions = append(out.Subscriptions, storedSubscription(*m.Subscription))
		}
		one := storedMember{
			ID: m.ID, Instance: m.Instance, Rack: m.Rack, Client: m.Client, Host: m.Host,
			Epoch: m.Epoch, Previous: m.Previous, Timeout: m.RebalanceTimeout.Milliseconds(), Assignor: m.Assignor,
			Subscription: subscription, Assigned: pack(m.Assigned, index), Revoking: pack(m.Revoking, index),
		}
		if !m.Target.Equal(m.Assigned) {
			one.Target = new(pack(m.Target, index))
		}
		out.Members = append(out.Members, one)
	}
	encoded, err := json.Marshal(out)
	if err != nil { // strings and numbers
		panic(fmt.Sprintf("encode a group: %v", err))
	}
	return encoded
}

func pack(s Set, index func(TopicID) int) packed {
	out := packed{} // and not null, which would be a target that was left out
	for topic, numbers := range s.Topics() {
		out = binary.AppendUvarint(out, uint64(index(topic)))
		out = binary.AppendUvarint(out, uint64(len(numbers)))
		next := int32(0)
		for _, n := range numbers {
			out = binary.AppendUvarint(out, uint64(n-next))
			next = n + 1
		}
	}
	return out
}

// Decode reads a group as it was stored. It refuses one in which a partition has two owners: nothing that is
// made of such a group could be relied on.
func Decode(encoded []byte) (*Group, error) {
	var in storedGroup
	if err := json.Unmarshal(encoded, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	g := &Group{Epoch: in.Epoch, members: make(map[string]*Member, len(in.Members))}
	ids := make([]TopicID, len(in.Topics))
	for i, t := range in.Topics {
		if n, err := hex.Decode(ids[i][:], []byte(t.ID[:min(len(t.ID), 2*len(ids[i]))])); err != nil || n != len(ids[i]) || len(t.ID) != 2*n {
			return nil, fmt.Errorf("%w: %.40q is no id of a hub", ErrEntry, t.ID)
		}
		if t.Name != "" {
			g.topics = append(g.topics, Topic{ids[i], t.Name, t.Partitions})
		}
	}
	g.topics = distinct(g.topics)
	subscriptions := make([]*Subscription, len(in.Subscriptions))
	for i, s := range in.Subscriptions {
		subscriptions[i] = new(Subscription(s))
	}
	all := &decoding{ids: ids, owned: make(map[Partition]bool), meant: make(map[Partition]bool)}
	for _, m := range in.Members {
		if m.Subscription < 0 || m.Subscription >= len(subscriptions) || g.members[m.ID] != nil || m.ID == "" || m.Epoch > in.Epoch ||
			m.Assignor != "" && assignors[m.Assignor] == nil {
			return nil, fmt.Errorf("%w: member %.64q makes no sense", ErrEntry, m.ID)
		}
		one := &Member{
			ID: m.ID, Instance: m.Instance, Rack: m.Rack, Client: m.Client, Host: m.Host,
			Epoch: m.Epoch, Previous: m.Previous, RebalanceTimeout: time.Duration(m.Timeout) * time.Millisecond, Assignor: m.Assignor,
			Subscription: subscriptions[m.Subscription],
			Assigned:     all.set(m.Assigned, all.owned), Revoking: all.set(m.Revoking, all.owned),
		}
		if target := cmp.Or(m.Target, &m.Assigned); target != nil {
			one.Target = all.set(*target, all.meant)
		}
		g.members[m.ID] = one
	}
	return g, all.err
}

// decoding gathers what is wrong with the partitions of an entry.
type decoding struct {
	ids          []TopicID
	owned, meant map[Partition]bool
	err          error
}

// set reads a set, and marks what it holds: nothing may be marked twice.
func (d *decoding) set(from packed, marked map[Partition]bool) Set {
	var found []Partition
	for len(from) > 0 {
		index, n := d.number(&from), d.number(&from)
		if index >= uint64(len(d.ids)) || n > uint64(len(from)) { // each takes a byte or more
			d.err = cmp.Or(d.err, fmt.Errorf("%w: %d partitions of hub %d", ErrEntry, n, index))
			return nil
		}
		next := uint64(0)
		for range n {
			p := Partition{d.ids[index], int32(next + d.number(&from))}
			if p.Number < int32(next) || p.Number > maxNumber || marked[p] {
				d.err = cmp.Or(d.err, fmt.Errorf("%w: partition %d of hub %d is none, or has two owners", ErrEntry, p.Number, index))
				return nil
			}
			marked[p], next = true, uint64(p.Number)+1
			found = append(found, p)
		}
	}
	return SetOf(found)
}

// number reads one; where there is none it is too large for anything.
func (d *decoding) number(from *packed) uint64 {
	value, n := binary.Uvarint(*from)
	if n <= 0 || value > maxNumber {
		value, n = maxNumber+1, len(*from)
	}
	*from = (*from)[n:]
	return value
}
