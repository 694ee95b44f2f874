package consumer

// Assignors, by the names that clients ask for.
const (
	Uniform = "uniform"
	Range   = "range"
)

// assignors are pure: the same problem has the same solution, whoever solves it. Each gives every
// partition that somebody subscribes to to one who does.
var assignors = map[string]func(problem) map[string]Set{Uniform: uniform, Range: byRange}

// problem is what is to be divided, and among whom.
type problem struct {
	members    []candidate // by order
	partitions map[TopicID]int32
}

// candidate is a member as assignors see it.
type candidate struct {
	id, order string
	topics    []TopicID // by id; each of them has partitions
	held      Set       // what it has had so far, and had better keep
}

// subscribers are the members of each hub, by their numbers, in order.
func (p problem) subscribers() map[TopicID][]int {
	of := make(map[TopicID][]int, len(p.partitions))
	for i, m := range p.members {
		for _, t := range m.topics {
			of[t] = append(of[t], i)
		}
	}
	return of
}
