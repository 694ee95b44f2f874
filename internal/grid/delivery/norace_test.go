//go:build !race

package delivery

// defaultSeeds is how many random lives a run of the tests leads.
const defaultSeeds = 20

// fleetSeeds is how many such lives several nodes lead together.
const fleetSeeds = 3
