//go:build !unix

package server

// descriptorLimit is how many descriptors this process may have; 0: nobody knows.
func descriptorLimit() int { return 0 }
