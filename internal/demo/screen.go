package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// screen redraws one screen of a terminal each second, and takes keys.
type screen struct {
	d       *demo
	in, out *os.File
	paint   paint
	pressed sync.WaitGroup // keys whose levers are being pulled
}

// newScreen gives one where both ends are a terminal.
func newScreen(d *demo) (*screen, bool) {
	in, isFile := d.cfg.In.(*os.File)
	out, isToo := d.cfg.Out.(*os.File)
	if !isFile || !isToo || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, false
	}
	return &screen{d: d, in: in, out: out, paint: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}, true
}

// Escape sequences: another screen without a cursor, and back; the first corner; the rest of a line
// and of the screen.
const (
	enter     = "\x1b[?1049h\x1b[?25l"
	leave     = "\x1b[?25h\x1b[?1049l"
	corner    = "\x1b[H"
	clearLine = "\x1b[K\r\n"
	clearRest = "\x1b[J"
)

func (s *screen) run(ctx context.Context) {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		(&lines{d: s.d}).run(ctx)
		return
	}
	fmt.Fprint(s.out, enter)
	defer func() {
		s.pressed.Wait()
		fmt.Fprint(s.out, leave)
		_ = term.Restore(int(s.in.Fd()), before)
	}()
	keys := make(chan byte)
	go s.read(ctx, keys)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s.draw()
		select {
		case <-tick.C:
		case key := <-keys:
			s.press(ctx, key)
		case <-ctx.Done():
			return
		}
	}
}

// read takes keys. Reading a terminal cannot be ended: it is left behind for the end of the process,
// which follows at once.
func (s *screen) read(ctx context.Context, keys chan<- byte) {
	var b [1]byte
	for {
		if n, err := s.in.Read(b[:]); err != nil || n == 0 {
			return
		}
		select {
		case keys <- b[0]:
		case <-ctx.Done():
			return
		}
	}
}

func (s *screen) draw() {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	var b bytes.Buffer
	b.WriteString(corner)
	all := drawBoard(s.d.board.Load(), width, s.paint)
	for _, line := range all[:min(len(all), height-1)] {
		b.WriteString(line + clearLine)
	}
	b.WriteString(clearRest)
	_, _ = s.out.Write(b.Bytes())
}

// keysOfLevers are the keys of levers, in the order in which they are shown.
var keysOfLevers = []struct {
	key         byte
	lever, text string
}{
	{'k', "kill", "kill one"}, {'K', "kill2", "kill two"}, {'s', "stop", "stop one"}, {'a', "add", "add one"}, {'c', "co", "carbon monoxide"},
	{'w', "webhook", "break webhook"}, {'m', "mend", "mend it"}, {'p', "poison", "poison 20"}, {'P', "poison200", "poison 200"},
	{'o', "circuit", "open circuit"}, {'b', "store", "store back"}, {'r', "resume", "resume"}, {'y', "plug", "kill the yard"}, {'q', "quit", "quit"},
}

// press pulls the lever of a key. Ctrl-C, which a raw terminal gives as a key, is one of them.
func (s *screen) press(ctx context.Context, key byte) {
	if key == 3 {
		key = 'q'
	}
	for _, k := range keysOfLevers {
		if k.key != key {
			continue
		}
		s.pressed.Go(func() {
			if err := s.d.pull(context.WithoutCancel(ctx), k.lever, ""); err != nil {
				s.d.journal.note(time.Now(), strings.TrimSpace(err.Error()))
			}
		})
	}
}
