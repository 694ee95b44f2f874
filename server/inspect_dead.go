package server

import (
	"io/fs"
	"path/filepath"
	"regexp"
)

// Dead letters may go to any folder in the data folder that is not the yard's own. What they look
// like there is what tells it from somebody else's: TOPIC/SUBSCRIPTION/2026/1/31/12/NAME.json.
var (
	deadLetterFile   = regexp.MustCompile(`(^|/)[^/]+/[^/]+/\d{4}/\d{1,2}/\d{1,2}/\d{1,2}/[^/]+\.json(\.part)?$`)
	deadLetterFolder = regexp.MustCompile(`(^|/)[^/]+/[^/]+/\d{4}/\d{1,2}/\d{1,2}/\d{1,2}$`)
)

// mostLookedAt is after how many files a folder is believed to hold dead letters.
const mostLookedAt = 1000

// hasDeadLetters tells whether a folder holds dead letters and nothing else.
func hasDeadLetters(dir string) bool {
	files, found := 0, false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			found = found || deadLetterFolder.MatchString(name)
			return nil
		}
		if !deadLetterFile.MatchString(name) {
			found = false
			return fs.SkipAll
		}
		if files++; files == mostLookedAt {
			return fs.SkipAll
		}
		return nil
	})
	return err == nil && found
}
