package kafka

import "time"

// Produce is the body of a Produce request. It is read from the connection partition by partition, into
// one buffer: a request may have a hundred times the bytes that are ever in memory of it.
type Produce struct {
	Transactional *string
	Acks          int16
	Timeout       time.Duration

	conn     *Conn
	body     *cut
	flexible bool
	byID     bool
	buffer   recordsBuffer

	// topics and partitions are still to come, of the request and of the topic.
	topics, partitions int
	inTopic, over      bool
	topic              ProducePartition // what all partitions of the topic have
}

// ProducePartition is what a request has for one partition.
type ProducePartition struct {
	// Topic is empty, and TopicID set, from version 13 on.
	Topic     string
	TopicID   [16]byte
	Partition int32
	// Records lie in a buffer that the next call of Next uses again. Nil: there are none.
	Records []byte
	// TooLarge: there are more bytes than MaxRecordsBytes. They were passed over, and Records is nil.
	TooLarge bool
	// FirstOfTopic: the one before was of another topic.
	FirstOfTopic bool
}

// newProduce reads as far as the topics.
func newProduce(c *Conn, version int16, body *cut) *Produce {
	p := &Produce{conn: c, body: body, flexible: version >= produceFlexible, byID: version >= produceByID}
	p.buffer.conn = c
	p.Transactional = body.text(p.flexible)
	p.Acks = body.int16()
	p.Timeout = time.Duration(body.int32()) * time.Millisecond
	p.topics = body.length(p.flexible)
	return p
}

// Next gives the next partition of the request. False: there are no more, or Err says why.
func (p *Produce) Next() (ProducePartition, bool) {
	for p.partitions <= 0 {
		if !p.nextTopic() {
			return ProducePartition{}, false
		}
	}
	return p.nextPartition()
}

// Err is why the request could not be read to its end. The connection ends with it.
func (p *Produce) Err() error { return p.body.err }

// nextTopic goes on to the next topic; false: there is none.
func (p *Produce) nextTopic() bool {
	if p.inTopic {
		p.endStruct()
	}
	p.inTopic = p.topics > 0 && p.body.err == nil
	if !p.inTopic {
		if !p.over {
			p.over = true
			p.endStruct() // of the request
		}
		return false
	}
	p.topics--
	p.topic = ProducePartition{FirstOfTopic: true}
	if p.byID {
		copy(p.topic.TopicID[:], p.body.next(len(p.topic.TopicID)))
	} else if name := p.body.text(p.flexible); name != nil {
		p.topic.Topic = *name
	} else {
		p.body.fail(errMalformed)
	}
	p.partitions = p.body.length(p.flexible)
	return true
}

func (p *Produce) nextPartition() (ProducePartition, bool) {
	part := p.topic
	p.topic.FirstOfTopic = false
	p.partitions--
	p.body.in.within(p.conn.server.cfg.ReadTimeout)
	part.Partition = p.body.int32()
	p.records(&part)
	if p.endStruct(); p.body.err != nil {
		return ProducePartition{}, false
	}
	return part, true
}

// records reads a partition's, where they are not too large.
func (p *Produce) records(part *ProducePartition) {
	size := p.body.length(p.flexible)
	cfg := &p.conn.server.cfg
	switch {
	case p.body.err != nil || size < 0:
	case size > cfg.MaxRecordsBytes:
		part.TooLarge = true
		p.body.skip(size, cfg.ReadTimeout)
	default:
		room, err := p.buffer.room(size)
		if err != nil {
			p.body.fail(err)
			return
		}
		p.body.full(room)
		part.Records = room
	}
}

// endStruct passes over what ends each structure of a flexible request.
func (p *Produce) endStruct() {
	if p.flexible && p.body.err == nil {
		p.body.tags()
	}
}
