package admission

// Hold takes memory for a stranger. It is false, and takes nothing, where that would be too much
// for its address or for all strangers. For a client it is true and counts nothing.
func (p *Permit) Hold(bytes int) bool {
	if p == nil {
		return true
	}
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.kind != stranger {
		return true
	}
	if l.strangers.bytes+bytes > l.limits.StrangerBytes || p.address != nil && p.address.bytes+bytes > l.limits.AddressBytes {
		return false
	}
	p.addLocked(bytes)
	return true
}

// Claim is Hold for what everybody needs who wants to show a right: where there is too little left,
// who holds most of the address that holds most makes room, by losing its permit; of the own address,
// where that has its share. Nobody does for one who would hold more afterwards than the one, or whose
// address would hold more than the other: then it is false, and may succeed later.
func (p *Permit) Claim(bytes int) bool {
	for {
		held, evicted := p.claim(bytes)
		if evicted == nil {
			return held
		}
		evicted.end()
	}
}

// claim holds, or takes a permit away for another try; neither: there is nobody who makes room.
func (p *Permit) claim(bytes int) (held bool, evicted *Permit) {
	if p.Hold(bytes) {
		return true, nil
	}
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	rich := p.address
	if rich == nil || rich.bytes+bytes <= l.limits.AddressBytes {
		for _, a := range l.byAddress {
			if rich == nil || a.bytes > rich.bytes {
				rich = a
			}
		}
	}
	if rich == nil || rich != p.address && p.address != nil && rich.bytes <= p.address.bytes+bytes {
		return false, nil
	}
	for _, other := range rich.inOrder {
		if other != p && other.bytes > 0 && (evicted == nil || other.bytes > evicted.bytes) {
			evicted = other
		}
	}
	if evicted == nil || rich == p.address && evicted.bytes <= p.bytes+bytes {
		return false, nil
	}
	evicted.leaveLocked()
	evicted.kind = gone
	return false, evicted
}

// Free gives memory back that was held. What was held by a stranger who has become a client since
// was given back then.
func (p *Permit) Free(bytes int) {
	if p == nil {
		return
	}
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	if p.kind == stranger {
		p.addLocked(-bytes)
	}
}

// addLocked changes what is held.
func (p *Permit) addLocked(bytes int) {
	p.bytes += bytes
	p.ledger.strangers.bytes += bytes
	if p.address != nil {
		p.address.bytes += bytes
	}
}
