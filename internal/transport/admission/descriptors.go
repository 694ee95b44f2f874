package admission

// Shares is how the descriptors that a process may have are divided, so that connections never take
// those that storage needs.
type Shares struct {
	// Storage is how many files may be open that hold events.
	Storage int
	// Strangers is how many connections may have shown no right, at all listeners.
	Strangers int
	// Outgoing is how many connections to others there may be, at least two: to webhooks, functions and
	// issuers of tokens.
	Outgoing int
	// Clients is how many connections of clients each listener may have, in the order of Divide's
	// arguments.
	Clients []int
}

// The most that is set aside for a purpose, and what a yard has open besides: its other files, its
// listeners, and connections that are being refused.
const (
	ownDescriptors      = 64
	storageDescriptors  = 4096
	outgoingDescriptors = 2048
)

// Divide gives each its share of so many descriptors; 0: there is no limit. Of what the yard itself
// needs not, storage has half, outgoing connections and strangers an eighth each, and clients what
// is left: as many as each listener wants, or that much in proportion.
func Divide(descriptors int, wants ...int) Shares {
	s := Shares{Storage: storageDescriptors, Strangers: DefaultStrangers, Outgoing: outgoingDescriptors, Clients: wants}
	if descriptors == 0 {
		return s
	}
	rest := max(descriptors-ownDescriptors, 16)
	s.Storage = min(s.Storage, rest/2)
	s.Strangers = min(s.Strangers, rest/8)
	s.Outgoing = min(s.Outgoing, rest/8)
	rest -= s.Storage + s.Strangers + s.Outgoing
	all := 0
	for _, want := range wants {
		all += want
	}
	if all <= rest {
		return s
	}
	s.Clients = make([]int, len(wants))
	for i, want := range wants {
		s.Clients[i] = max(1, int(int64(want)*int64(rest)/int64(all)))
	}
	return s
}

// Limits are those of strangers who have so many permits: one address has a quarter of them.
func (s Shares) Limits() Limits {
	return Limits{Strangers: s.Strangers, AddressStrangers: max(1, s.Strangers*DefaultAddressStrangers/DefaultStrangers)}
}
