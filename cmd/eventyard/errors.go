package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/httpclient"
	"github.com/eventyard/eventyard/server"
)

// errReported: the command has printed what is wrong; only the exit code is left.
var errReported = errors.New("already reported")

// errInterrupted: the user ended the command before it was done.
var errInterrupted = errors.New("interrupted")

// nextFor says what to try after an error; empty where there is nothing to add.
func nextFor(err error) string {
	var (
		usage    *usageError
		problem  *httpclient.Problem
		lost     *httpclient.UnreachableError
		stranger *httpclient.StrangerError
		setting  *config.Problem
		large    *tooLargeError
		advised  *advisedError
	)
	switch {
	case errors.As(err, &usage):
		return "see: " + usage.command + " --help"
	case errors.As(err, &advised):
		return advised.next
	case errors.As(err, &large):
		return "send a smaller body, or the body in parts"
	case errors.As(err, &problem):
		return nextForProblem(problem)
	case errors.As(err, &lost):
		return nextForLost(lost)
	case errors.As(err, &stranger):
		return "point --server or " + config.EnvServer + " at the yard; eventyard serve prints its addresses"
	case errors.As(err, &setting):
		return "all settings are explained by: eventyard config doc"
	case errors.Is(err, server.ErrLocked):
		return "another yard uses this data folder: stop it, or choose another folder with --data"
	case errors.Is(err, server.ErrMetaLost):
		return nextForMetaLost
	case errors.Is(err, syscall.EADDRINUSE):
		return "something else listens there, perhaps another yard: stop it, or choose another address with --http (port 0 picks a free one)"
	case errors.Is(err, fs.ErrPermission):
		return "check the owner and the permissions; eventyard doctor tells more"
	}
	return ""
}

// advisedError is told in the command's own words, with its own advice.
type advisedError struct {
	text, next string
}

func (e *advisedError) Error() string { return e.text }

// isProblem tells whether the yard refused for this reason.
func isProblem(err error, kind string) bool {
	var p *httpclient.Problem
	return errors.As(err, &p) && p.Kind() == kind
}

// nextForMetaLost is what to do where the events are there and their hubs are not.
const nextForMetaLost = "restore meta.db from a copy; or, to begin anew without these events, move the folder log elsewhere"

// nextForProblem puts into the words of the command line what the yard says in those
// of its HTTP API.
func nextForProblem(p *httpclient.Problem) string {
	switch p.Kind() {
	case "not-found":
		return "eventyard hub list shows the hubs, eventyard hub show HUB its partitions and groups"
	case "hub-deleted":
		return "eventyard hub list shows the hubs there are"
	case "position-past-end":
		return "begin again with --from earliest, or with --from latest to skip what is there"
	case "damaged-events":
		return "eventyard doctor, while the yard is stopped, tells which files are damaged"
	}
	return p.Next
}

func nextForLost(lost *httpclient.UnreachableError) string {
	switch {
	case errors.Is(lost, httpclient.ErrBrokeOff) && !errors.Is(lost, context.Canceled):
		return "what came before is right, but not all there is: see whether the yard still runs, and read again"
	case errors.Is(lost, syscall.ECONNREFUSED):
		return "is the yard running? start it with: eventyard serve"
	case errors.Is(lost, io.EOF) || httpclient.IsCut(lost):
		return "the yard went away: it was stopped or killed; start it with eventyard serve, and look what is there with eventyard hub show"
	case errors.Is(lost, context.DeadlineExceeded):
		return "the yard did not answer in time; eventyard doctor may tell why"
	case errors.Is(lost, context.Canceled):
		return ""
	}
	return "is --server right? it can also be set by " + config.EnvServer
}
