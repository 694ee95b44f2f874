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

	ListCircuits(ctx context.Context) ([]runner.Circuit, error)
	ShowCircuit(ctx context.Context, hub, group, function string) (runner.Circuit, error)
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

// withFunctions is for routes that need the runner, which a listener may do without.
func (d *Handler) withFunctions(serve handler) handler {
	if d.cfg.Functions != nil && d.cfg.Poison != nil && d.cfg.Notices != nil {
		return serve
	}
	return func(http.ResponseWriter, *http.Request) error {
		return &frame.Refusal{
			Status: http.StatusNotImplemented, Code: "no-functions", Title: "This yard runs no functions",
			Detail: "functions and circuits are not served here", Next: "ask another yard",
		}
	}
}

func (d *Handler) listFunctions(w http.ResponseWriter, r *http.Request) error {
	all, err := d.cfg.Functions.List(r.Context())
	if err != nil {
		return err
	}
	list := struct {
		Functions []admin.Function `json:"functions"`
	}{make([]admin.Function, len(all))}
	for i, f := range all {
		list.Functions[i] = define.Show(f)
	}
	return writeJSON(w, http.StatusOK, list)
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
	w.Header().Set("Location", "/api/v1/functions/"+url.PathEscape(f.Name))
	return writeJSON(w, http.StatusCreated, define.Show(f))
}

func (d *Handler) getFunction(w http.ResponseWriter, r *http.Request) error {
	f, err := d.cfg.Functions.Show(r.Context(), r.PathValue("function"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, define.Show(f))
}

// updateFunction changes what is given. Hub and group are what a function is: its checkpoints and its circuit are theirs.
func (d *Handler) updateFunction(w http.ResponseWriter, r *http.Request) error {
	var q admin.FunctionRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Name != "" || q.Hub != "" || q.Group != "" {
		return badRequest("create another function, and delete this one", "name, hub and group of a function cannot be changed")
	}
	f, err := d.cfg.Functions.Update(r.Context(), r.PathValue("function"), func(d *runner.Definition) error { return define.Apply(q, d) })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, define.Show(f))
}

func (d *Handler) deleteFunction(w http.ResponseWriter, r *http.Request) error {
	if err := d.cfg.Functions.Delete(r.Context(), r.PathValue("function")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Handler) pauseFunction(w http.ResponseWriter, r *http.Request) error {
	var q admin.CircuitRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	f, err := d.cfg.Functions.Pause(r.Context(), r.PathValue("function"), operator(r), q.Reason)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, define.Show(f))
}

func (d *Handler) resumeFunction(w http.ResponseWriter, r *http.Request) error {
	f, err := d.cfg.Functions.ResumeFunction(r.Context(), r.PathValue("function"), operator(r))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, define.Show(f))
}

// operator names who asks, for others to see who it was.
func operator(r *http.Request) string { return "operator (" + grantOf(r).Holder + ")" }

func (d *Handler) listCircuits(w http.ResponseWriter, r *http.Request) error {
	all, err := d.cfg.Functions.ListCircuits(r.Context())
	if err != nil {
		return err
	}
	list := struct {
		Circuits []admin.Circuit `json:"circuits"`
	}{make([]admin.Circuit, len(all))}
	for i, c := range all {
		list.Circuits[i] = define.ShowCircuit(c)
	}
	return writeJSON(w, http.StatusOK, list)
}

func (d *Handler) getCircuit(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	c, err := d.cfg.Functions.ShowCircuit(r.Context(), query.Get("hub"), query.Get("group"), r.PathValue("function"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, define.ShowCircuit(c))
}

func (d *Handler) openCircuit(w http.ResponseWriter, r *http.Request) error {
	return d.changeCircuit(w, r, d.cfg.Functions.OpenCircuit)
}

func (d *Handler) closeCircuit(w http.ResponseWriter, r *http.Request) error {
	return d.changeCircuit(w, r, d.cfg.Functions.CloseCircuit)
}

func (d *Handler) changeCircuit(w http.ResponseWriter, r *http.Request,
	change func(ctx context.Context, hub, group, function, by, reason string) (runner.Circuit, error)) error {
	var q admin.CircuitRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	query := r.URL.Query()
	c, err := change(r.Context(), query.Get("hub"), query.Get("group"), r.PathValue("function"), operator(r), q.Reason)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, define.ShowCircuit(c))
}

// testNotice sends a notice now, so that the settings of mail are tried before they are needed.
func (d *Handler) testNotice(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Target string `json:"target"`
	}
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if err := d.cfg.Notices.Test(r.Context(), q.Target); err != nil {
		return &frame.Refusal{
			Status: http.StatusUnprocessableEntity, Code: "notice-failed", Title: "The notice could not be sent",
			Detail: err.Error(), Next: "look at the target, and at the settings notify.smtp of the yard (eventyard config doc)",
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
