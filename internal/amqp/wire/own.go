package wire

// Own is what a sender has put into the annotations that belong to the hub.
type Own struct {
	// Key is the partition key. It shares the message's bytes. Nil when there was
	// none, or one that is not a string: consumers would choke on it.
	Key []byte
	// Producer is how an idempotent producer has numbered the event.
	Producer ProducerMark
}

// ProducerMark is the number that an idempotent producer gives an event. What is not
// there, or of another type than it has to be, is unset.
type ProducerMark struct {
	ID       Opt[int64]
	Epoch    Opt[int16]
	Sequence Opt[int32]
}

// Own reads them from a message that is not to be stored itself, such as the envelope of a
// batch. What Normalize finds is the same.
func (m *Message) Own() (Own, error) {
	if m.MessageAnnotations == nil {
		return Own{}, nil
	}
	r := NewReader(m.MessageAnnotations)
	if _, err := r.ReadDescriptor(); err != nil {
		return Own{}, err
	}
	entries, err := r.EnterMap()
	if err != nil {
		return Own{}, err
	}
	var own Own
	for range entries.Count / 2 {
		if _, err := r.skipAnnotation(&own); err != nil {
			return Own{}, err
		}
	}
	return own, nil
}

// skipAnnotation passes one annotation, notes in own what it says about the event, and
// reports whether it is the hub's. Keys are symbols (§3.2.10); a sender that writes them
// as strings means the same ones.
func (r *Reader) skipAnnotation(own *Own) (ours bool, err error) {
	c, err := r.Peek()
	if err != nil {
		return false, err
	}
	switch c.widest() {
	case CodeSymbol32, CodeString32:
	default:
		if err := r.Skip(); err != nil {
			return false, err
		}
		return false, r.Skip()
	}
	name, err := r.bytes(c.widest())
	if err != nil {
		return false, err
	}
	return r.ownAnnotation(name, own)
}

// ownAnnotation passes the value of an annotation, and notes it if it is of the type that
// it has to be.
func (r *Reader) ownAnnotation(name []byte, own *Own) (ours bool, err error) {
	c, err := r.Peek()
	if err != nil {
		return false, err
	}
	switch of := c.widest(); {
	case string(name) == AnnotationPartitionKey && of == CodeString32:
		own.Key, err = r.ReadStringBytes()
	case string(name) == AnnotationProducerID && of == CodeLong:
		own.Producer.ID.Set = true
		own.Producer.ID.Value, err = r.ReadLong()
	case string(name) == AnnotationProducerEpoch && of == CodeShort:
		own.Producer.Epoch.Set = true
		own.Producer.Epoch.Value, err = r.ReadShort()
	case string(name) == AnnotationProducerSequence && of == CodeInt:
		own.Producer.Sequence.Set = true
		own.Producer.Sequence.Value, err = r.ReadInt()
	default:
		return IsOwnAnnotation(name), r.Skip()
	}
	return true, err
}
