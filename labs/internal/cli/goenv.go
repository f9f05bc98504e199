package cli

import "os"

// forgetGoSettings has this program, and all that it starts, not see the settings of the Go command that somebody exported
// for other work: with them it would build for another machine, or not at all.
func forgetGoSettings() {
	for _, name := range []string{"GOOS", "GOARCH", "GOEXPERIMENT", "GO111MODULE", "GOROOT"} {
		_ = os.Unsetenv(name)
	}
}
