package handler

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// K2, R1: requests of other nodes that may wait for long take a part of the places alone, so that there is one for what is
// answered at once.
func TestRequestsThatWaitLeaveRoom(t *testing.T) {
	y := newYard(t)
	asked := func(r kmsg.Request) bool {
		t.Helper()
		r.SetVersion(3)
		head := testkit.Value(json.Marshal(forwarded{Client: "app", Host: "there", Key: r.Key(), Version: 3}))(t)
		return len(testkit.Value(y.handler.Forwarded(t.Context(), r.AppendTo(append(head, '\n'))))(t)) > 0
	}
	sync, beat := kmsg.NewPtrSyncGroupRequest(), kmsg.NewPtrHeartbeatRequest()
	sync.Group, sync.MemberID, beat.Group, beat.MemberID = "g", "m", "g", "m"
	testkit.That(t, asked(sync), "there is room, and no answer")
	testkit.Equal(t, len(y.handler.waitingHere), 0, "places that are taken")
	for range maxWaitsHere {
		y.handler.waitingHere <- struct{}{}
	}
	testkit.That(t, !asked(sync), "it has waited although there is no room")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group = "g"
	testkit.That(t, !asked(join), "it has waited although there is no room")
	testkit.That(t, asked(beat), "what is answered at once is not")
	<-y.handler.waitingHere
	testkit.That(t, asked(sync), "there is room again, and no answer")
}
