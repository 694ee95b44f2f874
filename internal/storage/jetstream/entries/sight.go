package entries

// sight is what this process sees of a key while it changes it. A stream keeps the newest message of a key alone: what
// replaced the one that a change expects, and was replaced itself, is known only to who was told of it in between.
type sight struct {
	key     string
	creates bool               // the change expects that nothing is there
	seen    map[uint64]message // by what they replaced, without their values; guarded by the replica's mu
	more    chan struct{}      // has one when more has been seen
}

// look begins to note what is applied of a key, until the sight is given to forsake.
func (r *replica) look(key string, creates bool) *sight {
	s := &sight{key: key, creates: creates, more: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sights[key] == nil {
		r.sights[key] = make(map[*sight]bool)
	}
	r.sights[key][s] = true
	return s
}

// forsake ends a sight.
func (r *replica) forsake(s *sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.sights[s.key], s); len(r.sights[s.key]) == 0 {
		delete(r.sights, s.key)
	}
}

func (r *replica) show(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.showLocked(m)
}

// showLocked notes a message for those who look at its key.
func (r *replica) showLocked(m message) {
	m.value = nil
	for s := range r.sights[m.key] {
		if s.seen == nil {
			s.seen = make(map[uint64]message)
		}
		s.seen[m.before] = m
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
}

// successor gives the message that replaced another of the key, without its value; false: it was not seen.
func (r *replica) successor(s *sight, before uint64) (message, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if it := r.items[s.key]; it != nil && it.before == before && it.seq > before {
		return it.message, true
	}
	m, seen := s.seen[before]
	return m, seen && m.seq > before
}
