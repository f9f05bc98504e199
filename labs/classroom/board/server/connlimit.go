package server

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// How many connections there are at once.
const (
	// maxConnections are those of a room of sixty with two tabs each, and as many again; and where modules are served, of
	// sixty Go commands that open ten each.
	maxConnections = 1024
	// maxAnonymous are those of all addresses that have not shown a good token yet, and maxRemote those of all machines but
	// this one. The rest is kept for others.
	maxAnonymous, maxRemote = 768, 960
	// anonymousPerClient and authenticatedPerClient are those of one address, before and after it has shown a good token.
	anonymousPerClient, authenticatedPerClient = 64, 256
	// addressesPerToken are those that one token vouches for, the latest ones: a laptop that changes its network.
	addressesPerToken = 2
	// rejectedPerClient are as many more of one address, which are told to come again. Those beyond are closed at once.
	rejectedPerClient = 64
)

// connLimiter counts connections by client. This machine's own have no limit but that of all.
type connLimiter struct {
	mu        sync.Mutex
	all       int
	remote    int
	anonymous int
	open      map[netip.Addr]int
	trusted   map[string][]netip.Addr // by id of the token
}

func newConnLimiter() *connLimiter {
	return &connLimiter{open: map[netip.Addr]int{}, trusted: map[string][]netip.Addr{}}
}

// slot is what a connection takes.
type slot struct {
	from netip.Addr
	// remote says that it comes from another machine.
	remote bool
	// anonymous says that the address had shown no good token when it came.
	anonymous bool
	// overLimit says that the address has more than its share.
	overLimit bool
}

// acquire finds a slot for a connection, or none.
func (c *connLimiter) acquire(remote net.Addr) (p slot, ok bool) {
	p.from = client(remote)
	c.mu.Lock()
	defer c.mu.Unlock()
	share := maxConnections
	if p.remote = !p.from.IsLoopback(); p.remote {
		share = authenticatedPerClient
		if p.anonymous = !c.trusts(p.from); p.anonymous {
			share = anonymousPerClient
		}
	}
	here := c.open[p.from]
	switch {
	case c.all >= maxConnections, here >= share+rejectedPerClient, p.remote && c.remote >= maxRemote, p.anonymous && c.anonymous >= maxAnonymous:
		return p, false
	}
	p.overLimit = here >= share
	c.all++
	c.open[p.from]++
	if p.remote {
		c.remote++
	}
	if p.anonymous {
		c.anonymous++
	}
	return p, true
}

// release gives the slot up.
func (c *connLimiter) release(p slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if p.remote {
		c.remote--
	}
	if p.anonymous {
		c.anonymous--
	}
	if c.open[p.from]--; c.open[p.from] == 0 {
		delete(c.open, p.from)
	}
}

// trust remembers that a good token was shown at the address.
func (c *connLimiter) trust(from netip.Addr, tokenID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if addresses := c.trusted[tokenID]; !slices.Contains(addresses, from) {
		addresses = append(addresses, from)
		c.trusted[tokenID] = addresses[max(0, len(addresses)-addressesPerToken):]
	}
}

func (c *connLimiter) trusts(from netip.Addr) bool {
	for _, addresses := range c.trusted {
		if slices.Contains(addresses, from) {
			return true
		}
	}
	return false
}

// client is whom connections are counted for: an address, or a network of IPv6, of which each machine has many.
func client(remote net.Addr) netip.Addr {
	from, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{}
	}
	addr := from.Addr().Unmap()
	if addr.Is4() || addr.IsLoopback() {
		return addr
	}
	network, _ := addr.WithZone("").Prefix(64) // of 64 bits, always
	return network.Addr()
}
