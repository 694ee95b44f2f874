package notify

import "github.com/prometheus/client_golang/prometheus"

// outcome is what became of an attempt, or of what is not attempted any more.
type outcome string

const (
	sent       outcome = "sent"
	failed     outcome = "failed"     // and tried again
	givenUp    outcome = "given_up"   // after a day, or pushed out by newer ones
	superseded outcome = "superseded" // the end was told together with the beginning
	unlisted   outcome = "unlisted"   // its target was taken out of the definitions meanwhile
)

// medium is how something is sent.
type medium string

const (
	byEvent   medium = "event"
	byMail    medium = "mail"
	byWebhook medium = "webhook"
)

// metrics are the service's counters; nil registry: registered nowhere.
type metrics struct {
	notices *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{notices: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "eventyard_notices_total", Help: "Notices of circuits that were sent, or could not be, by kind and outcome.",
	}, []string{"kind", "outcome"})}
	if registry == nil {
		return m, nil
	}
	return m, registry.Register(m.notices)
}

func (m *metrics) count(by medium, o outcome) { m.notices.WithLabelValues(string(by), string(o)).Inc() }
