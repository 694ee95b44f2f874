package logs

import (
	"encoding/binary"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// An announcement tells the other nodes what was stored: a version (1 byte), then for each message
// its sequence, subject and content, the latter two with their lengths before them, all as varints.
// The content is a frame's header, or a whole mark.
const announceVersion = 1

// maxAnnounced bounds an announcement; maxAnnouncedMark the marks in it: larger ones are read.
const (
	maxAnnounced     = 64 << 10
	maxAnnouncedMark = 32 << 10
)

var errAnnouncement = errors.New("announcement is malformed")

// appendAnnounced appends one message to an announcement, which begins with nil.
func appendAnnounced(dst []byte, seq streams.Seq, subject string, message []byte) []byte {
	if len(dst) == 0 {
		dst = append(dst, announceVersion)
	}
	if subject != markSubject {
		message = message[:frames.HeaderBytes]
	}
	dst = binary.AppendUvarint(dst, uint64(seq))
	dst = binary.AppendUvarint(dst, uint64(len(subject)))
	dst = append(dst, subject...)
	dst = binary.AppendUvarint(dst, uint64(len(message)))
	return append(dst, message...)
}

// decodeAnnouncement gives what was stored, copied. What a newer version says is not heard: it is
// read when it is missed.
func decodeAnnouncement(data []byte) (all []heard, err error) {
	if len(data) < 1 || data[0] != announceVersion {
		return nil, errAnnouncement
	}
	for data = data[1:]; len(data) > 0; {
		seq, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errAnnouncement
		}
		subject, rest, ok := cutBytes(data[n:])
		content, rest, ok2 := cutBytes(rest)
		if !ok || !ok2 || seq == 0 {
			return nil, errAnnouncement
		}
		h := hear(streams.Message{Seq: streams.Seq(seq), Subject: string(subject), Data: append([]byte(nil), content...)})
		if h.damaged != nil {
			return nil, h.damaged
		}
		all, data = append(all, h), rest
	}
	return all, nil
}

// cutBytes reads a length and so many bytes.
func cutBytes(data []byte) (content, rest []byte, ok bool) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return nil, nil, false
	}
	return data[n : n+int(length)], data[n+int(length):], true
}

// hear is what a message, or the beginning of one, tells.
func hear(m streams.Message) heard {
	h := heard{seq: m.Seq, subject: m.Subject}
	h.header, h.damaged = frames.DecodeHeader(m.Data)
	switch {
	case h.damaged != nil:
	case (m.Subject == markSubject) != (h.header.Kind == frames.KindMark):
		h.damaged = frames.ErrMalformed
	case m.Subject == markSubject:
		h.mark = m.Data
	}
	return h
}
