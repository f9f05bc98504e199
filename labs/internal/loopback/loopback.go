// Package loopback chooses ports of 127.0.0.1 that nobody gets by accident.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// lowest to highest are tried. Kernels draw ports for connections from above: Linux from 32768, others from 49152. Between a look at
// a port and its use no connection gets it, nor does one in a Pod where a program is to have the same address.
// Kubernetes' own programs listen below.
const lowest, highest = 11000, 30000

// Listen listens on a free port.
func Listen() (net.Listener, error) {
	for range highest - lowest {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest)))
		if err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no port between %d and %d is free", lowest, highest)
}

// Free are n different addresses that nobody listens on right now, as host:port.
func Free(n int) (addresses []string, err error) {
	for range n {
		l, err := Listen()
		if err != nil {
			return nil, err
		}
		defer l.Close() // held until all are found, so that they differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
