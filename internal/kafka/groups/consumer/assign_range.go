package consumer

// byRange gives each member a run of partitions of each hub. Members stand in the same order everywhere,
// so that partitions of one number go to one member in all hubs that have the same partitions and the same
// subscribers: who joins two hubs by a key has both sides of it. It keeps nothing where it is for its own
// sake.
func byRange(in problem) map[string]Set {
	given := make(map[string][]Partition, len(in.members))
	for topic, subscribers := range in.subscribers() {
		each, more := int(in.partitions[topic])/len(subscribers), int(in.partitions[topic])%len(subscribers)
		next := 0
		for i, member := range subscribers {
			end := next + each
			if i < more {
				end++
			}
			id := in.members[member].id
			for ; next < end; next++ {
				given[id] = append(given[id], Partition{topic, int32(next)})
			}
		}
	}
	sets := make(map[string]Set, len(given))
	for id, partitions := range given {
		sets[id] = SetOf(partitions)
	}
	return sets
}
