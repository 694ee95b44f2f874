package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G8: a folder that the yard would refuse is found before it starts.
func TestDeadLetterFoldersThatAreElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	testkit.Must(t, err)
	testkit.Must(t, os.Mkdir("real", 0o700))
	testkit.Must(t, os.Symlink("real", "data"))
	c := Default()
	c.Data, c.Grid.DeadLetterFolders = "data", "/srv/dead"
	for position, right := range map[string]bool{
		"": true, "yard": true, "hub:x": true, "none": true,
		"folder:dead": true, "folder:a/b": true, "folder:" + filepath.Join(here, "data", "dead"): true, "folder:/srv/dead/x": true,
		"folder:" + filepath.Join(here, "real", "dead"): true, // which is where the link leads
		"folder:/etc": false, "folder:../x": false, "Folder:/srv": false, "folder:/srv/deadly": false,
	} {
		c.Subscriptions = []admin.SubscriptionRequest{{Name: "a", DeadLetter: &position}}
		if found := c.foreignFolders(); (len(found) == 0) != right {
			t.Errorf("%q: %v", position, found)
		}
	}
	write(t, DefaultFile, "subscriptions: [{name: abc, topic: t, pull: true, deadLetter: 'folder:/etc'}]")
	if _, err := Load(Sources{}); err == nil || !strings.Contains(err.Error(), "subscriptions[0].deadLetter: folder /etc is not inside the data folder eventyard-data") {
		t.Errorf("loading gave %v", err)
	}
}

// Topics and hubs that a file does not declare may be there, or misspelt.
func TestNotesOnWhatIsNotDeclared(t *testing.T) {
	write(t, DefaultFile, `
topics: [{name: orders}]
hubs: [{name: clicks}]
subscriptions:
  - {name: fine, topic: ORDERS, pull: true}
  - {name: own, topic: yard-events, pull: true}
  - {name: fed, sourceHub: clicks, pull: true}
  - {name: near, topic: order, pull: true}
  - {name: far, sourceHub: payments, pull: true}
  - {name: into, topic: orders, hub: click}
  - {name: dead, topic: orders, pull: true, deadLetter: "hub:failures"}
policies:
  - {name: sender, hub: tills, rights: [send]}
  - {name: reader, hub: CLICKS, rights: [listen]}
functions:
  - {name: biller, hub: tills, endpoint: "https://billing.example.com"}
  - {name: shipper, hub: refunds, endpoint: "https://shipping.example.com"}
`)
	loaded, err := Load(Sources{})
	testkit.Must(t, err)
	want := []string{
		"eventyard.yaml:8:25: subscriptions[3].topic: order is not declared in this file; did you mean orders?",
		"eventyard.yaml:9:28: subscriptions[4].sourceHub: payments is not declared in this file: the subscription waits until the yard has a hub of that name",
		"eventyard.yaml:10:38: subscriptions[5].hub: click is not declared in this file; did you mean clicks?",
		"eventyard.yaml:11:57: subscriptions[6].deadLetter: failures is not declared in this file: the subscription is refused unless the yard has a hub of that name",
		"eventyard.yaml:13:25: policies[0].hub: tills is not declared in this file: the yard does not start unless it has a hub of that name",
	}
	for i, line := range []string{"16:25: functions[0].hub: tills", "17:26: functions[1].hub: refunds"} {
		want = slices.Insert(want, 4+i, "eventyard.yaml:"+line+" is not declared in this file: the yard does not start unless it has a hub of that name")
	}
	testkit.Slices(t, loaded.Presumed, []string{"tills", "refunds"}, "without which it does not start")
	if !slices.Equal(loaded.Notes, want) || len(loaded.Warnings) != 0 {
		t.Errorf("the notes are %q, the warnings %q", loaded.Notes, loaded.Warnings)
	}
}
