package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/transport/certs"
	"github.com/eventyard/eventyard/server"
	"github.com/spf13/cobra"
)

// errReported: the command has printed what is wrong; only the exit code is left.
var errReported = errors.New("already reported")

// errUndelivered: the command has printed what became of an event, and somebody has it not.
var errUndelivered = errors.New("not delivered")

// errInterrupted: the user ended the command before it was done.
var errInterrupted = errors.New("interrupted")

// nextFor says what to try after an error; empty where there is nothing to add.
func nextFor(err error) string {
	var (
		usage    *usageError
		problem  *admin.Problem
		lost     *admin.UnreachableError
		stranger *admin.StrangerError
		setting  *config.Problem
		large    *tooLargeError
		advised  *advisedError
		near     *nearError
		helped   *helpedError
	)
	switch {
	case errors.As(err, &helped):
		return helped.next
	case errors.As(err, &usage):
		return "see: " + usage.command + " --help"
	case errors.As(err, &advised):
		return advised.next
	case errors.As(err, &near):
		return "did you mean " + near.near + "? " + nextFor(near.error)
	case errors.As(err, &large):
		return "send a smaller body, or the body in parts"
	case errors.As(err, &problem):
		return nextForProblem(problem)
	case errors.As(err, &lost):
		return nextForLost(lost)
	case errors.As(err, &stranger):
		return nextForStranger(stranger)
	case errors.As(err, &setting):
		return "all settings are explained by: eventyard config doc"
	case errors.Is(err, server.ErrLocked):
		return "another yard uses this data folder: stop it, or choose another folder with --data"
	case errors.Is(err, server.ErrPeerFolder):
		return "start it with --cluster-bundle, or choose another folder with --data"
	case errors.Is(err, server.ErrOtherPeer):
		return "see that this machine has its own bundle, and name this peer's folder, or an empty one, with --data"
	case errors.Is(err, server.ErrMetaLost):
		return nextForMetaLost
	case errors.Is(err, server.ErrRestoring):
		return "run eventyard restore again with this data folder, which starts over; or choose another folder with --data"
	case errors.Is(err, server.ErrOccupied):
		return "name a folder that does not exist yet with --data; only secret.key may be in it"
	case errors.Is(err, server.ErrYardOccupied):
		return "name a yard that is not there yet with --yard"
	case errors.Is(err, server.ErrNoKey):
		return "put a copy of the yard's secret.key into the data folder, or say where the key comes from with --secrets-key-file or --secrets-key-command"
	case errors.Is(err, server.ErrKeyLost), errors.Is(err, server.ErrUnknownKey):
		return nextForKey(err)
	case errors.Is(err, server.ErrForeign):
		return "name a folder that is the yard's alone with --data"
	case errors.Is(err, server.ErrNewerData):
		return "install that version, or choose another folder with --data"
	case errors.As(err, new(*certs.FileError)):
		return nextForCertificateFiles
	case errors.As(err, new(*server.ListenerError)):
		return nextForListeners(err)
	case errors.Is(err, fs.ErrPermission):
		return "check the owner and the permissions; eventyard doctor says more"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path: " + pathOf(err) + " is not there, or a folder on the way to it"
	case errors.Is(err, syscall.EISDIR):
		return "name a file: " + pathOf(err) + " is a folder"
	case errors.Is(err, syscall.ENOTDIR):
		return "name a folder: " + pathOf(err) + " is, or is in, a file"
	}
	return ""
}

// pathOf is the file that an error is about.
func pathOf(err error) string {
	var about *fs.PathError
	if errors.As(err, &about) {
		return about.Path
	}
	return "it"
}

// helpedError is one of which nothing better is known than where to read on.
type helpedError struct {
	error
	next string
}

func (e *helpedError) Unwrap() error { return e.error }

// withNext sees to it that every error that is told ends with what to try.
func withNext(cmd *cobra.Command, err error) error {
	for _, silent := range []error{errReported, errUndelivered, errInterrupted, context.Canceled} {
		if errors.Is(err, silent) {
			return err
		}
	}
	switch {
	case err == nil || nextFor(err) != "":
		return err
	case cmd.Name() == "serve":
		return &helpedError{err, "eventyard doctor, with the same flags, may say more; all settings are explained by: eventyard config doc"}
	}
	return &helpedError{err, "see: " + cmd.CommandPath() + " --help"}
}

// advisedError is told in the command's own words, with its own advice.
type advisedError struct {
	text, next string
}

func (e *advisedError) Error() string { return e.text }

// isProblem tells whether the yard refused for this reason.
func isProblem(err error, kind string) bool {
	var p *admin.Problem
	return errors.As(err, &p) && p.Kind() == kind
}

// nextForMetaLost is what to do where the events are there and their hubs are not.
const nextForMetaLost = "restore meta.db from a copy; or, to start over without these events, move the folder log elsewhere"

// nextForCertificateFiles is for who has named files that are no certificate and its key.
const nextForCertificateFiles = "see that --tls-cert-file and --tls-key-file name a certificate and its key, as PEM, that this user can read, " +
	"and --tls-client-ca-file, if given, certificates; without the first two the yard makes its own"

// nextForProblem puts into the words of the command line what the yard says in those
// of its HTTP API.
func nextForProblem(p *admin.Problem) string {
	switch p.Kind() {
	case "insufficient-rights", "wrong-audience":
		return "use the key of a policy that may do this, with --connection-string or " + config.EnvConnectionString + "; eventyard policy list shows the policies"
	case "policy-not-found":
		return "eventyard policy list shows the policies of the namespace, with --hub those of a hub"
	case "root-policy":
		return "replace its keys to lock out everybody who has them: eventyard policy regenerate " + auth.RootPolicy
	case "no-endpoint":
		return "eventyard serve opens such a listener with --amqp or --amqps, and for blobs with --http or --https"
	case "not-found":
		return "eventyard hub list shows the hubs, eventyard hub show HUB its partitions and groups"
	case "hub-deleted":
		return "eventyard hub list shows the hubs there are"
	case "topic-not-found":
		return "eventyard topic list shows the topics"
	case "subscription-not-found":
		return "eventyard subscription list shows the subscriptions"
	case "ambiguous-subscription":
		return "say whose is meant with --topic or --source-hub"
	case "not-delivered":
		return "eventyard subscription show says what state it is in, and why"
	case "dead-letter-not-found":
		return "eventyard dead list SUBSCRIPTION shows them"
	case "function-not-found":
		return "eventyard function list shows the yard's own; one that runs in a program of yours is stopped with eventyard circuit open NAME, and resumed with eventyard circuit close NAME"
	case "circuit-not-found":
		return "eventyard circuit list shows the circuits; a function in a program of yours has one after its first failure, until then give --hub and --group"
	case "ambiguous-circuit":
		return "say which is meant with --hub and --group"
	case "invalid-definition", "invalid-function", "handshake-failed", "invalid-name", "invalid-rights", "invalid-record", "invalid-retention":
		return "" // it says what to write
	case "instance-not-found":
		return "eventyard group show HUB GROUP shows the instances; what one owns that is gone is given up with eventyard group release"
	case "poison-not-found":
		return "eventyard poison list HUB --redriven shows all of them"
	case "position-out-of-range":
		return "eventyard hub show HUB shows the first and last numbers; earliest and latest always fit"
	case "invalid-policy":
		return "leave the keys out to have them made"
	case "invalid-connection-string":
		return "eventyard connection-string prints one"
	case "hub-exists", "topic-exists", "subscription-exists", "function-exists", "policy-exists":
		return "use it, or choose another name; case makes no difference"
	case "no-events":
		return "give at least one event"
	case "position-past-end":
		return "begin again with --from earliest, or with --from latest to skip what is there"
	case "damaged-events":
		return "eventyard doctor, while the yard is stopped, lists the damaged files"
	}
	if p.Status == http.StatusUnauthorized {
		return nextForUnauthorized
	}
	if strings.Contains(p.Next, "/api/v1") { // which is for programs
		return ""
	}
	return p.Next
}

// nextForUnauthorized is for who has no key, or the wrong one.
const nextForUnauthorized = "with DATA the data folder of the yard: export " + config.EnvConnectionString + "=@DATA/" +
	server.ConnectionStringFile + ", or give the connection string of a policy with --connection-string"

// nextForListeners says what to do about listeners that could not be opened.
func nextForListeners(err error) string {
	flags := listenerFlags(err)
	choose := "choose another address with " + strings.Join(flags, ", ")
	if len(flags) > 0 && errors.Is(err, syscall.EADDRINUSE) {
		return "something else listens there, perhaps another yard: stop it, " + choose +
			" (port 0 picks a free one), or close the listener with " + strings.Join(flags, " off, ") + " off"
	}
	return choose + ", or close the listener with off"
}

// listenerFlags are the flags of the listeners that an error is about.
func listenerFlags(err error) []string {
	switch e := err.(type) {
	case *server.ListenerError:
		return []string{listenerFlag(e.Listener)}
	case interface{ Unwrap() []error }:
		var flags []string
		for _, one := range e.Unwrap() {
			flags = append(flags, listenerFlags(one)...)
		}
		return flags
	case interface{ Unwrap() error }:
		return listenerFlags(e.Unwrap())
	}
	return nil
}

// listenerFlag is the flag of the listener of a name.
func listenerFlag(name string) string {
	all := config.Settings()
	i := slices.IndexFunc(all, func(s config.Setting) bool { return s.Key == name })
	if i < 0 {
		return "--" + name
	}
	return "--" + all[i].Flag
}

// nextForStranger also thinks of the listener with TLS, which answers so where none is spoken.
func nextForStranger(stranger *admin.StrangerError) string {
	next := "point --server or " + config.EnvServer + " at the yard; eventyard serve prints its addresses"
	if strings.HasPrefix(stranger.Server, "http:") && strings.HasPrefix(stranger.Status, "400 ") {
		next = "if this is the listener with TLS, write https://; else " + next
	}
	return next
}

func nextForLost(lost *admin.UnreachableError) string {
	switch {
	case errors.Is(lost, admin.ErrBrokeOff) && !errors.Is(lost, context.Canceled):
		return "what came before is right, but not all there is: see whether the yard still runs, and read again"
	case errors.Is(lost, syscall.ECONNREFUSED):
		return "is the yard running? start it with: eventyard serve; or is it elsewhere? name it with --server or " + config.EnvServer +
			" (asked: " + lost.Server + ")"
	case isAMQP(lost):
		return fmt.Sprintf(otherPort, "AMQP")
	case errors.Is(lost, io.EOF) || admin.IsCut(lost):
		return "the yard went away: it was stopped or killed; start it with eventyard serve, and look what is there with eventyard hub show. " +
			"Or is this another port than that of HTTP? (asked: " + lost.Server + ")"
	case errors.Is(lost, context.DeadlineExceeded):
		return "the yard did not answer in time; eventyard doctor may show why"
	case errors.Is(lost, context.Canceled):
		return ""
	case errors.Is(lost, http.ErrSchemeMismatch):
		return "the listener at this address is without TLS: write http:// in --server or " + config.EnvServer
	case errors.As(lost, new(*tls.CertificateVerificationError)):
		return nextForCertificate(lost)
	}
	return "is --server right? it can also be set by " + config.EnvServer
}

// recognize looks who has ended the connection without a word. A yard that is killed does, and so does a listener for
// Kafka, which takes the first letters of HTTP for the size of a request; that one answers in its own protocol.
func recognize(ctx context.Context, err error) error {
	var lost *admin.UnreachableError
	if !errors.As(err, &lost) || errors.Is(err, admin.ErrBrokeOff) || !errors.Is(lost, io.EOF) && !admin.IsCut(lost) {
		return err
	}
	at, wrong := url.Parse(lost.Server)
	if wrong != nil || at.Port() == "" { // Kafka has no port of HTTP's
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tenantPatience)
	defer cancel()
	for _, withTLS := range []bool{false, true} {
		if askKafka(ctx, config.Listener{Address: at.Host, TLS: withTLS}) != "" {
			return &helpedError{err, fmt.Sprintf(otherPort, "Kafka")}
		}
	}
	return err
}

// otherPort is for who asks a listener of the yard's for another protocol.
const otherPort = "this is the yard's %s port: give the address of its HTTP listener, which eventyard serve prints, like " + admin.DefaultServer

// isAMQP tells who was answered in AMQP, which begins with its name.
func isAMQP(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) && bytes.HasPrefix(record.RecordHeader[:], []byte("AMQP")) ||
		strings.Contains(err.Error(), `it does not answer in HTTP, but "AMQP`)
}

// nextForCertificate is for who does not believe that the yard is the yard.
func nextForCertificate(err error) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return "ask for the yard by a name that its certificate has, which eventyard cert show lists; eventyard serve --host NAME adds one"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "see with eventyard cert show how long the certificate is valid, and whether the clocks of both machines are right"
	}
	return "trust the yard's authority: eventyard cert export FILE, where its data folder is, then --ca FILE or " + config.EnvCA + "=FILE here (other programs: SSL_CERT_FILE=FILE); where its operator gave the certificate, FILE is the authority that signed that"
}
