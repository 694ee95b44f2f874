package console

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: the first run. Each step is ticked off on the page when the yard sees it done, by whomever, without the page
// being loaded again; and a screen reader is told.
func TestTheFirstRunTicksItselfOff(t *testing.T) {
	y := newEmptyYard(t)
	checkPages(t, y, "")
	p := newPage(t, y.base, 1280, "light")
	steps := func(done, now int) string {
		return fmt.Sprintf(`document.querySelectorAll("#part-first .steps > li.done").length === %d && document.querySelectorAll("#part-first .steps > li.now").length === %d`, done, now)
	}
	p.open("/console/")
	p.await("one step that is done", steps(1, 1))
	p.press(`#part-first form button`, "First steps")
	p.await("a hub", steps(2, 1))
	p.run("mark the page", evaluate(`window.marked = true; 0`))
	y.send(t, "hello")
	p.await("an event", steps(3, 1))
	p.await("that development mode is said", contains("the well-known key of the emulator is valid"))
	p.await("what a screen reader is told", `document.getElementById("said").textContent.includes("Next: Read it")`)
	checkPages(t, y, "?lang=java")
	testkit.Must(t, testkit.Err(y.client.CreateGroup(t.Context(), "orders", "billing")))
	y.worker(t, "one")
	p.await("a reader", steps(4, 0))
	p.await("the page that was marked", `window.marked === true`)
}
