package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/spf13/cobra"
)

const listenHelp = `Be a webhook: answer the handshakes of Event Grid and of CloudEvents, and print each event that comes. For trying
things out, and for looking at what a receiver would get.

With --status every delivery is answered with that status, so that a yard, or Azure, takes this receiver
for one that is down (503), broken (500) or gone (404).

With --signing-key it refuses whatever is not signed with one of the keys, the handshakes too: the key has to be
the subscription's before that is created (eventyard subscription make-key). Azure signs nothing.`

func (c *cli) listenCommand() *cobra.Command {
	l := &listener{cli: c}
	cmd := &cobra.Command{
		Use:     "listen [ADDRESS]",
		Short:   "Run a webhook that prints what it receives",
		Long:    listenHelp,
		Example: "  eventyard listen 127.0.0.1:9000\n  eventyard listen 127.0.0.1:9000 --status 503",
		RunE: func(cmd *cobra.Command, args []string) error {
			address := "127.0.0.1:9000"
			if len(args) > 0 {
				address = args[0]
			}
			if l.status != 0 && (l.status < 200 || l.status > 599) {
				return usagef(cmd, "--status is 200 to 599")
			}
			for i, key := range l.keys {
				var err error
				if l.keys[i], err = readSecret(key); err != nil {
					return usagef(cmd, "--signing-key: %w", err)
				}
			}
			return l.run(cmd, address)
		},
	}
	cmd.Flags().IntVar(&l.status, "status", 0, "answer deliveries with this `status`; without it 200")
	cmd.Flags().StringArrayVar(&l.keys, "signing-key", nil, "refuse what is not signed with this `key`, whsec_… or whpk_…; @FILE reads it")
	cmd.Flags().BoolVar(&l.headers, "headers", false, "print the headers of each request, too")
	return cmd
}

// listener is a webhook for people to look at.
type listener struct {
	cli     *cli
	status  int
	keys    []string
	headers bool

	mu sync.Mutex // held while something is printed
}

func (l *listener) run(cmd *cobra.Command, address string) error {
	ctx := cmd.Context()
	receiver, err := grid.NewHandler(l.receive, grid.HandlerConfig{OnError: l.complain})
	if err != nil {
		return err
	}
	hook, err := l.insisting(receiver)
	if err != nil {
		return usagef(cmd, "--signing-key: %w", err)
	}
	if host, port, err := net.SplitHostPort(address); err != nil || !isPort(port) {
		return usagef(cmd, "%q is no address to listen at: write it like 127.0.0.1:9000, or %s:0 for any free port", address, cmp.Or(host, "127.0.0.1"))
	}
	at, err := net.Listen("tcp", address)
	if err != nil {
		return &advisedError{"listen at " + address + ": " + listenFault(err), "choose another address, like 127.0.0.1:0, which picks a free port"}
	}
	server := &http.Server{Handler: l.answering(hook), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(l.cli.stderr, "listening at http://%s/ ; Ctrl-C ends it\n", at.Addr())
	if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func isPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// listenFault is why nobody can listen there, in the system's words.
func listenFault(err error) string {
	var system syscall.Errno
	if errors.As(err, &system) {
		return system.Error()
	}
	return err.Error()
}

// insisting refuses what is not signed with one of the keys, if there are any. The receiver of package grid would
// let handshakes pass, which Azure does not sign.
func (l *listener) insisting(hook http.Handler) (http.Handler, error) {
	if len(l.keys) == 0 {
		return hook, nil
	}
	verifier, err := signature.NewVerifier(l.keys)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInputBytes))
		if err == nil {
			err = verifier.Verify(r.Header, body, time.Now(), 0)
		}
		if err != nil {
			l.complain(err)
			http.Error(w, err.Error(), http.StatusPreconditionFailed) // which is tried again
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		hook.ServeHTTP(w, r)
	}), nil
}

func (l *listener) complain(err error) {
	l.print(func() {
		fmt.Fprintf(l.cli.stderr, "%s %v\n", newPaint(l.cli.stderr).yellow("answered with an error:"), err)
	})
}

// answering gives deliveries the status that was asked for; handshakes are answered as they should.
func (l *listener) answering(hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.headers {
			l.print(func() { l.showHeaders(r) })
		}
		if l.status == 0 || r.Method != http.MethodPost || r.Header.Get("aeg-event-type") == "SubscriptionValidation" {
			hook.ServeHTTP(w, r)
			return
		}
		hook.ServeHTTP(unheard{w}, r)
		w.WriteHeader(l.status)
		l.print(func() { fmt.Fprintf(l.cli.stderr, "answered with %d\n", l.status) })
	})
}

// showHeaders prints a request as it came, but for its body, with what kind it is.
func (l *listener) showHeaders(r *http.Request) {
	kind := ""
	switch reported := r.Header.Get("aeg-event-type"); {
	case r.Method == http.MethodOptions:
		kind = "  (OPTIONS: a CloudEvents sender asks whether it may send)"
	case reported == "SubscriptionValidation":
		kind = "  (validation: an Event Grid sender asks whether it may send)"
	case reported != "" && reported != "Notification":
		kind = "  (" + oneLine(reported) + ")"
	}
	fmt.Fprintf(l.cli.stderr, "--- %s %s%s\n", r.Method, oneLine(r.URL.RequestURI()), kind)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			fmt.Fprintf(l.cli.stderr, "%s: %s\n", name, oneLine(value))
		}
	}
	fmt.Fprintln(l.cli.stderr, "---")
}

// unheard keeps what the handler says to itself.
type unheard struct{ http.ResponseWriter }

func (unheard) WriteHeader(int)             {}
func (unheard) Write(b []byte) (int, error) { return len(b), nil }

func (l *listener) receive(_ context.Context, batch []grid.Delivery) error {
	for _, d := range batch {
		l.print(func() { l.show(d) })
	}
	return nil
}

func (l *listener) print(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
}

// show prints an event: what it is on one line, then its data.
func (l *listener) show(d grid.Delivery) {
	e := d.Event
	again := ""
	if d.Attempt > 0 {
		again = fmt.Sprintf("  (attempt %d)", d.Attempt+1)
	}
	fmt.Fprintf(l.cli.stdout, "%s  %s  %s  %s%s\n", showTime(time.Now()), oneLine(e.Type), oneLine(e.Subject), oneLine(e.ID), again)
	if len(e.Data) == 0 {
		return
	}
	var pretty bytes.Buffer
	if json.Compact(&pretty, e.Data) != nil {
		pretty.Reset()
		pretty.Write(e.Data)
	}
	fmt.Fprintf(l.cli.stdout, "  %s\n", oneLine(beginning(pretty.String())))
}

// maxShown is how much of an event's data is printed.
const maxShown = 2 << 10

// beginning cuts what would fill a screen, between characters.
func beginning(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + fmt.Sprintf("… (%d bytes)", len(text))
}
