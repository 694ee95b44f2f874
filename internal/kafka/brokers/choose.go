package brokers

import (
	"encoding/binary"
	"hash/fnv"
)

// Choose gives the one of some nodes that a key belongs to: everybody who knows the same nodes gives the
// same, in whatever order they are, and when one of them leaves only its own keys move (rendezvous
// hashing). There is at least one node.
func Choose(nodes []Node, key []byte) Node {
	best, greatest := nodes[0], uint64(0)
	if len(nodes) == 1 {
		return best
	}
	var number [4]byte
	for _, n := range nodes {
		h := fnv.New64a()
		_, _ = h.Write(key)
		binary.BigEndian.PutUint32(number[:], uint32(n.ID))
		_, _ = h.Write(number[:])
		if weight := mix(h.Sum64()); weight >= greatest {
			best, greatest = n, weight
		}
	}
	return best
}

// mix spreads a hash whose last bytes differ in little over all its bits (the end of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
