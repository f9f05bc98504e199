// Netprobe asks a memcached for its version until one answers: netprobe HOST:PORT SECONDS.
//
// Run in a Pod with the name of a Service, it shows that names are resolved and that the Service leads somewhere.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func main() {
	limit, err := time.ParseDuration(os.Args[2] + "s")
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	retry := time.NewTicker(200 * time.Millisecond)
	for end := time.Now().Add(limit); ; <-retry.C {
		err := probe(os.Args[1])
		if err == nil {
			return
		}
		fmt.Println(err)
		if time.Now().After(end) {
			os.Exit(1)
		}
	}
}

// probe returns nil when a memcached answers at the address.
func probe(address string) error {
	const timeout = 2 * time.Second
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := fmt.Fprint(conn, "version\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "VERSION ") {
		return fmt.Errorf("answer of %s is %q, want a version", address, line)
	}
	return nil
}
