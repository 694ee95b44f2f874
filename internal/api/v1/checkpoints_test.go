package v1

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

const checkpointsPath = "/api/v1/hubs/orders/groups/billing/checkpoints"

func (y *yard) checkpoints() (list admin.Checkpoints) {
	y.t.Helper()
	y.want(200, "GET", checkpointsPath, nil).json(y.t, &list)
	return list
}

// P7: checkpoints are listed by partition, without those that were only begun.
func TestCheckpointsAreListed(t *testing.T) {
	y := newYard(t)
	g, _, _ := y.owned(1)
	won, err := y.groups.Claim(t.Context(), g, []processor.Lease{{Partition: "1", Owner: "worker", Epoch: 1}})
	testkit.Must(t, err)
	_, err = y.groups.Begin(t.Context(), g, won[0])
	testkit.Must(t, err)
	list := y.checkpoints()
	if list.Hub != "orders" || list.Group != "billing" || list.HubCreated == "" || len(list.Checkpoints) != 1 {
		t.Fatalf("got %+v", list)
	}
	if c := list.Checkpoints[0]; c.Partition != "0" || *c.Sequence != 1 || c.Offset != "1" || c.Epoch != 3 || c.Updated == nil {
		t.Errorf("got %+v", c)
	}
}

// P7: an operator moves a checkpoint; while it is owned only by force, and the owner is told.
func TestCheckpointIsMoved(t *testing.T) {
	y := newYard(t)
	g, l, mine := y.owned(1)
	y.refused(409, "owned", "PUT", checkpointsPath+"/0", `{"to":{"earliest":true}}`)
	m := read[admin.Moved](t, y.want(200, "PUT", checkpointsPath+"/0", `{"to":{"earliest":true},"force":true}`))
	if *m.From.Sequence != 1 || *m.To.Sequence != -1 || m.To.Offset != "-1" {
		t.Errorf("moved %+v", m)
	}
	testkit.ErrorIs(t, testkit.Err(y.groups.Save(t.Context(), g, l, mine)), processor.ErrConflict,
		"the owner saved")
	l.Owner = ""
	_, err := y.groups.Claim(t.Context(), g, []processor.Lease{l})
	testkit.Must(t, err)
	for body, want := range map[string]int64{
		`{"to":{"latest":true}}`: 3, `{"to":{"sequence":2}}`: 2, `{"to":{"offset":"1"}}`: 1, `{"to":{"sequence":-1}}`: -1,
		`{"to":{"time":"2100-01-01T00:00:00Z"}}`: 3, `{"to":{"time":"2001-01-01T00:00:00+02:00"}}`: -1,
	} {
		m := read[admin.Moved](t, y.want(200, "PUT", checkpointsPath+"/0", body))
		if list := y.checkpoints(); *m.To.Sequence != want || *list.Checkpoints[0].Sequence != want {
			t.Errorf("%s moved to %+v, stored is %+v", body, m, list)
		}
	}
	y.want(200, "PUT", checkpointsPath+"/0", `{"to":{"sequence":2}}`)
	y.want(200, "PUT", checkpointsPath+"/0", `{"to":{"sequence":1},"dryRun":true}`)
	if got := *y.checkpoints().Checkpoints[0].Sequence; got != 2 {
		t.Error("a dry run has moved it")
	}
}

// P7: what cannot be done is refused, and says why.
func TestCheckpointMovesRefused(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	_, err := y.broker.CreateGroup(t.Context(), "orders", "billing")
	testkit.Must(t, err)
	for _, tt := range []struct {
		status           int
		kind, path, body string
	}{
		{404, "not-found", checkpointsPath + "/1", `{"to":{"latest":true}}`},
		{404, "not-found", "/api/v1/hubs/orders/groups/other/checkpoints/0", `{"to":{"latest":true}}`},
		{404, "not-found", "/api/v1/hubs/other/groups/billing/checkpoints/0", `{"to":{"latest":true}}`},
		{416, "position-out-of-range", checkpointsPath + "/0", `{"to":{"sequence":0}}`},
		{416, "position-out-of-range", checkpointsPath + "/0", `{"to":{"offset":"-2"}}`},
		{400, "invalid-record", checkpointsPath + "/0", `{"to":{"offset":"x"}}`},
		{400, "invalid-record", checkpointsPath + "/0", `{"to":{}}`},
		{400, "invalid-record", checkpointsPath + "/0", `{"to":{"earliest":true,"latest":true}}`},
		{400, "bad-request", checkpointsPath + "/0", `{"to":{"time":"yesterday"}}`},
		{400, "bad-request", checkpointsPath + "/0", `{"where":{}}`},
	} {
		t.Run(tt.path+" "+tt.body, func(t *testing.T) {
			y.in(t).refused(tt.status, tt.kind, "PUT", tt.path, tt.body)
		})
	}
	for body, says := range map[string]string{ // in the words of the API, not in those of the program
		`{"to":{"time":"yesterday"}}`: `"yesterday" is no time`, `{"to":{"time":5}}`: "a time is a JSON string", `{"force":1}`: `field "force" cannot be a JSON number: true or false is wanted`,
	} {
		testkit.Equal(t, y.refused(400, "bad-request", "PUT", checkpointsPath+"/0", body).Detail, says)
	}
	listener := y.policy("orders", "listener", auth.Listen)
	as := y.as(basic(listener.Name, listener.Primary))
	as.refused(403, "insufficient-rights", "PUT", checkpointsPath+"/0", `{"to":{"latest":true}}`)
	as.refused(403, "insufficient-rights", "POST", checkpointsPath, `{"checkpoints":[]}`)
	as.want(200, "GET", checkpointsPath, nil)
}

// P7: what is exported can be imported: into the same group, and into another.
func TestCheckpointsAreExportedAndImported(t *testing.T) {
	y := newYard(t)
	y.owned(1)
	exported := y.want(200, "GET", checkpointsPath, nil).body
	_, err := y.broker.CreateGroup(t.Context(), "orders", "copy")
	testkit.Must(t, err)
	other := "/api/v1/hubs/orders/groups/copy/checkpoints"
	var answer struct {
		DryRun bool          `json:"dryRun"`
		Moved  []admin.Moved `json:"moved"`
	}
	dry := strings.Replace(string(exported), "{", `{"dryRun":true,`, 1)
	y.want(200, "POST", other, dry).json(t, &answer)
	if !answer.DryRun || len(answer.Moved) != 1 || answer.Moved[0].From != nil || *answer.Moved[0].To.Sequence != 1 {
		t.Errorf("dry run: %+v", answer)
	}
	var list admin.Checkpoints
	if y.want(200, "GET", other, nil).json(t, &list); len(list.Checkpoints) != 0 {
		t.Errorf("the dry run wrote %+v", list)
	}
	y.want(200, "POST", other, string(exported)).json(t, &answer)
	if y.want(200, "GET", other, nil).json(t, &list); len(list.Checkpoints) != 1 || *list.Checkpoints[0].Sequence != 1 {
		t.Errorf("imported %+v", list)
	}
	y.refused(409, "owned", "POST", checkpointsPath, string(exported))
	y.want(200, "POST", checkpointsPath, strings.Replace(string(exported), "{", `{"force":true,`, 1))
}

// P7: an import is refused as a whole, and where it is of another hub.
func TestImportsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.owned(1)
		exported := string(y.want(200, "GET", checkpointsPath, nil).body)
		y.hub("other", 2)
		y.refused(400, "bad-request", "POST", "/api/v1/hubs/other/groups/$Default/checkpoints", exported)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
		time.Sleep(time.Millisecond) // by which the two are told apart
		_, err := y.broker.EnsureHub(t.Context(), broker.HubConfig{Name: "Orders", Partitions: 2}, []string{"billing"})
		testkit.Must(t, err)
		y.refused(400, "bad-request", "POST", checkpointsPath, exported) // another hub of that name

		y.send("orders", "0", "a", "b")
		y.refused(416, "position-out-of-range", "POST", checkpointsPath, `{"checkpoints":[{"partition":"0","sequence":1},{"partition":"1","sequence":1}]}`)
		y.refused(400, "bad-request", "POST", checkpointsPath, `{"checkpoints":[{"partition":"0","sequence":1},{"partition":"1"}]}`)
		y.refused(400, "invalid-record", "POST", checkpointsPath, `{"checkpoints":[{"partition":"0","sequence":1},{"partition":"0","sequence":0}]}`)
		if list := y.checkpoints(); len(list.Checkpoints) != 0 {
			t.Errorf("written: %+v", list)
		}
	})
}

// P7: an import has room for as many partitions as a hub may have.
func TestALargeImport(t *testing.T) {
	y := newYard(t)
	y.hub("orders", broker.MaxPartitions)
	_, err := y.broker.CreateGroup(t.Context(), "orders", "billing")
	testkit.Must(t, err)
	q := admin.Checkpoints{Hub: "ORDERS", Group: "billing"}
	for i := range broker.MaxPartitions {
		q.Checkpoints = append(q.Checkpoints, admin.Checkpoint{
			Partition: fmt.Sprint(i), Offset: "-1", Sequence: new(int64(-1)), Epoch: 3, HubID: strings.Repeat("h", 100), Updated: &admin.Time{Time: time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)},
		})
	}
	y.want(200, "POST", checkpointsPath, q)
	testkit.Equal(t, len(y.checkpoints().Checkpoints), broker.MaxPartitions, "checkpoints are stored")
}
