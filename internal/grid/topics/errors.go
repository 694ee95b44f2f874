package topics

import (
	"errors"
	"fmt"
)

// What callers branch on. Errors about input wrap ErrInvalid and say what to write instead.
// A hub that is not there is a *broker.NotFoundError.
var (
	ErrInvalid       = errors.New("definition is not allowed")
	ErrTopicExists   = errors.New("topic exists already")
	ErrExists        = errors.New("subscription exists already")
	ErrTopicNotFound = errors.New("no such topic")
	ErrNotFound      = errors.New("no such subscription")
	// ErrAmbiguous: several sources have a subscription of that name; say which is meant.
	ErrAmbiguous = errors.New("several subscriptions have that name")
	// ErrReserved: the yard's own topic stays, and nobody else publishes to it.
	ErrReserved = errors.New("the topic is the yard's own")
	// ErrHandshake: the endpoint did not agree. Nothing was created or changed.
	ErrHandshake = errors.New("endpoint validation failed")
	// ErrToken: the validation URL is wrong, used up or too late.
	ErrToken = errors.New("validation link is not good")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// invalidIf makes an error about one part of a definition an ErrInvalid; nil stays nil.
func invalidIf(what string, err error) error {
	if err == nil {
		return nil
	}
	return invalid("%s: %w", what, err)
}

func topicNotFound(name string) error {
	return fmt.Errorf("%w: %.64q: create it first, or check its spelling", ErrTopicNotFound, name)
}

func notFound(source Source, name string) error {
	if source == (Source{}) {
		return fmt.Errorf("%w: %.80q", ErrNotFound, name)
	}
	return fmt.Errorf("%w: %s has none named %.80q", ErrNotFound, source, name)
}
