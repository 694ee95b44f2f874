package history

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Each kind of wrong is found, and none in what is right. Calls of a table follow each other unless they
// begin at a moment of their own.
func TestRegisters(t *testing.T) {
	tests := map[string]struct {
		record func(*Registers)
		fails  bool
	}{
		"nothing": {func(*Registers) {}, false},
		"a change and a read": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			r.Read(1, r.Now(), "k", "a", 1)
		}, false},
		"a read of what was replaced": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			r.Change(0, r.Now(), "k", "a", "b", Done, 2)
			r.Read(1, r.Now(), "k", "a", 1)
		}, true},
		"a read beside the change": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			begun := r.Now()
			r.Change(0, r.Now(), "k", "a", "b", Done, 2)
			r.Read(1, begun, "k", "a", 1)
		}, false},
		"two changes of one value": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			begun := r.Now()
			r.Change(0, r.Now(), "k", "a", "b", Done, 2)
			r.Change(1, begun, "k", "a", "c", Done, 3)
		}, true},
		"a conflict with nothing": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			r.Change(1, r.Now(), "k", "a", "b", Conflict, 0)
		}, true},
		"a conflict": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			r.Change(1, r.Now(), "k", "", "b", Conflict, 0)
		}, false},
		"an acknowledged change is lost": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			r.Read(1, r.Now(), "k", "", 0)
		}, true},
		"an unheard change takes effect later": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Unheard, 0)
			r.Read(1, r.Now(), "k", "", 0)
			r.Read(1, r.Now(), "k", "a", 7)
			r.Read(1, r.Now(), "k", "a", 7)
		}, false},
		"an unheard change never does": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Unheard, 0)
			r.Change(1, r.Now(), "k", "", "b", Done, 3)
			r.Read(1, r.Now(), "k", "b", 3)
		}, false},
		"an unheard change is undone": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Unheard, 0)
			r.Read(1, r.Now(), "k", "a", 7)
			r.Read(1, r.Now(), "k", "", 0)
		}, true},
		"a value that nobody has set": {func(r *Registers) { r.Read(1, r.Now(), "k", "a", 7) }, true},
		"a deletion": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 1)
			r.Change(0, r.Now(), "k", "a", "", Done, 0)
			r.Read(1, r.Now(), "k", "", 0)
			r.Change(1, r.Now(), "k", "", "b", Done, 3)
		}, false},
		"a revision goes back": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 5)
			r.Change(0, r.Now(), "k", "a", "b", Done, 4)
		}, true},
		"one value with two revisions": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 5)
			r.Read(0, r.Now(), "k", "a", 6)
		}, true},
		"keys are apart": {func(r *Registers) {
			r.Change(0, r.Now(), "k", "", "a", Done, 5)
			r.Change(0, r.Now(), "l", "", "b", Done, 4)
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var r Registers
			tt.record(&r)
			err := r.Check()
			testkit.That(t, (err != nil) == tt.fails, "got %v", err)
		})
	}
}

func TestLog(t *testing.T) {
	tests := map[string]struct {
		record func(*Log)
		texts  []string
		fails  bool
	}{
		"appends and a read": {func(l *Log) {
			l.Append(0, l.Now(), "a", 0)
			l.Append(1, l.Now(), "b", 1)
			l.Read(2, l.Now(), "a", 0)
			l.End(2, l.Now(), 2)
		}, []string{"a", "b"}, false},
		"numbers against the order of calls": {func(l *Log) {
			l.Append(0, l.Now(), "b", 1)
			l.Append(1, l.Now(), "a", 0)
		}, []string{"a", "b"}, true},
		"beside each other in any order": {func(l *Log) {
			begun := l.Now()
			l.Append(0, l.Now(), "b", 1)
			l.Append(1, begun, "a", 0)
		}, []string{"a", "b"}, false},
		"an acknowledged text is lost": {func(l *Log) { l.Append(0, l.Now(), "a", 0) }, nil, true},
		"another number in the end":    {func(l *Log) { l.Append(0, l.Now(), "a", 0) }, []string{"b", "a"}, true},
		"a gap":                        {func(l *Log) { l.Append(0, l.Now(), "b", 1) }, []string{"a", "b"}, true},
		"one is there twice":           {func(l *Log) { l.Append(0, l.Now(), "a", 0) }, []string{"a", "a"}, true},
		"unheard, and there": {func(l *Log) {
			l.AppendUnheard(0, l.Now(), "a")
			l.Append(1, l.Now(), "b", 0)
		}, []string{"b", "a"}, false},
		"unheard, and appended again": {func(l *Log) {
			l.AppendUnheard(0, l.Now(), "a")
			l.AppendUnheard(0, l.Now(), "a")
			l.Append(1, l.Now(), "b", 0)
			l.Append(0, l.Now(), "a", 1)
		}, []string{"b", "a"}, false},
		"unheard twice, and there": {func(l *Log) {
			l.AppendUnheard(0, l.Now(), "a")
			l.AppendUnheard(0, l.Now(), "a")
			l.Append(1, l.Now(), "b", 1)
		}, []string{"a", "b"}, false},
		"unheard, and not there": {func(l *Log) { l.AppendUnheard(0, l.Now(), "a") }, nil, false},
		"read before it was appended": {func(l *Log) {
			l.Read(1, l.Now(), "a", 0)
			l.Append(0, l.Now(), "a", 0)
		}, []string{"a"}, true},
		"an end behind an acknowledged text": {func(l *Log) {
			l.Append(0, l.Now(), "a", 0)
			l.End(1, l.Now(), 0)
		}, []string{"a"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var l Log
			tt.record(&l)
			err := l.Check(tt.texts)
			testkit.That(t, (err != nil) == tt.fails, "got %v", err)
		})
	}
}

func TestReceivers(t *testing.T) {
	tests := map[string]struct {
		record func(*Receivers)
		fails  bool
	}{
		"one after the other": {func(p *Receivers) {
			p.TakeOver(p.Now(), 1)
			p.Receive(p.Now(), 1)
			p.TakeOver(p.Now(), 2)
			p.Receive(p.Now(), 2)
			p.Refused(p.Now(), 1)
		}, false},
		"the lower receives what was sent before": {func(p *Receivers) {
			p.TakeOver(p.Now(), 1)
			sent := p.Now()
			p.TakeOver(p.Now(), 2)
			p.Receive(sent, 1)
		}, false},
		"the lower receives what was sent later": {func(p *Receivers) {
			p.TakeOver(p.Now(), 1)
			p.TakeOver(p.Now(), 2)
			p.Receive(p.Now(), 1)
		}, true},
		"both receive in turn": {func(p *Receivers) {
			p.TakeOver(p.Now(), 1)
			begun := p.Now()
			p.Receive(p.Now(), 1)
			p.Receive(p.Now(), 2)
			p.Receive(p.Now(), 1)
			p.TakeOver(begun, 2)
		}, true},
		"the lower takes it back": {func(p *Receivers) {
			p.TakeOver(p.Now(), 2)
			p.TakeOver(p.Now(), 1)
		}, true},
		"refused for nobody": {func(p *Receivers) {
			p.TakeOver(p.Now(), 1)
			p.Refused(p.Now(), 2)
		}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p Receivers
			tt.record(&p)
			err := p.Check()
			testkit.That(t, (err != nil) == tt.fails, "got %v", err)
		})
	}
}
