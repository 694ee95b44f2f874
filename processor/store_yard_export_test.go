package processor

// YardStore is what a processor uses that is given no store.
func YardStore(h caller) Store { return yardStore(h) }
