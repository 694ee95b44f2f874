package v1

import (
	"context"
	"net/http"
	"net/url"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/define"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/functions/poison/box"
	"github.com/eventyard/eventyard/internal/functions/runner"
)

// Functions runs functions and knows the circuits of all. *runner.Registry is one.
type Functions interface {
	Create(ctx context.Context, d runner.Definition) (runner.Function, error)
	Update(ctx context.Context, name string, change func(*runner.Definition) error) (runner.Function, error)
	List(ctx context.Context) ([]runner.Function, error)
	Show(ctx context.Context, name string) (runner.Function, error)
	Pause(ctx context.Context, name, by, reason string) (runner.Function, error)
	ResumeFunction(ctx context.Context, name, by string) (runner.Function, error)
	Delete(ctx context.Context, name string) error

	// EventCalls tells of the calls with one event that are remembered, and which nodes did not answer.
	EventCalls(ctx context.Context, q runner.CallQuery) (found runner.Calls, missing []string, err error)

	ListCircuits(ctx context.Context) ([]runner.Circuit, error)
	ShowCircuit(ctx context.Context, hub, group, function string) (runner.Circuit, error)
	CircuitHistory(ctx context.Context, hub, group, function string) (runner.CircuitHistory, error)
	OpenCircuit(ctx context.Context, hub, group, function, by, reason string) (runner.Circuit, error)
	CloseCircuit(ctx context.Context, hub, group, function, by, reason string) (runner.Circuit, error)
}

// Poison finds and redrives the events that functions could not handle. *box.Box is one.
type Poison interface {
	List(ctx context.Context, hub string, q box.Query) ([]box.Entry, error)
	Show(ctx context.Context, hub, id string) (box.Entry, error)
	Redrive(ctx context.Context, hub string, cfg box.RedriveConfig) (done, failed int, err error)
}

// Notices tells people. *notify.Service is one.
type Notices interface {
	Test(ctx context.Context, target string) error
}

var (
	_ Notices   = (*notify.Service)(nil)
	_ Functions = (*runner.Registry)(nil)
	_ Poison    = (*box.Box)(nil)
)

func (d *Handler) listFunctions(w http.ResponseWriter, r *http.Request) error {
	all, err := d.cfg.Functions.List(r.Context())
	if err != nil {
		return err
	}
	shown := make([]admin.Function, len(all))
	for i, f := range all {
		shown[i] = define.Show(f)
	}
	stats, err := d.wantsStats(r)
	if err == nil && stats {
		err = d.addFunctionStats(r.Context(), shown)
	}
	return answer(w, map[string][]admin.Function{"functions": shown}, err)
}

func (d *Handler) createFunction(w http.ResponseWriter, r *http.Request) error {
	var q admin.FunctionRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	var definition runner.Definition
	if err := define.Apply(q, &definition); err != nil {
		return err
	}
	f, err := d.cfg.Functions.Create(r.Context(), definition)
	if err != nil {
		return err
	}
	return created(w, "functions/"+url.PathEscape(f.Name), define.Show(f))
}

func (d *Handler) getFunction(w http.ResponseWriter, r *http.Request) error {
	f, err := d.cfg.Functions.Show(r.Context(), r.PathValue("function"))
	return answer(w, define.Show(f), err)
}

// updateFunction changes what is given. Hub and group are what a function is: its checkpoints and
// its circuit are theirs.
func (d *Handler) updateFunction(w http.ResponseWriter, r *http.Request) error {
	var q admin.FunctionRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Name != "" || q.Hub != "" || q.Group != "" {
		return badRequest("create another function, and delete this one", "name, hub and group of a function cannot be changed")
	}
	f, err := d.cfg.Functions.Update(r.Context(), r.PathValue("function"), func(d *runner.Definition) error { return define.Apply(q, d) })
	return answer(w, define.Show(f), err)
}

func (d *Handler) deleteFunction(w http.ResponseWriter, r *http.Request) error {
	return done(w, d.cfg.Functions.Delete(r.Context(), r.PathValue("function")))
}

func (d *Handler) pauseFunction(w http.ResponseWriter, r *http.Request) error {
	var q admin.CircuitRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	f, err := d.cfg.Functions.Pause(r.Context(), r.PathValue("function"), operator(r), q.Reason)
	return answer(w, define.Show(f), err)
}

func (d *Handler) resumeFunction(w http.ResponseWriter, r *http.Request) error {
	f, err := d.cfg.Functions.ResumeFunction(r.Context(), r.PathValue("function"), operator(r))
	return answer(w, define.Show(f), err)
}

// operator names who asks, for others to see who it was.
func operator(r *http.Request) string { return "operator (" + grantOf(r).Holder + ")" }

func (d *Handler) listCircuits(w http.ResponseWriter, r *http.Request) error {
	all, err := d.cfg.Functions.ListCircuits(r.Context())
	return answerList(w, "circuits", all, define.ShowCircuit, err)
}

func (d *Handler) getCircuit(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	c, err := d.cfg.Functions.ShowCircuit(r.Context(), query.Get("hub"), query.Get("group"), r.PathValue("function"))
	return answer(w, define.ShowCircuit(c), err)
}

func (d *Handler) openCircuit(w http.ResponseWriter, r *http.Request) error {
	return changeCircuit(w, r, d.cfg.Functions.OpenCircuit)
}

func (d *Handler) closeCircuit(w http.ResponseWriter, r *http.Request) error {
	return changeCircuit(w, r, d.cfg.Functions.CloseCircuit)
}

func changeCircuit(w http.ResponseWriter, r *http.Request,
	change func(ctx context.Context, hub, group, function, by, reason string) (runner.Circuit, error)) error {
	var q admin.CircuitRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	query := r.URL.Query()
	c, err := change(r.Context(), query.Get("hub"), query.Get("group"), r.PathValue("function"), operator(r), q.Reason)
	return answer(w, define.ShowCircuit(c), err)
}

// testNotice sends a notice now, so that the settings of mail are tried before they are needed.
func (d *Handler) testNotice(w http.ResponseWriter, r *http.Request) error {
	var q admin.NoticeTest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	err := d.cfg.Notices.Test(r.Context(), q.Target)
	if err != nil {
		err = &frame.Refusal{
			Status: http.StatusUnprocessableEntity, Code: "notice-failed", Title: "The notice could not be sent",
			Detail: frame.Words(err), Next: "look at the target, and at the settings notify.smtp of the yard (eventyard config doc)",
		}
	}
	return done(w, err)
}
