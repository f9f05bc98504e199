// Dial tells whoever asks which addresses it can connect to: dial PORT, and then GET /?to=HOST:PORT,HOST:PORT on that
// port. The answer has a line for each that can be reached.
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
	fmt.Println(http.ListenAndServe(":"+os.Args[1], http.HandlerFunc(dial)))
	os.Exit(1)
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
