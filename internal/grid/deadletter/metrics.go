package deadletter

import "github.com/prometheus/client_golang/prometheus"

// metrics are the service's counters; nil registry: registered nowhere.
type metrics struct {
	writes     *prometheus.CounterVec
	letters    *prometheus.CounterVec
	givenUp    *prometheus.CounterVec
	unwritable *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "eventyard_grid_" + name, Help: help}, labels)
	}
	m := &metrics{
		writes:     counter("dead_letter_writes_total", "Writes of dead letters to their targets, by kind of target and outcome.", "target", "outcome"),
		letters:    counter("dead_letters_written_total", "Dead letters that were written to their targets.", "target"),
		givenUp:    counter("dead_letters_given_up_total", "Dead letters that were not written because their target was out of reach for too long.", "target"),
		unwritable: counter("dead_letters_unwritable_total", "Dead letters that cannot be written: they are unreadable, or too large for their target.", "target"),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.writes, m.letters, m.givenUp, m.unwritable} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
