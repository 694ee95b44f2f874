package groups

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// R1: what the right to listen is enough for, all of it, written by hand.
func TestWhatListeningIsEnoughFor(t *testing.T) {
	const want = `
          nobody's  own  an older client's  left behind  another's
take      listen    listen  listen  listen  manage
renew     manage    listen  listen  manage  manage
release   listen    listen  listen  manage  manage
save      manage    listen  listen  manage  manage
put       listen    listen  listen  listen  manage
remove    manage    listen  listen  listen  manage
`
	names := [acts]string{"take", "renew", "release", "save", "put", "remove"}
	var got []string
	for a, row := range mayListen {
		line := []string{names[a]}
		for _, listen := range row {
			line = append(line, map[bool]string{true: "listen", false: "manage"}[listen])
		}
		got = append(got, strings.Join(line, " "))
	}
	for i, line := range strings.Split(strings.TrimSpace(want), "\n")[1:] {
		testkit.Equal(t, got[i], strings.Join(strings.Fields(line), " "), "row %d", i)
	}
}

// R1: whose a record is, by its secret and its age.
func TestWhoseARecordIs(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	long := now.Add(-time.Hour)
	bound := func(secret string, lasts time.Duration) bond {
		return Caller{Hash: HashOf(secret), Lasts: lasts}.bond()
	}
	me, older := Caller{Hash: HashOf("me")}, Caller{}
	tests := []struct {
		what    string
		by      Caller
		b       bond
		written time.Duration // ago
		up      time.Time
		want    whose
	}{
		{"mine", me, bound("me", time.Second), time.Hour, long, own},
		{"another's, just written", me, bound("you", time.Second), 0, long, anothers},
		{"another's, almost over", me, bound("you", time.Second), time.Second - time.Millisecond, long, anothers},
		{"another's, over", me, bound("you", time.Second), time.Second, long, abandoned},
		{"another's, over, but the yard has just come up", me, bound("you", time.Second), time.Hour, now, anothers},
		{"another's, without a time", me, bound("you", 0), AliveWithin - 1, long, anothers},
		{"another's, without a time, over", me, bound("you", 0), AliveWithin, long, abandoned},
		{"another's, by a clock that is a little ahead", me, bound("you", time.Second), -time.Second / 2, long, anothers},
		{"another's, before the clock was set back", me, bound("you", time.Second), -time.Hour, long, abandoned},
		{"another's, for ever", me, bound("you", math.MaxInt64), maxLasts, long, abandoned},
		{"without a secret", me, bound("", time.Second), 0, long, anybodys},
		{"to an older client another's", older, bound("you", time.Second), 0, long, anothers},
		{"to an older client left behind", older, bound("you", time.Second), time.Minute, long, abandoned},
		{"to an older client another older one's", older, bond{}, 0, long, anybodys},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, tt.b.judge(tt.by, now.Add(-tt.written), tt.up, now), tt.want)
		})
	}
	testkit.Equal(t, me.whoseEntry(nil, long, now), nobodys, "no entry")
	lease := leaseRecord{Owner: "x", Renewed: now, bond: bound("you", time.Minute)}
	mine, yours := &entryRecord{bond: bound("me", 0)}, &entryRecord{bond: bound("you", 0)}
	testkit.Equal(t, me.whoseLease(lease, nil, long, now), anothers, "a lease whose owner has no presence")
	testkit.Equal(t, me.whoseLease(lease, yours, long, now), anothers, "a lease whose owner is another")
	testkit.Equal(t, me.whoseLease(lease, mine, long, now), own, "a lease of an earlier life")
	testkit.Equal(t, older.whoseLease(lease, &entryRecord{}, long, now), anothers, "a lease whose owner has a presence without a secret")
	testkit.Equal(t, me.whoseLease(leaseRecord{Epoch: 3}, nil, long, now), nobodys, "a free lease")
}

// R1: an acquisition raises the epoch by one, whatever is asked for.
func TestEpochsRiseByOne(t *testing.T) {
	for _, tt := range []struct {
		had, asked int64
		owner      string
		epoch      int64
		act        act
		rises      bool
	}{
		{0, 1, "a", 1, actTake, true},
		{0, math.MaxInt64, "a", 1, actTake, true},
		{7, 8, "a", 8, actTake, true},
		{7, 1 << 40, "a", 8, actTake, true},
		{7, 7, "a", 7, actRenew, true},
		{7, 7, "", 7, actRelease, true},
		{7, 9, "", 7, actRelease, true},
		{7, 6, "", 6, actRelease, true},
		{math.MaxInt64 - 1, math.MaxInt64, "a", math.MaxInt64, actTake, true},
		{math.MaxInt64, math.MaxInt64, "a", math.MaxInt64, actRenew, true},
	} {
		t.Run(fmt.Sprintf("from %d to %d by %q", tt.had, tt.asked, tt.owner), func(t *testing.T) {
			l, act, rises := raised(leaseRecord{Epoch: tt.had, Owner: "a"}, processor.Lease{Owner: tt.owner, Epoch: tt.asked})
			got := fmt.Sprint(l.Epoch, act, rises)
			testkit.Equal(t, got, fmt.Sprint(tt.epoch, tt.act, tt.rises))
		})
	}
}
