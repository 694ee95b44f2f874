package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

const doctorHelp = `Check whether a yard can run here, and whether the data of one is sound: addresses,
certificates, disk space, permissions, how fast the disk syncs, the lock, and the
integrity of all that is stored. It changes nothing, and ends with code 1 if it finds a
problem.

It takes the flags of serve and looks at what serve would use. Where no data folder is named,
and a yard in development runs at the address of HTTP, it looks at that yard's. While a yard
runs on the data folder, the integrity of its data cannot be checked.`

// quickBytes is how much of events is read through without --deep: some seconds' worth.
const quickBytes = 1 << 30

// doctorCommand is `eventyard doctor`.
type doctorCommand struct{ *cli }

func (c doctorCommand) command() *cobra.Command {
	var deep bool
	var form output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check addresses, disk and the integrity of the data",
		Long:  doctorHelp,
		Example: `  eventyard doctor
  eventyard doctor --data /var/lib/eventyard --deep`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := c.loadConfig(cmd)
		if err != nil {
			return err
		}
		d := &doctor{cfg: cfg, deep: deep, named: cmd.Flags().Changed("data") || cfg.Data != config.Default().Data, progress: newProgress(c.stderr)}
		d.findYard(cmd.Context())
		for _, listener := range cfg.Listeners() {
			d.examineListener(cmd.Context(), listener)
		}
		inside := cfg.Cluster.Bundle != ""
		onDisk := cfg.Engine == "disk" && !inside
		if onDisk || cfg.TLS.CertFile != "" { // nodes that share a yard make their own as they start
			d.examineCertificates()
		}
		if onDisk {
			if d.examineFolder() {
				d.examineSpace()
				d.examineSync()
			}
			d.examineData(cmd.Context())
		} else if inside {
			d.examineBrokers()
			if d.examineFolder() {
				d.examineSpace()
				d.examineSync()
			}
			d.examinePeer(cmd.Context())
		} else {
			d.examineBrokers()
			d.examineServers(cmd.Context())
		}
		d.progress.clear()
		if cmd.Context().Err() != nil {
			return errInterrupted
		}
		return c.printFindings(form, d.findings)
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read all events, also where there are more than "+quantity.FormatSize(quickBytes))
	form.addTo(cmd)
	addConfigFlags(cmd)
	return cmd
}

// finding is one thing that was looked at.
type finding struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Detail string `json:"detail"`
	// Next is what to try, where there is something wrong.
	Next string `json:"next,omitempty"`
}

type status string

const (
	fine    status = "ok"
	skipped status = "skipped"
	warning status = "warning"
	problem status = "problem"
)

// doctor gathers findings.
type doctor struct {
	cfg      config.Config
	deep     bool
	named    bool // somebody has said which data folder is meant
	progress *progress
	findings []finding
}

func (d *doctor) note(check string, s status, next, format string, args ...any) {
	d.findings = append(d.findings, finding{check, s, fmt.Sprintf(format, args...), next})
}

// examineData looks at what is stored.
func (d *doctor) examineData(ctx context.Context) {
	look := server.Inspection{DataDir: d.cfg.Data, Secrets: server.Secrets(d.cfg.Secrets), MaxLogBytes: quickBytes, Progress: func(done, total int64) {
		d.progress.show(func() string {
			return fmt.Sprintf("reading events: %s of %s", roughBytes(done), roughBytes(total))
		})
	}}
	if d.deep {
		look.MaxLogBytes = 0
	}
	found, err := server.Inspect(ctx, look)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.note("data", fine, "", "nothing is stored yet")
	case errors.Is(err, server.ErrForeign), errors.Is(err, server.ErrNewerData), errors.Is(err, server.ErrRestoring):
		d.note("data", problem, nextFor(err), "%v", err)
	case err != nil:
		d.note("data", problem, "see whether the folder can be read", "%v", err)
	case found.InUse:
		d.note("lock", fine, "", "a yard holds it")
		d.note("data", skipped, "stop the yard to check its data", "a yard is running on this folder, so its data was not checked")
	default:
		d.note("lock", fine, "", "no yard is running on this folder")
		d.judgeMeta(found)
		d.judgeKey(found)
		d.judgeLog(found)
		d.judgeForeign(found)
	}
}

// examineServers looks at how the servers are set that keep the data.
func (d *doctor) examineServers(ctx context.Context) {
	found, err := server.Inspect(ctx, server.Inspection{Engine: d.cfg.EngineURL()})
	if err != nil {
		d.note("servers", problem, "see whether most of them run, and what lets in to them", "%v", err)
		return
	}
	for _, p := range found.Problems {
		d.note("servers", problem, "", "%s", p)
	}
	for _, w := range found.Warnings {
		d.note("servers", warning, "", "%s", w)
	}
	if len(found.Problems) == 0 {
		d.note("servers", fine, "", "those that were asked can keep a yard: %s", strings.Join(found.Servers, ", "))
	}
}

// endsSoon is how long before their end bundles are worth a word: all nodes have to be stopped for new ones.
const endsSoon = 180 * 24 * time.Hour

// examinePeer looks at the bundle, and at who answers of the other peers.
func (d *doctor) examinePeer(ctx context.Context) {
	peer, err := peerConfig(d.cfg)
	if err != nil {
		d.note("bundle", problem, nextFor(err), "%v", err)
		return
	}
	what := "one of"
	if !peer.Bundle.HasServer() {
		what = "a node beside"
	}
	d.note("bundle", fine, "", "it is that of %s of yard %s, %s %d peers", peer.Bundle.Node(), peer.Bundle.Yard(), what, len(peer.Bundle.Peers()))
	if ends := peer.Bundle.Ends(); time.Until(ends) < endsSoon {
		d.note("bundle", warning, "make new bundles for all peers with: eventyard cluster init --renew "+d.cfg.Cluster.Bundle, "its certificate ends at %s", showTime(ends))
	}
	found, err := server.Inspect(ctx, server.Inspection{DataDir: d.cfg.Data, Peer: peer})
	if err != nil {
		d.note("peer", problem, nextFor(err), "%v", err)
		return
	}
	for _, p := range found.Problems {
		d.note("peer", problem, "", "%s", p)
	}
	for _, w := range found.Warnings {
		d.note("peer", warning, "", "%s", w)
	}
	running := "does not run here"
	if found.InUse {
		running = "runs here"
	}
	if !peer.Bundle.HasServer() {
		running = "has no server"
	}
	answer := "none of the others answers"
	if len(found.Servers) > 0 {
		answer = "of the others there answer: " + strings.Join(found.Servers, ", ")
	}
	d.note("peer", fine, "", "%s %s; %s", peer.Bundle.Node(), running, answer)
}

func (d *doctor) judgeMeta(found server.Findings) {
	switch {
	case errors.Is(found.Meta, server.ErrMetaLost):
		d.note("meta", problem, nextForMetaLost, "%v", found.Meta)
	case found.Meta != nil:
		d.note("meta", problem, "restore meta.db from a copy, or keep the folder and ask for help; the events themselves are in log/", "%v", found.Meta)
	default:
		d.note("meta", fine, "", "hub definitions are sound")
	}
}

// judgeKey tells of a key without which the yard does not start, however sound its data is.
func (d *doctor) judgeKey(found server.Findings) {
	switch {
	case found.Meta != nil:
	case found.Key != nil:
		d.note("key", problem, nextForKey(found.Key), "%v", found.Key)
	default:
		d.note("key", fine, "", "the secret key opens what is sealed with it")
	}
}

// nextForKey tells a key that is lost from one that cannot be read here and now.
func nextForKey(err error) string {
	switch {
	case errors.Is(err, server.ErrKeyLost), errors.Is(err, server.ErrUnknownKey):
		return "look for a copy of secret.key: without it access keys, signing keys and passwords cannot be read; events can"
	case errors.Is(err, fs.ErrPermission):
		return "run this as the user that runs the yard, or give the file to that user: chown USER FILE, chmod 600 FILE"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path that --secrets-key-file names"
	}
	return "mend that where the key comes from: secret.key in the data folder, --secrets-key-file or --secrets-key-command; nothing is lost"
}

func (d *doctor) judgeLog(found server.Findings) {
	switch {
	case !found.LogRead:
		d.note("events", skipped, "read them with: eventyard doctor --deep", "there are %s of events", roughBytes(found.LogBytes))
	case len(found.Problems) > 0:
		for _, p := range found.Problems {
			d.note("events", problem, "the events around it can still be read; restore the file from a copy if you have one", "%s", p)
		}
	default:
		d.note("events", fine, "", "%s in %s are sound (%s)", counted(found.Events, "event"),
			counted(found.Partitions, "partition"), roughBytes(found.LogBytes))
	}
}

// mostNamed is how many foreign files are named.
const mostNamed = 5

func (d *doctor) judgeForeign(found server.Findings) {
	if len(found.Foreign) == 0 {
		return
	}
	named := found.Foreign
	more := ""
	if len(named) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(named)-mostNamed)
		named = named[:mostNamed]
	}
	d.note("foreign", warning, "move them elsewhere if nobody needs them here", "files that are not the yard's: %s%s", strings.Join(named, ", "), more)
}

func (c doctorCommand) printFindings(form output, findings []finding) error {
	number := map[status]int{}
	for _, f := range findings {
		number[f.Status]++
	}
	if form == asJSON {
		err := writeJSON(c.stdout, struct {
			OK       bool      `json:"ok"`
			Findings []finding `json:"findings"`
		}{number[problem] == 0, findings})
		if err != nil {
			return err
		}
	} else {
		p := newPaint(c.stdout)
		colour := map[status]func(string) string{fine: p.green, skipped: p.yellow, warning: p.yellow, problem: p.red}
		for _, f := range findings {
			fmt.Fprintf(c.stdout, "%s  %-8s %s\n", colour[f.Status](fmt.Sprintf("%-7s", f.Status)), f.Check, f.Detail)
			if f.Next != "" {
				fmt.Fprintf(c.stdout, "%18s%s\n", "", f.Next)
			}
		}
		verdict := "no problems found"
		if number[problem] > 0 {
			verdict = counted(number[problem], "problem") + " found"
		} else if number[warning] > 0 {
			verdict = counted(number[warning], "warning") + ", no problems"
		}
		if err := c.printf("%s\n", verdict); err != nil {
			return err
		}
	}
	if number[problem] > 0 {
		return errReported
	}
	return nil
}
