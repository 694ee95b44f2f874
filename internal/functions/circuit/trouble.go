package circuit

import "time"

// sayEvery is how often a store that goes on failing is told of.
const sayEvery = time.Minute

// trouble is Run's with the store: when it is asked again, and what was said of it.
type trouble struct {
	until time.Time // nothing is tried before
	pause time.Duration
	said  time.Time // zero: nothing
}

// met waits for longer each time, up to Config.Poll: a circuit is to be seen soon after the store
// is back.
func (t *trouble) met(cfg Config, err error) {
	now := time.Now()
	t.pause = min(max(2*t.pause, firstPause), cfg.Poll)
	t.until = now.Add(t.pause)
	if t.said.IsZero() || now.Sub(t.said) >= sayEvery {
		t.said = now
		cfg.Log.Warn("the circuit's state is kept as last known: the store fails, it is tried again", "error", err)
	}
}

func (t *trouble) over(cfg Config) {
	if !t.said.IsZero() {
		cfg.Log.Info("the circuit's store answers again")
	}
	*t = trouble{}
}
