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
	maxConnections = 2048
	// maxAnonymous are those of all addresses that have not shown a good token yet, maxRemote those of all machines but
	// this one, and maxLocal those of this one. The rest is kept for others.
	maxAnonymous, maxRemote, maxLocal = 1024, 1984, 1024
	// perClient are those of one address before it has shown a good token, and those for which one token vouches.
	perClient = 64
	// perAddress are those of one address for which tokens vouch, however many: of all machines behind a router, say.
	perAddress = 512
	// addressesPerToken are those that one token vouches for, the latest ones: a laptop that changes its network.
	addressesPerToken = 2
	// rejectedPerClient are as many more, which are told to come again. Those beyond are closed at once.
	rejectedPerClient = 64
)

// connLimiter counts connections by client.
type connLimiter struct {
	mu        sync.Mutex
	all       int
	remote    int
	anonymous int
	open      map[string]int          // by client: an address, or the id of a token
	vouched   map[netip.Addr]int      // by the address for which a token vouched
	trusted   map[string][]netip.Addr // by id of the token
}

func newConnLimiter() *connLimiter {
	return &connLimiter{open: map[string]int{}, vouched: map[netip.Addr]int{}, trusted: map[string][]netip.Addr{}}
}

// slot is what a connection takes.
type slot struct {
	from netip.Addr
	// client is whose share it is of: that of the token that vouches for the address, or of the address.
	client string
	// remote says that it comes from another machine.
	remote bool
	// anonymous says that no token vouched for the address when it came.
	anonymous bool
	// overLimit says that the client has more than its share.
	overLimit bool
}

// acquire finds a slot for a connection, or none.
func (c *connLimiter) acquire(remote net.Addr) (p slot, ok bool) {
	p.from = address(remote)
	c.mu.Lock()
	defer c.mu.Unlock()
	p.client, p.remote = network(p.from).String(), !p.from.IsLoopback()
	if p.remote {
		token := c.voucher(p.from)
		if p.anonymous = token == ""; !p.anonymous {
			p.client = token
		}
	}
	share := perClient
	if !p.remote {
		share = maxLocal
	}
	here := c.open[p.client]
	switch {
	case c.all >= maxConnections, here >= share+rejectedPerClient, p.remote && c.remote >= maxRemote,
		p.anonymous && c.anonymous >= maxAnonymous, c.vouched[p.from] >= perAddress:
		return p, false
	}
	p.overLimit = here >= share
	c.count(p, 1)
	return p, true
}

// release gives the slot up.
func (c *connLimiter) release(p slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(p, -1)
}

func (c *connLimiter) count(p slot, n int) {
	c.all += n
	if p.remote {
		c.remote += n
	}
	if p.anonymous {
		c.anonymous += n
	}
	if c.open[p.client] += n; c.open[p.client] == 0 {
		delete(c.open, p.client)
	}
	if p.remote && !p.anonymous {
		if c.vouched[p.from] += n; c.vouched[p.from] == 0 {
			delete(c.vouched, p.from)
		}
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

// voucher is the id of the token that vouches for an address, "" without one. Of several, such as behind a router that has
// one address for all, it is the one with the fewest connections.
func (c *connLimiter) voucher(from netip.Addr) string {
	found := ""
	for token, addresses := range c.trusted {
		if slices.Contains(addresses, from) && (found == "" || c.open[token] < c.open[found]) {
			found = token
		}
	}
	return found
}

// address is that of a machine, for which a token vouches.
func address(remote net.Addr) netip.Addr {
	from, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// network is whom connections without a token are counted for: an address, or a network of IPv6, of which each machine has
// many addresses.
func network(addr netip.Addr) netip.Addr {
	if !addr.Is6() || addr.IsLoopback() {
		return addr
	}
	prefix, _ := addr.Prefix(64) // of 64 bits, always
	return prefix.Addr()
}
