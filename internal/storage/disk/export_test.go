package disk

import "github.com/eventyard/eventyard/internal/storage/eventlog"

// Journaling makes every small group go through a journal with files of the given size.
// Inline, what the journal does in the background is part of the commit that needs it, so
// that a seed gives the same operations each time.
func Journaling(cfg Config, bytes int64, inline bool) Config {
	cfg.journalFrom, cfg.journalBytes, cfg.journalInline = 1, bytes, inline
	return cfg
}

// JournalEntry is an entry as the first one of a journal file, with its checksum.
func JournalEntry(id eventlog.PartitionID, base eventlog.Sequence, salt uint64, offset int64, bytes []byte) []byte {
	buf := appendEntry(nil, entry{id: id, base: base, salt: salt, offset: offset, bytes: bytes})
	sealEntries(buf, 1, 0)
	return buf
}
