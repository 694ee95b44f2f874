package console

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: what changes is at the head of the list without a reload; who has scrolled down keeps what they
// read, and is told how much is new.
func TestActivityComesByItself(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	create := func(name string) {
		testkit.Must(t, testkit.Err(y.client.CreateHub(t.Context(), admin.HubRequest{Name: name, Partitions: new(1)})))
	}
	p.open("/console/activity")
	p.await("the list", contains("hub.created"))
	p.run("mark the page", evaluate(`window.marked = true; 0`))
	create("second")
	p.await("the second hub", contains("second")+` && window.marked === true`)
	p.run("scroll down", evaluate(`document.body.style.minHeight = "4000px"; scrollTo(0, 1000); 0`))
	create("third")
	p.await("that there is something new", `document.querySelector("button.held")?.textContent === "1 new" && !`+contains("third"))
	p.press("button.held", "third")
	p.await("the head of the page", `scrollY === 0`)
	checkPages(t, y, "activity?show=definitions&object=hubs/second")
}
