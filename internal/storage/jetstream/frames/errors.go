package frames

import "errors"

// What is wrong with bytes that should be a frame or a mark. Whoever follows a stream stops at
// ErrVersion, since it cannot know what such a frame does; the others are damage.
var (
	// ErrNotFrame: the bytes do not begin as a frame does.
	ErrNotFrame = errors.New("message is no frame")
	// ErrVersion: the frame is intact, and of a version or kind that this program does not know.
	ErrVersion = errors.New("frame was written by a newer version")
	// ErrShort: the message ends before the frame, or goes on behind it.
	ErrShort = errors.New("frame has another length than its header says")
	// ErrChecksum: header or payload are not what was written.
	ErrChecksum = errors.New("frame has a wrong checksum")
	// ErrMalformed: the checksums are right, and the content contradicts itself.
	ErrMalformed = errors.New("frame contradicts itself")
)
