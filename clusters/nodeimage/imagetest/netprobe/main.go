// Netprobe shows that a Service leads from one Pod to another: "netprobe serve :PORT" answers, and "netprobe ask URL"
// asks until it is answered.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	if os.Args[1] == "serve" {
		fmt.Println(http.ListenAndServe(os.Args[2], nil))
		os.Exit(1)
	}
	client := http.Client{Timeout: 2 * time.Second}
	for range time.Tick(200 * time.Millisecond) {
		_, err := client.Get(os.Args[2])
		if err == nil {
			return
		}
		fmt.Println(err)
	}
}
