package member

import (
	"encoding/binary"
	"fmt"
)

// ConsumerProtocol is the protocol type of consumers, whose metadata say which topics they want. Others,
// such as that of Connect's workers, share out something else.
const ConsumerProtocol = "consumer"

// Topics reads from the metadata of a consumer which topics it subscribes to. What follows in there, such as
// what it owns, is for the group's leader. Nothing is allocated beyond what the bytes hold.
func Topics(metadata []byte) ([]string, error) {
	if len(metadata) < 6 {
		return nil, fmt.Errorf("%w: %d bytes are no subscription", ErrProtocol, len(metadata))
	}
	count := int32(binary.BigEndian.Uint32(metadata[2:]))
	rest := metadata[6:]
	if count < 0 || int(count) > len(rest)/2 {
		return nil, fmt.Errorf("%w: a subscription of %d topics in %d bytes", ErrProtocol, count, len(rest))
	}
	topics := make([]string, 0, count)
	for range count {
		if len(rest) < 2 {
			return nil, fmt.Errorf("%w: a subscription that is cut off", ErrProtocol)
		}
		size := int(int16(binary.BigEndian.Uint16(rest)))
		rest = rest[2:]
		if size < 0 || size > len(rest) {
			return nil, fmt.Errorf("%w: a topic of %d bytes where %d are left", ErrProtocol, size, len(rest))
		}
		topics = append(topics, string(rest[:size]))
		rest = rest[size:]
	}
	return topics, nil
}
