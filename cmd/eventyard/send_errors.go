package main

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
)

// tooLargeError: one event alone is more than a yard takes, so that sending fewer at
// once would not help.
type tooLargeError struct {
	number, size int
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("event %s is too large: it has %s, and with its properties an event may take %s (%s)", thousands(e.number),
		counted(e.size, "byte"), thousands(admin.MaxEventBytes), quantity.FormatSize(admin.MaxEventBytes))
}

// failed says which events an error is about, and what became of those behind them.
func (s *sender) failed(part []item, err error) error {
	if errors.Is(err, errInterrupted) {
		return err
	}
	last := part[len(part)-1].number
	reported := s.blame(part, err)
	var large *tooLargeError
	switch {
	case s.sent == 0 && !errors.As(reported, &large) || last == s.total:
		return reported
	case s.highest > part[0].number: // events of other keys went ahead
		return fmt.Errorf("%w; sending stopped there, and of the events around it not all were sent", reported)
	}
	return fmt.Errorf("%w; nothing behind that was sent", reported)
}

func (s *sender) blame(part []item, err error) error {
	first, last := part[0].number, part[len(part)-1].number
	which := fmt.Sprintf("events %s to %s", thousands(first), thousands(last))
	if first == last {
		which = "event " + thousands(first)
	}
	var (
		lost    *admin.UnreachableError
		refused *admin.Problem
	)
	switch known := errors.As(err, &refused); {
	case known && refused.Kind() == "too-large" && len(part) == 1:
		return &tooLargeError{number: first, size: part[0].size}
	case known && refused.Kind() == "not-found" && s.sent > 0:
		// It was there a moment ago, and so was the partition.
		return fmt.Errorf("%s: %w", which, admin.HubDeleted(s.hub))
	case s.sent == 0 && last == 1:
		return err
	case errors.As(err, &lost) && !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s may or may not be stored: %w", which, err)
	}
	return fmt.Errorf("%s: %w", which, err)
}
