package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

func newRegistryCommand(a *app) *cobra.Command {
	var port uint16
	var refuse bool
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "A registry of caches to try lab 10 with, until Ctrl-C (make registry)",
		Long: `registry serves the registry that lab 10 is about, and prints each request. Start your operator with the URL that it
prints. Its entries are gone when it ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := registry.Start(fmt.Sprintf("127.0.0.1:%d", port), func(q registry.Request) { fmt.Fprintln(a.Out, requestLine(q)) })
			if err != nil {
				return exit.Usage("%v; make registry PORT=0 takes any that is free", err)
			}
			defer r.Close()
			if refuse {
				r.Behave(registry.Everybody, registry.Behaviour{Statuses: []int{http.StatusUnprocessableEntity}, Only: http.MethodPut})
			}
			fmt.Fprintf(a.Out, "The registry is at %s until you press Ctrl-C. In another terminal:\n\n  REGISTRY_URL=%s make run\n\n", r.URL(), r.URL())
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().Uint16Var(&port, "port", 8090, "where to listen on this machine; 0 is any free port")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "answer each PUT with 422")
	return cmd
}

// requestLine is what is printed of a request.
func requestLine(q registry.Request) string {
	line := fmt.Sprintf("%s  %-6s %s  %d", q.Ended.Format(time.TimeOnly), q.Method, q.UID, q.Status)
	if q.Method == http.MethodPut {
		line += fmt.Sprintf("  %s/%s, size %d", q.Entry.Namespace, q.Entry.Name, q.Entry.Size)
	}
	return plain.Line(line)
}
