package balance

// Recommend is how many instances a lag of so many events is worth: one for each targetPerInstance
// begun, rounded up to a number that spreads the partitions evenly. Any in between would leave the
// busiest instance as busy as a smaller number does. It is 0 without lag, and never above the
// number of partitions.
func Recommend(lag, targetPerInstance, partitions int) int {
	if lag <= 0 || partitions <= 0 {
		return 0
	}
	wanted := ceil(lag, max(targetPerInstance, 1))
	switch {
	case wanted == 1:
		return 1
	case wanted >= partitions:
		return partitions
	}
	// The most partitions that the busiest may have while there are as many instances as wanted.
	busiest := ceil(partitions, wanted-1) - 1
	return ceil(partitions, busiest)
}

func ceil(a, b int) int { return (a-1)/b + 1 }
