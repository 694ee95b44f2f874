package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// functionsView is the list of functions, the yard's and those of programs elsewhere.
type functionsView struct {
	Rows    []functionRow
	Pages   pager
	Command string
}

type functionRow struct {
	Name, ID, Hub, Group, Link string
	Tone, State                string
	Lag                        *int64
	Failures                   int
	Yard                       bool
}

var functionsPage = page{template: "functions", load: loadFunctions}

func loadFunctions(v *visit) (*screen, error) {
	functions, err := v.api.Functions(v.ctx)
	if err != nil {
		return nil, err
	}
	circuits, err := v.api.Circuits(v.ctx)
	if err != nil {
		return nil, err
	}
	rows := functionRows(functions, circuits)
	pages := pageOf(v, len(rows))
	view := functionsView{Rows: rows[pages.From:pages.To], Pages: pages, Command: command("function", "create", "NAME", "--hub", "HUB", "--endpoint", "URL")}
	return &screen{Title: "Functions", Section: "functions", Crumbs: []crumb{{Name: "Functions"}}, View: view}, nil
}

func functionRows(functions []admin.Function, circuits []admin.Circuit) []functionRow {
	var rows []functionRow
	for _, f := range functions {
		rows = append(rows, functionRow{Name: f.Name, Hub: f.Hub, Group: f.Group, Link: at("functions", f.Name), State: f.State, Lag: f.Lag, Failures: f.Failures, Yard: true})
	}
	for _, c := range circuits {
		if !c.Yard {
			rows = append(rows, functionRow{Name: c.Function, Hub: c.Hub, Group: c.Group, Link: circuitPath(refOfCircuit(c)), State: c.State, Lag: c.Lag, Failures: c.Failures})
		}
	}
	slices.SortStableFunc(rows, func(a, b functionRow) int { return strings.Compare(a.Name, b.Name) })
	for i := range rows {
		rows[i].ID, rows[i].Tone = "f"+strconv.Itoa(i), toneOfState(rows[i].State)
	}
	return rows
}

func refOfCircuit(c admin.Circuit) admin.CircuitRef {
	return admin.CircuitRef{Function: c.Function, Hub: c.Hub, Group: c.Group}
}

// circuitPath is the page of a circuit, or of something about it.
func circuitPath(r admin.CircuitRef, rest ...string) string {
	return with(at(append([]string{"circuits", r.Function}, rest...)...), "hub", r.Hub, "group", r.Group)
}

// toneOfState is the colour of a function's state, or of a circuit's.
func toneOfState(state string) string {
	switch state {
	case "running", "closed":
		return "good"
	case "open", "failing":
		return "bad"
	}
	return "odd"
}

// functionView is a function with its circuit, or the circuit alone of one that runs elsewhere.
type functionView struct {
	Name, Hub, Group string
	State, Tone      string
	Circuit          admin.CircuitState
	Opened           time.Time
	Function         *admin.Function // nil: it runs elsewhere
	Lag              *int64
	Failures         int
	Instances        []instanceRow
	Errors           []errorRow
	Stopped          bool
	Sentence         string
	Paths            map[string]string
	Poison           []admin.PoisonEvent
	PoisonHub        string
	Settings         []pair
	Tried            string // the page of the event that is tried; empty: it is not known which
	Behind           string
	Chart            *chart
	Timeline         *timeline
}

type instanceRow struct {
	Name     string
	Failures int64
	Width    float64
}

// errorRow is an error, and how often it was.
type errorRow struct {
	Text        string
	Times       int
	Partitions  []string
	First, Last time.Time
}

var functionPage = page{template: "function", load: loadFunction}

func loadFunction(v *visit) (*screen, error) {
	f, err := v.api.Function(v.ctx, v.name("function"))
	if err != nil {
		return nil, err
	}
	c, err := v.api.Circuit(v.ctx, admin.CircuitRef{Function: f.Name, Hub: f.Hub, Group: f.Group})
	if err != nil && !notThere(err) { // before its first failure it may have none
		return nil, err
	}
	c.CircuitState, c.Hub = f.Circuit, f.Hub
	view := newFunctionView(c)
	view.Name, view.Hub, view.Group, view.Function, view.Lag, view.Failures = f.Name, f.Hub, f.Group, &f, f.Lag, f.Failures
	view.State, view.Tone, view.Settings = f.State, toneOfState(f.State), settingsOf(f)
	if f.OldestSeconds != nil {
		view.Behind = span(seconds(*f.OldestSeconds))
	}
	view.Stopped = view.Stopped || f.State == "paused"
	view.Sentence = view.sentence()
	view.Timeline = v.timeline(admin.CircuitRef{Function: f.Name, Hub: f.Hub, Group: f.Group}, f.Breaker)
	view.Chart = v.flow(v.series(admin.SeriesQuery{Of: []string{"calls", "failed-calls"}, Function: f.Name}), marksOf(v.happened(""), "circuits", f.Name))
	for _, what := range []string{"resume", "hold", "delete", "redrive", "notice", "poison"} {
		view.Paths[what] = at("functions", f.Name, what)
	}
	if isHub(f.Poison) {
		view.PoisonHub = f.Poison
		if view.Poison, err = v.api.Poison(v.ctx, f.Poison, admin.PoisonQuery{Function: f.Name, Max: deadShown}); err != nil && !notThere(err) && !lacksRight(err) {
			return nil, err
		}
	}
	return &screen{Title: f.Name, Section: "functions", Crumbs: []crumb{{"Functions", at("functions")}, {Name: f.Name}}, View: view, Tabs: functionTabs(f, "Function"), State: view.Name + " is " + view.State + "."}, nil
}

// isHub tells whether poison goes to a hub, where it can be listed.
func isHub(poison string) bool {
	return poison != "" && poison != "none" && !strings.HasPrefix(poison, "topic:")
}

var circuitPage = page{template: "function", load: func(v *visit) (*screen, error) {
	c, err := v.api.Circuit(v.ctx, v.circuitRef())
	if err != nil {
		return nil, err
	}
	view := newFunctionView(c)
	view.Timeline = v.timeline(refOfCircuit(c), "")
	view.Paths["resume"], view.Paths["hold"] = circuitPath(refOfCircuit(c), "close"), circuitPath(refOfCircuit(c), "open")
	return &screen{Title: c.Function, Section: "functions", Crumbs: []crumb{{"Functions", at("functions")}, {Name: c.Function}}, View: view, State: "The circuit of " + c.Function + " is " + c.State + "."}, nil
}}

func (v *visit) circuitRef() admin.CircuitRef {
	q := v.r.URL.Query()
	return admin.CircuitRef{Function: v.name("function"), Hub: q.Get("hub"), Group: q.Get("group")}
}

func newFunctionView(c admin.Circuit) functionView {
	view := functionView{
		Name: c.Function, Hub: c.Hub, Group: c.Group, State: c.State, Tone: toneOfState(c.State), Circuit: c.CircuitState, Lag: c.Lag, Failures: c.Failures,
		Errors: groupErrors(c.Errors), Stopped: c.State != "" && c.State != "closed", Paths: map[string]string{},
	}
	if c.Since != nil {
		view.Opened = *c.Since
	}
	most := int64(1)
	for _, n := range c.Instances {
		most = max(most, n)
	}
	for _, name := range sorted(c.Instances) {
		n := c.Instances[name]
		view.Instances = append(view.Instances, instanceRow{name, n, 120 * float64(n) / float64(most)})
	}
	view.Sentence = view.sentence()
	if e := c.Trying; e != nil {
		view.Tried = at("hubs", c.Hub, "partitions", e.Partition, "events", strconv.FormatInt(e.Sequence, 10))
	}
	return view
}

// sentence says why a function stands still.
func (f functionView) sentence() string {
	switch {
	case !f.Stopped:
		return ""
	case f.State == "half-open" && f.Circuit.Trying != nil:
		return fmt.Sprintf("%s tries event %s of partition %s", orWord(f.Circuit.By, "One instance"), number(f.Circuit.Trying.Sequence), f.Circuit.Trying.Partition)
	case f.State == "half-open":
		return orWord(f.Circuit.By, "One instance") + " tries one event"
	case f.Circuit.Reason != "":
		return "Stopped: " + f.Circuit.Reason
	case f.Circuit.State == "open":
		return "Stopped after too many failures"
	}
	return "Held until somebody resumes it"
}

// groupErrors puts failures with the same words together, the most frequent first.
func groupErrors(failures []admin.Failure) []errorRow {
	at := map[string]int{}
	var rows []errorRow
	for _, f := range failures {
		i, known := at[f.Error]
		if !known {
			i = len(rows)
			at[f.Error] = i
			rows = append(rows, errorRow{Text: f.Error, First: f.At, Last: f.At})
		}
		r := &rows[i]
		r.Times++
		if f.At.Before(r.First) {
			r.First = f.At
		}
		if f.At.After(r.Last) {
			r.Last = f.At
		}
		if f.Partition != "" && !slices.Contains(r.Partitions, f.Partition) {
			r.Partitions = append(r.Partitions, f.Partition)
		}
	}
	slices.SortStableFunc(rows, func(a, b errorRow) int { return cmp.Compare(b.Times, a.Times) })
	return rows
}

func settingsOf(f admin.Function) []pair {
	pairs := []pair{
		{"Opens", f.Breaker}, {"Tries by itself", orWord(f.Probe, "no, it waits for you")}, {"Batch", number(f.Batch)},
		{"Retries", fmt.Sprintf("%d, after %s", f.Retries, f.RetryDelay)}, {"Timeout", f.Timeout}, {"Poison", f.Poison},
	}
	if f.Circuit.Incident != "" {
		pairs = append(pairs, pair{"Incident", f.Circuit.Incident})
	}
	if len(f.Notify) > 0 {
		pairs = append(pairs, pair{"Notices go to", strings.Join(f.Notify, ", ")})
	}
	return pairs
}

var createFunction = action{
	path: base + "new/function", calls: []string{"POST /api/v1/functions"},
	sheet: func(v *visit) (*sheet, error) {
		hubs, err := v.api.Hubs(v.ctx)
		if err != nil {
			return nil, err
		}
		s := &sheet{
			Title: "Create a function", About: "The yard calls a program with the events of a hub, tries again, and puts away what cannot be handled.", Back: at("functions"),
			Fields: []field{
				{Name: "name", Label: "Name", Kind: "text", Value: v.value("name", ""), Placeholder: "resize"},
				{Name: "hub", Label: "Events of", Kind: "select", Value: v.value("hub", "")},
				{Name: "endpoint", Label: "Endpoint", Kind: "text", Value: v.value("endpoint", ""), Placeholder: "http://127.0.0.1:9400/resize"},
				{Name: "group", Label: "Consumer group", Kind: "text", Value: v.value("group", ""), Placeholder: "that of its name", Hint: "It cannot be changed later: checkpoints belong to it.", Optional: true, More: true},
				{Name: "start", Label: "Begins at", Kind: "text", Value: v.value("start", ""), Placeholder: "earliest", Hint: "earliest, latest or a time, where a partition has no checkpoint.", Optional: true, More: true},
				{Name: "format", Label: "What is sent", Kind: "select", Value: v.value("format", ""), Options: []option{{"", "CloudEvents"}, {"eventhubs", "events as Event Hubs has them"}}, More: true},
				{Name: "headers", Label: "Headers of each call, one a line", Kind: "area", Value: "", Placeholder: "Authorization: Bearer …", Hint: "Their values are secrets, and are shown nowhere.", Optional: true, More: true},
				{Name: "target", Label: "Waiting events worth one instance", Kind: "number", Value: v.value("target", ""), Hint: "For who scales by the metrics.", Optional: true, More: true},
			},
			Buttons: []button{{"Create", "main", act}}, Command: command("function", "create", orWord(v.value("name", ""), "NAME"), "--hub", orWord(v.value("hub", ""), "HUB"), "--endpoint", "URL"),
		}
		for _, h := range hubs {
			s.Fields[1].Options = append(s.Fields[1].Options, option{h.Name, h.Name})
		}
		return s, nil
	},
	do: func(v *visit) (outcome, error) {
		r := admin.FunctionRequest{
			Name: strings.TrimSpace(v.r.PostFormValue("name")), Hub: v.r.PostFormValue("hub"), Group: strings.TrimSpace(v.r.PostFormValue("group")),
			Endpoint: v.filled("endpoint"), Start: v.filled("start"), Format: v.filled("format"),
		}
		var err error
		if r.Target, err = v.integer("target"); err != nil {
			return outcome{}, err
		}
		if r.Headers, err = linesOf(v.r.PostFormValue("headers")); err != nil {
			return outcome{}, err
		}
		f, err := v.api.CreateFunction(v.ctx, r)
		return outcome{to: at("functions", f.Name), done: "created"}, err
	},
}

var deleteFunction = action{
	path: base + "functions/{function}/delete", calls: []string{"DELETE /api/v1/functions/{function}"},
	sheet: func(v *visit) (*sheet, error) {
		name := v.name("function")
		return deletion("function", name, "It is stopped and deleted. Its group with its checkpoints, and its poison events, stay.", at("functions", name), command("function", "delete", name)), nil
	},
	do: func(v *visit) (outcome, error) {
		if err := v.typed(v.name("function")); err != nil {
			return outcome{}, err
		}
		return outcome{to: at("functions"), done: "deleted"}, v.api.DeleteFunction(v.ctx, v.name("function"))
	},
}

// heldHere is the reason that others read.
const heldHere = "held at the console"

var (
	holdFunction = action{
		path: base + "functions/{function}/hold", calls: []string{"POST /api/v1/functions/{function}/pause"},
		do: func(v *visit) (outcome, error) {
			_, err := v.api.PauseFunction(v.ctx, v.name("function"), heldHere)
			return outcome{to: at("functions", v.name("function")), done: "held"}, err
		},
	}
	resumeFunction = action{
		path: base + "functions/{function}/resume", calls: []string{"POST /api/v1/functions/{function}/resume"},
		do: func(v *visit) (outcome, error) {
			_, err := v.api.ResumeFunction(v.ctx, v.name("function"))
			return outcome{to: at("functions", v.name("function")), done: "resumed"}, err
		},
	}
	openCircuit = action{
		path: base + "circuits/{function}/open", calls: []string{"POST /api/v1/circuits/{function}/open"},
		do: func(v *visit) (outcome, error) {
			_, err := v.api.OpenCircuit(v.ctx, v.circuitRef(), heldHere)
			return outcome{to: circuitPath(v.circuitRef()), done: "held"}, err
		},
	}
	closeCircuit = action{
		path: base + "circuits/{function}/close", calls: []string{"POST /api/v1/circuits/{function}/close"},
		do: func(v *visit) (outcome, error) {
			_, err := v.api.CloseCircuit(v.ctx, v.circuitRef(), "resumed at the console")
			return outcome{to: circuitPath(v.circuitRef()), done: "resumed"}, err
		},
	}
)

var redrivePoison = action{
	path: base + "functions/{function}/redrive", calls: []string{"POST /api/v1/hubs/{hub}/poison/redrive"},
	sheet: func(v *visit) (*sheet, error) {
		f, err := v.api.Function(v.ctx, v.name("function"))
		if err != nil {
			return nil, err
		}
		n := "Its poison events"
		if isHub(f.Poison) {
			would, err := v.api.RedrivePoison(v.ctx, f.Poison, admin.PoisonRedriveRequest{Function: f.Name, DryRun: true})
			if err == nil {
				n = plural(would.Redriven, "poison event", "poison events")
			} else if !lacksRight(err) && !notThere(err) {
				return nil, err
			}
		}
		s := &sheet{
			Title: "Redrive poison events of " + f.Name, About: "They are published again to the hub that they came from, so that every group of it sees them once more.", Back: at("functions", f.Name),
			Note:    &note{Tone: "odd", Icon: "rotate-ccw", Text: n + " would be published again.", More: "Fix the program first: what it cannot handle is put away again."},
			Fields:  []field{{Name: "rate", Label: "At most per second", Kind: "number", Value: v.value("rate", ""), Placeholder: "no limit", Optional: true}},
			Buttons: []button{{"Redrive", "main", act}}, Command: command("poison", "redrive", f.Poison, "--function", f.Name),
		}
		return s, nil
	},
	do: func(v *visit) (outcome, error) {
		f, err := v.api.Function(v.ctx, v.name("function"))
		if err != nil {
			return outcome{}, err
		}
		if !isHub(f.Poison) {
			return outcome{}, wrongInput("What this function puts away goes to " + f.Poison + ", from where it cannot be redriven.")
		}
		rate, err := v.integer("rate")
		if err != nil {
			return outcome{}, err
		}
		r := admin.PoisonRedriveRequest{Function: f.Name}
		if rate != nil {
			r.Rate = *rate
		}
		done, err := redriveAllPoison(v, f.Poison, r)
		if err == nil && done.Failed > 0 {
			err = wrongInput(fmt.Sprintf("%s published again; %d could not be: %s", plural(done.Redriven, "event was", "events were"), done.Failed, strings.Join(done.Errors, "; ")))
		}
		return outcome{to: at("functions", f.Name), done: "redriven", n: done.Redriven}, err
	},
}

// redriveAllPoison asks on until no poison event is left but those that cannot be published.
func redriveAllPoison(v *visit, hub string, r admin.PoisonRedriveRequest) (total admin.PoisonRedriven, err error) {
	for {
		done, err := v.api.RedrivePoison(v.ctx, hub, r)
		total.Redriven, total.Failed, total.Errors = total.Redriven+done.Redriven, done.Failed, done.Errors
		if err != nil || !done.More {
			return total, err
		}
		r.Source = cmp.Or(r.Source, done.Hub)
	}
}
