// Dial tells whoever asks which addresses it can connect to: dial PORT, and then GET /?to=HOST:PORT,HOST:PORT on that
// port. The answer has a line for each that can be reached. GET /proc/… and /sys/… are what the
// kernel says there.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	http.HandleFunc("/", dial)
	http.HandleFunc("/proc/", file)
	http.HandleFunc("/sys/", file)
	fmt.Println(http.ListenAndServe(":"+os.Args[1], nil))
	os.Exit(1)
}

func file(w http.ResponseWriter, r *http.Request) {
	data, err := os.ReadFile(r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(data) // who asks notices
}

func dial(w http.ResponseWriter, r *http.Request) {
	for address := range strings.SplitSeq(r.FormValue("to"), ",") {
		conn, err := net.DialTimeout("tcp", address, 3*time.Second)
		if err != nil {
			continue
		}
		fmt.Fprintln(w, address)
		_ = conn.Close()
	}
}
