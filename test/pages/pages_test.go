package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V7: what is run is what the page says.
func TestBlocksOfAPage(t *testing.T) {
	blocks := testkit.Value(Read(page(t, `# A page
'''sh
one
'''
It prints
'''text
1
'''
<!-- background: yard -->
'''sh
two
'''
<!-- file: a.py -->
'''python
three
'''
'''text
of nobody
'''
<!-- until -->
'''sh
four
'''
<!-- not run: the network -->
'''sh
five
'''
'''json
read only
'''
<!-- another comment -->
'''sh
six
'''
`)))(t)
	testkit.Diff(t, []Block{
		{Line: 3, Text: "one", Shows: "1"}, {Line: 11, Kind: Background, Name: "yard", Text: "two"}, {Line: 15, Kind: File, Name: "a.py", Text: "three"},
		{Line: 22, Kind: Until, Text: "four"}, {Line: 26, Kind: NotRun, Name: "the network", Text: "five"}, {Line: 33, Text: "six"},
	}, blocks)
	_, err := Read(page(t, "<!-- not run -->\n'''sh\nx\n'''\n"))
	testkit.That(t, err != nil, "a block is left out, and nobody says why")
}

// page writes a page, in which three quotes stand for three backquotes.
func page(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.md")
	testkit.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "'''", "```")), 0o600))
	return file
}

func TestWhatIsLikeWhatAPageShows(t *testing.T) {
	const printed = "NAME    AT                    TOOK\nlost    2026-11-17T10:00:00Z  3 ms\nfound   2026-11-17T10:00:01Z  4 ms\n"
	for shown, like := range map[string]bool{
		"":             true,
		"NAME AT TOOK": true,
		"NAME AT":      false,
		"NAME …":       true,
		"NAME AT TOOK\nfound 2000-01-01T00:00:00Z …": true,
		"found …\nlost …":                            false,
		"lost tomorrow …":                            false,
		"lost 2000-01-01T00:00:00.5Z 3 ms":           true,
		"l.st …":                                     false,
	} {
		missing, is := Like(shown, printed)
		testkit.Equal(t, is, like, "%q, of which %q is missing", shown, missing)
	}
}

// A page is followed as it is written: files are there for the commands behind them, and terminals end when their name is used again.
func TestAPageIsFollowed(t *testing.T) {
	r := &Reader{Dir: t.TempDir(), Env: []string{"WHO=world"}, Instead: map[string]string{"there": "here"}}
	r.Follow(t, page(t, `
<!-- file: words -->
'''
hello there
'''
'''sh
cat words; echo $WHO
'''
'''text
hello here
world
'''
<!-- exits: 3 -->
'''sh
exit 3
'''
<!-- background: one -->
'''sh
sh -c 'echo began; echo x > began; exec sleep 600'
'''
'''text
began
'''
<!-- until -->
'''sh
cat began
'''
'''text
x
'''
<!-- background: one -->
'''sh
sh -c 'echo again; exec sleep 600'
'''
'''text
again
'''
<!-- prints: one -->
'''text
ag…
'''
<!-- background: two -->
'''sh
sh -c 'touch kept; trap "rm kept; exit" INT; echo waits; while :; do sleep 0.01; done'
'''
'''text
waits
'''
<!-- after: one, two -->
'''sh
test ! -e kept && rm words
'''
`))
	_, err := os.Stat(filepath.Join(r.Dir, "words"))
	testkit.That(t, os.IsNotExist(err), "what is run after the terminals was not run: %v", err)
	testkit.Equal(t, len(r.terminals), 2)
}
