package pages

import (
	"regexp"
	"strings"
)

// moment is a time as commands print it. One stands for any other.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`)

// Like tells whether something was printed as a page shows it: each line that is shown was printed, in their
// order, with others between them or not. Runs of blanks are one blank, a time stands for any time, and an
// ellipsis (…) for any text. missing is the first line that was not.
func Like(shown, printed string) (missing string, like bool) {
	lines := strings.Split(printed, "\n")
	for want := range strings.Lines(shown) {
		if want = strings.TrimSpace(want); want == "" {
			continue
		}
		pattern, i := linePattern(want), 0
		for i < len(lines) && !pattern.MatchString(blanks(lines[i])) {
			i++
		}
		if i == len(lines) {
			return want, false
		}
		lines = lines[i+1:]
	}
	return "", true
}

func blanks(line string) string { return strings.Join(strings.Fields(line), " ") }

func linePattern(shown string) *regexp.Regexp {
	const someTime = "\x00" // until the rest is quoted
	text := regexp.QuoteMeta(moment.ReplaceAllString(blanks(shown), someTime))
	text = strings.NewReplacer(someTime, moment.String(), "…", ".*").Replace(text)
	return regexp.MustCompile("^" + text + "$")
}
