package broker

import "math/bits"

// PartitionForKey gives the partition that a key belongs to, the same that Azure
// Event Hubs chooses: a program that moves here finds its keys where they were. The
// partition count has to be positive.
func PartitionForKey(key string, partitions int) int {
	return partitionOf(key, partitions)
}

// text is what a key may be held in; both hash alike, and neither is copied.
type text interface{ ~string | ~[]byte }

func partitionOf[T text](key T, partitions int) int {
	// The remainder keeps the sign of the hash; the service drops it afterwards. The
	// other order would move every key with a negative hash that does not divide.
	remainder := int(keyHash(key)) % partitions
	if remainder < 0 {
		return -remainder
	}
	return remainder
}

// keyHash is Bob Jenkins' lookup3 over the key's bytes with both seeds 0, folded to 16 signed bits.
func keyHash[T text](key T) int16 {
	a := 0xdeadbeef + uint32(len(key))
	b, c := a, a
	// A block of exactly 12 bytes is left to the final mix.
	for len(key) > 12 {
		a += word(key[0:])
		b += word(key[4:])
		c += word(key[8:])
		a, b, c = mix(a, b, c)
		key = key[12:]
	}
	if len(key) == 0 {
		return fold16(b, c)
	}
	a += word(key)
	b += word(from(key, 4))
	c += word(from(key, 8))
	b, c = finalMix(a, b, c)
	return fold16(b, c)
}

func fold16(b, c uint32) int16 { return int16(uint16(b ^ c)) }

// word reads up to four bytes, little-endian; missing ones count as zero.
func word[T text](key T) uint32 {
	var w uint32
	for i := range min(4, len(key)) {
		w |= uint32(key[i]) << (8 * i)
	}
	return w
}

// from is key[n:], empty where the key is shorter.
func from[T text](key T, n int) T { return key[min(n, len(key)):] }

func mix(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - c) ^ bits.RotateLeft32(c, 4)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 6)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 8)
	b += a
	a = (a - c) ^ bits.RotateLeft32(c, 16)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 19)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func finalMix(a, b, c uint32) (uint32, uint32) {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return b, c
}
