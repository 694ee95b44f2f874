package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/parallel"
)

// groupsView is the list of a hub's groups.
type groupsView struct {
	admin.Hub
	Rows    []groupRow
	Pages   pager
	Kafka   []admin.KafkaGroup
	Command string
}

type groupRow struct {
	Name, ID  string
	Instances int
	Free      int // partitions that nobody owns
	Lag       int64
	// Unknown: it may not be looked at, or is not kept here.
	Unknown bool
}

var groupsPage = page{template: "groups", load: loadGroups}

func loadGroups(v *visit) (*screen, error) {
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	pages := pageOf(v, len(h.Groups))
	groups := h.Groups[pages.From:pages.To]
	view := groupsView{Hub: h, Pages: pages, Rows: make([]groupRow, len(groups)), Command: command("group", "create", h.Name, "NAME")}
	parallel.Each(len(groups), askedAtOnce, func(i int) {
		view.Rows[i] = groupRow{Name: groups[i], ID: "g" + strconv.Itoa(i)}
		o, err := v.api.Ownership(v.ctx, h.Name, groups[i], 0)
		if view.Rows[i].Unknown = err != nil; err == nil {
			view.Rows[i].Lag, view.Rows[i].Instances, view.Rows[i].Free = o.LagEvents, alive(o), free(o)
		}
	})
	view.Kafka = kafkaGroupsOf(v, h.Name)
	return hubScreen(v, h, "Groups", view), nil
}

// enough says how many instances its lag needs; none where nothing is behind.
func enough(instances int) string {
	if instances == 0 {
		return ""
	}
	return number(instances) + " would be enough for this lag"
}

func alive(o admin.Ownership) (n int) {
	for _, i := range o.Instances {
		if i.Alive {
			n++
		}
	}
	return n
}

func free(o admin.Ownership) (n int) {
	for _, p := range o.Partitions {
		if p.Owner == "" || !p.Alive {
			n++
		}
	}
	return n
}

// groupView is who owns what in a group, and how far each has come. // P6
type groupView struct {
	admin.Ownership
	Lanes    []lane
	Rows     []ownedRow
	Pages    pager
	Alive    int
	Moving   int
	Free     int // partitions without an owner, of a group that has instances
	Seconds  string
	Slowest  string
	Warning  string
	Blocked  string    // which owners are kept out; empty: none is
	Unknown  int       // partitions whose lag is not known
	Left     time.Time // when the last instance was seen; zero: that is not known
	Command  string
	Read     string // how to begin
	Checked  bool   // there are checkpoints to be moved
	Attended bool   // there is an instance
	Stays    bool   // it cannot be deleted
	Ribbon   *ribbon
	Figures  []figure
}

// defaultGroup is the one that every hub has.
const defaultGroup = "$Default"

// lane is an instance with its partitions.
type lane struct {
	Name, ID string
	Tone     int // 1 to 8; 0: none
	Chips    []chip
	Dead     bool
	Nobody   bool
	Started  time.Time
	Seen     time.Time
	Note     string
	More     string
	Hidden   int    // chips that there is no room for
	Forget   string // the form that forgets one that is dead; empty: there is nothing of it to forget
	// Had are the partitions of one that is gone, and Taken when the last of them had another owner.
	Had   string
	Taken time.Time
	// Foreign says how it reads, where the yard keeps no lease of it.
	Foreign string
	lag     int64
}

// chip is a partition at its owner's. Way is going or coming while it is handed over; free: nobody's.
type chip struct{ Partition, ID, Way string }

type ownedRow struct {
	admin.OwnedPartition
	Tone                         int
	Since, Renewed, Lag, Seconds string
	At, End                      string // the checkpoint, and the last event
	Offset                       string // that of the checkpoint
	Ring                         ring
	State                        rowState
}

var groupPage = page{
	template: "group", load: loadGroup,
	watch: func(ctx context.Context, v *visit, wake func()) {
		for _, err := range v.api.WatchOwnership(ctx, v.name("hub"), v.name("group"), 0, nil) {
			if err != nil {
				return // the clock goes on, and says what is wrong
			}
			wake()
		}
	},
}

func loadGroup(v *visit) (*screen, error) {
	o, err := v.api.Ownership(v.ctx, v.name("hub"), v.name("group"), 0)
	if err != nil {
		return nil, err
	}
	blocked, warning := blocked(o), plainReaders(o)
	history := v.history(o)
	o, foreign := foreigners(o)
	tones := tonesOf(o.Instances, history.Spans)
	view := newGroupView(o, pageOf(v, len(o.Partitions)), tones, v.now)
	view.Blocked, view.Warning = blocked, warning
	view.addStates(history, foreign, v.now)
	shown := make([]string, len(view.Rows))
	for i, row := range view.Rows {
		shown[i] = row.Partition
	}
	view.Ribbon = newRibbon(history, shown, tones, v.now)
	series := v.series(admin.SeriesQuery{Of: []string{"lag-seconds", "lag", "read"}, Hub: o.Hub, Group: o.Group})
	view.Figures = groupFigures(view, v.window(), series, v.now)
	s := &screen{Title: o.Group, Section: "hubs", Guide: "groups", View: view, State: view.sentence()}
	s.Crumbs = []crumb{{"Hubs", at("hubs")}, {o.Hub, at("hubs", o.Hub)}, {"Groups", at("hubs", o.Hub, "groups")}, {Name: o.Group}}
	return s, nil
}

// addStates adds the small states: what the history says, and what is odd about single partitions.
func (g *groupView) addStates(history admin.GroupHistory, foreign map[string]string, now time.Time) {
	left := leftOf(history)
	for _, at := range left {
		if at.After(g.Left) {
			g.Left = at
		}
	}
	remember(g.Lanes, history)
	for i := range g.Lanes {
		g.Lanes[i].Foreign = foreign[g.Lanes[i].Name]
	}
	for i := range g.Rows {
		g.Rows[i].State = stateOf(g.Rows[i].OwnedPartition, foreign, left[g.Rows[i].Partition], now)
	}
}

// groupFigures are the four that tell most of a group.
func groupFigures(view groupView, w window, series []admin.Series, now time.Time) []figure {
	behind := figure{ID: "behind", Name: "Behind", Value: orWord(view.Seconds, "?"), Hint: "not known", Spark: w.spark("spark-behind", "in", series, "lag-seconds", now)}
	if view.Slowest != "" {
		behind.Hint = "slowest: partition " + view.Slowest
	}
	read := figure{ID: "read", Name: "Read", Value: "–", Unit: "/s", Hint: "by its readers", Spark: w.spark("spark-read", "out", series, "read", now)}
	if s := lately(series, now); s["read"] != nil {
		read.Value = rateOf(s["read"])
		if view.Alive > 1 {
			read.Hint = rate(*s["read"]/float64(view.Alive)) + "/s an instance"
		}
	}
	lag := figure{Value: number(view.LagEvents), Hint: "in " + plural(len(view.Partitions), "partition", "partitions")}
	switch {
	case view.Unknown > 0 && view.Unknown == len(view.Partitions):
		lag.Value, lag.Hint = "?", "not known"
	case view.Unknown > 0:
		lag.Hint = "not known of " + plural(view.Unknown, "partition", "partitions")
	}
	return []figure{
		behind,
		{ID: "lag", Name: "Events behind", Value: lag.Value, Hint: lag.Hint, Spark: w.spark("spark-lag", "in", series, "lag", now)},
		read,
		{ID: "alive", Name: "Instances", Value: number(view.Alive), Unit: "alive", Hint: enough(view.Recommended.Instances)},
	}
}

func newGroupView(o admin.Ownership, pages pager, tones map[string]int, now time.Time) groupView {
	view := groupView{
		Ownership: o, Pages: pages, Alive: alive(o), Lanes: lanesOf(o, tones, now),
		Command: command("group", "show", o.Hub, o.Group), Read: command("read", o.Hub, "--group", o.Group, "--follow"),
	}
	view.Unknown = unknownLags(o)
	view.Attended, view.Stays = len(o.Instances) > 0, strings.EqualFold(o.Group, defaultGroup)
	slowest := -1.
	for i, p := range o.Partitions {
		if p.Next != "" && p.Next != p.Owner {
			view.Moving++
		}
		view.Checked = view.Checked || p.Checkpoint != nil
		if p.LagSeconds != nil && *p.LagSeconds > slowest {
			slowest = *p.LagSeconds
			view.Seconds, view.Slowest = span(seconds(slowest)), p.Partition
		}
		if i >= pages.From && i < pages.To {
			view.Rows = append(view.Rows, newOwnedRow(p, tones, now))
		}
	}
	if view.Attended {
		view.Free = free(o)
	}
	return view
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// tonesOf gives each instance one of eight colours, and each that owned a partition lately.
func tonesOf(instances []admin.Instance, spans []admin.OwnershipSpan) map[string]int {
	var ids []string
	for _, in := range instances {
		ids = append(ids, in.ID)
	}
	for _, s := range spans {
		ids = append(ids, s.Owner)
	}
	slices.Sort(ids)
	tones := map[string]int{}
	for i, id := range slices.Compact(ids) {
		tones[id] = i%8 + 1
	}
	return tones
}

// lanesOf puts partitions beside their owners: those that live first, then what nobody has.
func lanesOf(o admin.Ownership, tones map[string]int, now time.Time) []lane {
	lanes := make([]lane, 0, len(o.Instances)+1)
	at := map[string]int{}
	instances := slices.Clone(o.Instances)
	slices.SortFunc(instances, func(a, b admin.Instance) int {
		return cmp.Or(-compareBool(a.Alive, b.Alive), strings.Compare(a.ID, b.ID))
	})
	for i, in := range instances {
		l := lane{Name: in.ID, ID: "lane" + strconv.Itoa(i), Tone: tones[in.ID], Dead: !in.Alive}
		if in.Started != nil {
			l.Started = in.Started.Time
		}
		if in.Seen != nil {
			l.Seen = in.Seen.Time
		}
		if in.Present && !in.Alive {
			l.Forget = forgetPath(o.Hub, o.Group, in.ID)
		}
		at[in.ID] = len(lanes)
		lanes = append(lanes, l)
	}
	nobody := lane{Name: "nobody", ID: "nobody", Nobody: true}
	for _, p := range o.Partitions {
		id, owner := "chip-"+p.Partition, &nobody
		if i, ok := at[p.Owner]; ok && p.Owner != "" {
			owner = &lanes[i]
		}
		c := chip{Partition: p.Partition, ID: id}
		switch next, asked := at[p.Next]; {
		case owner.Nobody:
			c.Way = "free"
		case asked && p.Next != "" && p.Next != p.Owner:
			c.Way = "going"
			lanes[next].Chips = append(lanes[next].Chips, chip{Partition: p.Partition, ID: id + "-next", Way: "coming"})
		}
		owner.Chips = append(owner.Chips, c)
		if p.LagEvents != nil {
			owner.lag += *p.LagEvents
		}
	}
	if len(nobody.Chips) > 0 && len(o.Instances) > 0 {
		lanes = append(lanes, nobody)
	}
	for i := range lanes {
		lanes[i].note(now)
		lanes[i].shorten(max(chipsShown/len(lanes), leastChips))
	}
	return lanes
}

// chipsShown is how many partitions all lanes have room for, and leastChips each; the table has all.
const chipsShown, leastChips = 64, 8

// shorten leaves of a long lane those that move, and as many others as there is room for.
func (l *lane) shorten(room int) {
	for _, c := range l.Chips {
		if c.moves() {
			room--
		}
	}
	all := len(l.Chips)
	l.Chips = slices.DeleteFunc(l.Chips, func(c chip) bool {
		if c.moves() {
			return false
		}
		room--
		return room < 0
	})
	l.Hidden = all - len(l.Chips)
}

func (c chip) moves() bool { return c.Way == "going" || c.Way == "coming" }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// note says at the lane's end how its instance does.
func (l *lane) note(now time.Time) {
	owned := 0
	var going []string
	for _, c := range l.Chips {
		if c.Way != "coming" {
			owned++
		}
		if c.Way == "going" {
			going = append(going, c.Partition)
		}
	}
	coming := len(l.Chips) - owned
	switch {
	case l.Nobody:
		l.Note, l.More = plural(owned, "partition", "partitions"), "without an owner"
	case l.Dead:
		l.Note = "gone"
		if !l.Seen.IsZero() {
			l.More = "not seen for " + span(now.Sub(l.Seen).Truncate(time.Second))
		}
	case len(going) > 0:
		l.Note, l.More = "hands over "+strings.Join(going[:min(len(going), 3)], ", "), "ends its calls, and saves"
		if len(going) > 3 {
			l.Note = "hands over " + number(len(going))
		}
	case coming > 0:
		l.Note, l.More = plural(coming, "comes", "come"), plural(owned, "partition", "partitions")+", "+number(l.lag)+" behind"
	default:
		l.Note, l.More = plural(owned, "partition", "partitions"), number(l.lag)+" behind"
	}
}

func newOwnedRow(p admin.OwnedPartition, tones map[string]int, now time.Time) ownedRow {
	row := ownedRow{OwnedPartition: p, Tone: tones[p.Owner], Lag: "?", Seconds: "?", At: "–", Offset: "–", End: "–"}
	if p.LagEvents != nil {
		row.Lag = number(*p.LagEvents)
	}
	if p.Last >= 0 {
		row.End = number(p.Last)
	}
	if p.Renewed != nil {
		row.Renewed = span(now.Sub(p.Renewed.Time).Truncate(time.Second)) + " ago"
		row.Ring = newRing(p.Renewed.Time, now)
	}
	if p.LagSeconds != nil {
		row.Seconds = span(seconds(*p.LagSeconds))
	}
	if p.Checkpoint != nil && p.Checkpoint.Sequence != nil {
		row.At, row.Offset = number(*p.Checkpoint.Sequence), orWord(p.Checkpoint.Offset, "–")
	} else if p.Checkpoint != nil {
		row.At = p.Checkpoint.Offset
	}
	return row
}

// plainReaders warns of readers without an epoch beside an owner: they see what it sees.
func plainReaders(o admin.Ownership) string {
	var where []string
	for _, p := range o.Partitions {
		for _, r := range p.Readers {
			if p.Owner != "" && r.Epoch == nil {
				where = append(where, p.Partition)
				break
			}
		}
	}
	if len(where) == 0 {
		return ""
	}
	return "Somebody reads beside the owner, without an epoch, in partition " + strings.Join(where, ", ") + "."
}

// sentence is how the group is, as it is read aloud: without what changes at each step of a rebalance.
func (g groupView) sentence() string {
	instances := plural(g.Alive, "instance", "instances") + " alive, "
	switch {
	case !g.Attended:
		return "No instance reads this group."
	case g.Free > 0:
		return instances + "some partitions have no owner."
	case g.Moving > 0:
		return instances + "some partitions are being handed over."
	}
	return instances + "each partition has an owner."
}
