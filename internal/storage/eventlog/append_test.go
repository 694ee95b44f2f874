package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// scripted is a partition whose appends come to what is scripted; then they are stored. Odd ones
// fail in Submit, the others in Wait.
type scripted struct {
	eventlog.Partition
	errs    []error
	appends int
}

func (p *scripted) Submit(context.Context, eventlog.Batch) (eventlog.Receipt, error) {
	var err error
	if p.appends++; p.appends <= len(p.errs) {
		err = p.errs[p.appends-1]
	}
	if p.appends%2 == 1 {
		return receipt{}, err
	}
	return receipt{err}, nil
}

type receipt struct{ err error }

func (receipt) Start() {}

func (r receipt) Wait(context.Context) (eventlog.Appended, error) {
	if r.err != nil {
		return eventlog.Appended{}, r.err
	}
	return eventlog.Appended{First: 7}, nil
}

func TestAppendIsMadeAgain(t *testing.T) {
	fenced := fmt.Errorf("append: %w", eventlog.ErrFenced)
	tests := []struct {
		what    string
		errs    []error
		want    error
		appends int
	}{
		{"what is stored is not", nil, nil, 1},
		{"what was fenced is", []error{fenced, fenced, fenced}, nil, 4},
		{"but not for ever", []error{fenced, fenced, fenced, fenced, fenced}, eventlog.ErrFenced, eventlog.MaxAppends},
		{"what is uncertain is not", []error{eventlog.ErrUncertain}, eventlog.ErrUncertain, 1},
		{"also when it was fenced", []error{fenced, fmt.Errorf("%w: %w", eventlog.ErrUncertain, fenced)}, eventlog.ErrUncertain, 2},
		{"what met storage out of reach is not", []error{eventlog.ErrUnavailable}, eventlog.ErrUnavailable, 1},
		{"what was removed is not", []error{eventlog.ErrRemoved}, eventlog.ErrRemoved, 1},
		{"nor is what its client no longer waits for", []error{fenced, context.Canceled}, context.Canceled, 2},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			p := &scripted{errs: tt.errs}
			done, err := eventlog.Append(t.Context(), p, eventlog.Batch{})
			if !errors.Is(err, tt.want) || p.appends != tt.appends || (err == nil) != (done.First == 7) {
				t.Errorf("got %+v, %v after %d appends", done, err, p.appends)
			}
		})
	}
}

func TestAgainTriesWhatItIsGiven(t *testing.T) {
	for again, want := range map[error]int{eventlog.ErrRemoved: eventlog.MaxAppends, eventlog.ErrNoSpace: 1} {
		tries := 0
		err := eventlog.Again(func() error { tries++; return eventlog.ErrRemoved }, eventlog.ErrFenced, again)
		if !errors.Is(err, eventlog.ErrRemoved) || tries != want {
			t.Errorf("%v: got %v after %d tries, want %d", again, err, tries, want)
		}
	}
}
