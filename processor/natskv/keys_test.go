package natskv

import (
	"regexp"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// FuzzToken wants every text to be one token that NATS takes, and to come back.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "0", "$Default", "a.b", "a*b>c", "größe", "=", "==", "a=2", "\x00\xff", "a b/c"} {
		f.Add(seed)
	}
	legal := regexp.MustCompile(`^[-_=a-zA-Z0-9]+$`)
	f.Fuzz(func(t *testing.T, name string) {
		if got := token(name); !legal.MatchString(got) || text(got) != name {
			t.Errorf("%q is token %q, and that is %q", name, got, text(got))
		}
	})
}

func TestHubsHaveNoCaseAndGroupsHave(t *testing.T) { // H1
	of := func(namespace, hub, group string) string {
		return folder(processor.Group{Namespace: namespace, Hub: hub, Group: group})
	}
	testkit.Equal(t, of("N", "Hub", "g"), of("n", "hub", "g"), "hubs that differ only in case are apart")
	testkit.Equal(t, of("n", "h", "$default"), of("n", "h", "$Default"),
		"the default group is not found whatever its case")
	if of("n", "h", "Billing") == of("n", "h", "billing") {
		t.Error("groups that differ in case are one")
	}
	if of("a.b", "c", "d") == of("a", "b.c", "d") {
		t.Error("dots in names run into each other")
	}
}

func TestAnAnswerOfAReplicaThatLagsIsNotTaken(t *testing.T) { // P3
	for name, one := range map[string]struct {
		header nats.Header
		want   error
	}{
		"as far as the leader": {nats.Header{"Status": {"204"}, "Nats-UpTo-Sequence": {"7"}, "Nats-Num-Pending": {"0"}}, nil},
		"further":              {nats.Header{"Status": {"204"}, "Nats-UpTo-Sequence": {"8"}, "Nats-Num-Pending": {"0"}}, nil},
		"not so far":           {nats.Header{"Status": {"204"}, "Nats-UpTo-Sequence": {"6"}, "Nats-Num-Pending": {"0"}}, errLags},
		"cut off":              {nats.Header{"Status": {"204"}, "Nats-UpTo-Sequence": {"7"}, "Nats-Num-Pending": {"1"}}, errMany},
		"without anything":     {nats.Header{"Status": {"404"}}, errLags},
		"with too much":        {nats.Header{"Status": {"413"}}, errMany},
		"of nobody":            {nats.Header{"Status": {"503"}}, nats.ErrNoResponders},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, ended(&nats.Msg{Header: one.header}, 7), one.want, "an answer %s", name)
		})
	}
	for _, header := range []nats.Header{{"Status": {"500"}}, {"Status": {"204"}}} {
		if ended(&nats.Msg{Header: header}, 7) == nil {
			t.Errorf("%v was taken", header)
		}
	}
}
