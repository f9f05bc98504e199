// Command golangci-lint is golangci-lint with the linter logcheck, which a Kubebuilder project's .golangci.yml asks for.
package main

import (
	"os"
	"runtime"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	_ "sigs.k8s.io/logtools/logcheck/gclplugin"
)

func main() {
	if commands.Execute(commands.BuildInfo{Version: "built from source", GoVersion: runtime.Version()}) != nil { // it prints the error
		os.Exit(1)
	}
}
