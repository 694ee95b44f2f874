package measure

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTheResultReplacesWhatStandsBetweenTheMarks(t *testing.T) {
	const beginMark, endMark = "<!-- bench: begin -->", "<!-- bench: end -->"
	name := filepath.Join(t.TempDir(), "page.md")
	page := "# Before\n\n" + beginMark + "\nold figures\n" + endMark + "\n\nAfter.\n"
	testkit.Must(t, os.WriteFile(name, []byte(page), 0o600))
	for range 2 { // doing it again changes nothing
		testkit.Must(t, ReplaceMarked(name, "bench", "new figures\n"))
		got, err := os.ReadFile(name)
		testkit.Must(t, err)
		want := "# Before\n\n" + beginMark + "\n\nnew figures\n\n" + endMark + "\n\nAfter.\n"
		if string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestAFileWithoutMarksIsLeftAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	testkit.Must(t, os.WriteFile(name, []byte("text"), 0o600))
	if err := ReplaceMarked(name, "bench", "figures"); err == nil {
		t.Error("got no error")
	}
	if got, _ := os.ReadFile(name); string(got) != "text" {
		t.Errorf("the file now holds %q", got)
	}
}
