package egress

import "sync"

// maxCached is how many transports, and how many tokens, are kept to be shared.
const maxCached = 1024

// cache keeps what was made for keys, so that it is shared, up to a number: then the least
// recently used is forgotten. Its users go on with it, unshared.
type cache[K comparable, V any] struct {
	max    int
	create func(K) (V, error)
	forget func(V)

	mu    sync.Mutex
	clock uint64           // guarded by mu: counts what is asked for
	items map[K]*cached[V] // guarded by mu
}

type cached[V any] struct {
	value V
	used  uint64
}

func newCache[K comparable, V any](max int, create func(K) (V, error), forget func(V)) *cache[K, V] {
	return &cache[K, V]{max: max, create: create, forget: forget, items: map[K]*cached[V]{}}
}

// get gives what was made for a key, or makes it.
func (c *cache[K, V]) get(key K) (V, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	if item := c.items[key]; item != nil {
		item.used = c.clock
		return item.value, nil
	}
	value, err := c.create(key)
	if err != nil {
		return value, err
	}
	if len(c.items) >= c.max {
		oldest, used := key, c.clock
		for key, item := range c.items {
			if item.used <= used {
				oldest, used = key, item.used
			}
		}
		c.dropLocked(oldest)
	}
	c.items[key] = &cached[V]{value, c.clock}
	return value, nil
}

// all gives what is kept.
func (c *cache[K, V]) all() []V {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make([]V, 0, len(c.items))
	for _, item := range c.items {
		values = append(values, item.value)
	}
	return values
}

func (c *cache[K, V]) dropLocked(key K) {
	if c.forget != nil {
		c.forget(c.items[key].value)
	}
	delete(c.items, key)
}

// clear forgets everything.
func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.items {
		c.dropLocked(key)
	}
}
