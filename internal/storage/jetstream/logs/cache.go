package logs

import (
	"sync"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// cache keeps the newest messages that this node has written or read, for readers near the end. What
// came first goes first. All methods may be called by many goroutines at once.
type cache struct {
	most int64

	mu sync.Mutex
	// All guarded by mu.
	bytes    int64
	messages map[cacheKey][]byte
	order    []cacheKey // as they came
}

type cacheKey struct {
	stream string
	seq    streams.Seq
}

func newCache(bytes int64) *cache {
	return &cache{most: bytes, messages: map[cacheKey][]byte{}}
}

// put keeps a message, which must not change any more.
func (c *cache) put(stream string, seq streams.Seq, message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{stream, seq}
	if _, there := c.messages[key]; there || int64(len(message)) > c.most {
		return
	}
	c.messages[key] = message
	c.order = append(c.order, key)
	c.bytes += int64(len(message))
	for c.bytes > c.most {
		c.bytes -= int64(len(c.messages[c.order[0]]))
		delete(c.messages, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *cache) get(stream string, seq streams.Seq) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	message, ok := c.messages[cacheKey{stream, seq}]
	return message, ok
}
