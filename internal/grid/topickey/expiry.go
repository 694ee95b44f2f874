package topickey

import (
	"net/url"
	"strings"
	"time"
)

// signedLayout is the spelling that we write, and Azure's own samples.
const signedLayout = "1/2/2006 3:04:05 PM"

// layouts are the spellings of reference §2. A fraction may follow the seconds of each; all
// numbers but the year may lack a leading zero where the layout has none. The ones without an
// offset are UTC.
var layouts = []string{
	"1/2/2006 3:4:5 PM", // JavaScript, C#; Java leaves out the zeros of minutes and seconds too
	"1/2/2006 3:4:5 PM Z07:00",
	"1/2/2006 15:4:5", // C# of the invariant culture
	"1/2/2006 15:4:5 Z07:00",
	"2006-01-02 15:04:05", // Python's str
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 Z07:00",
	"2006-01-02T15:04:05", // ISO 8601
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700",
}

// blanks makes ordinary ones of those that newer .NET and ICU write before AM and PM.
var blanks = strings.NewReplacer("\u202f", " ", "\u00a0", " ", "\u2009", " ")

// parseExpiry reads e as it stands in the token. A plus may be a blank or itself: some clients
// do not escape that of +00:00.
func parseExpiry(e string) (time.Time, error) {
	for _, unescape := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		text, err := unescape(e)
		if err != nil {
			return time.Time{}, malformed("e: %v", err)
		}
		text = strings.ToUpper(strings.Join(strings.Fields(blanks.Replace(text)), " "))
		for _, layout := range layouts {
			if t, err := time.Parse(layout, text); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, malformed("e is %.64q, not a time: write it like 1/2/2030 3:04:05 PM or 2030-01-02T15:04:05Z, in UTC", e)
}
