package kafka

import (
	"context"
	"time"
)

// Produce is the body of a Produce request. It is read from the connection partition by partition, into
// one buffer: a request may have a hundred times the bytes that are ever in memory of it.
type Produce struct {
	Transactional *string
	Acks          int16
	Timeout       time.Duration
	// Settle is set by a handler that keeps copies of the records until it has finished the request, and
	// has them gone when it returns. It is called by Next and Pause. Nil: it keeps none.
	Settle func()

	conn     *Conn
	hold     *hold
	body     *cut
	flexible bool
	byID     bool
	buffer   recordsBuffer
	// kept is how many bytes of records the handler keeps, the present partition's included, and seen how many
	// partitions there were: what is said of them is in memory until it is answered.
	kept, present, seen int

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
func newProduce(c *Conn, hold *hold, version int16, body *cut) *Produce {
	p := &Produce{conn: c, hold: hold, body: body, flexible: version >= produceFlexible, byID: version >= produceByID}
	p.buffer.pools = c.server.records
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
	case p.body.err != nil:
	case size < 0:
		p.reserve(0)
	case size > cfg.MaxRecordsBytes:
		part.TooLarge = true
		p.reserve(0)
		p.body.skip(size, cfg.ReadTimeout)
	case p.reserve(size):
		part.Records = p.buffer.room(size)
		p.body.full(part.Records)
	}
}

// reserve takes memory for the records of one more partition, for the copy of them that the handler keeps,
// and for what is said of them. Where there is too little, those before are settled first: the request
// waits without anything that others could wait for. False: the connection has ended.
func (p *Produce) reserve(size int) bool {
	p.seen++
	p.present = 0
	if p.Settle != nil {
		p.present = size
	}
	if p.kept+p.present > maxKeptBytes {
		p.settle()
	}
	if need := p.cost(size); need > p.hold.bytes && !p.hold.try(need+holdStepBytes) && !p.hold.try(need) {
		p.settle()
		p.buffer.putBack()
		if err := p.hold.take(p.conn.ctx, p.cost(size)); err != nil {
			p.body.fail(err)
			return false
		}
	}
	p.kept += p.present
	return true
}

// cost is all that the request takes, with so many bytes of records more.
func (p *Produce) cost(size int) int {
	return largeReadBytes + p.buffer.cost(size) + p.kept + p.present + p.seen*producedBytes
}

// settle has the handler keep nothing of what it was given before.
func (p *Produce) settle() {
	if p.kept > 0 {
		p.Settle()
		p.kept = 0
	}
}

// Pause waits for so long, because a quota is used up; what the handler keeps is settled before. False: the
// wait was cut short, since others need the memory that the request has.
func (p *Produce) Pause(ctx context.Context, d time.Duration) (bool, error) {
	p.settle()
	p.kept = p.present
	p.hold.set(largeReadBytes + p.buffer.held() + p.kept + p.seen*producedBytes)
	if p.hold.pressed.Load() {
		return false, nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-p.body.in.stage.hurried:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// end gives the buffer back, and leaves what is kept until the request is finished.
func (p *Produce) end() {
	p.buffer.putBack()
	p.hold.set(p.kept + p.seen*producedBytes)
}

// endStruct passes over what ends each structure of a flexible request.
func (p *Produce) endStruct() {
	if p.flexible && p.body.err == nil {
		p.body.tags()
	}
}
