package disk

// Journaling makes every small group go through a journal with files of the given size.
// Inline, what the journal does in the background is part of the commit that needs it, so
// that a seed gives the same operations each time.
func Journaling(cfg Config, bytes int64, inline bool) Config {
	cfg.journalFrom, cfg.journalBytes, cfg.journalInline = 1, bytes, inline
	return cfg
}
