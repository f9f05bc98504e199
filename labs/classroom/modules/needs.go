// Package modules knows which Go modules a learner's machine needs for the labs, brings them into a folder, and proves
// that a machine which reaches nothing else can do the labs with them.
package modules

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/internal/course"
)

// Need is a module that a learner's machine compiles, and whose dependencies it needs.
type Need struct {
	// Name is for people.
	Name string
	// Dir has its go.mod, go.sum and code. Nothing is written there.
	Dir string
	// Packages are compiled with their tests, Programs without; "tool" are the tools of its go.mod.
	Packages, Programs []string
	// Tidied says that people run `go mod tidy` there, which needs a few modules more than go.mod names: those that tests
	// of other people's packages import.
	Tidied bool
	// Systems are the operating systems that they are compiled on.
	Systems []string
}

// everywhere are the operating systems of learners.
func everywhere() []string { return []string{"linux", "darwin", "windows"} }

// Needs are what labs 1 to the last one compile: the learner's own module with its tools, and the lab itself with the
// suite and its tools. withEmbedded adds the control plane that takes the place of kind where there is no container
// engine, and kubectl. What has to be rendered is written into scratch.
func Needs(c *course.Course, scratch string, withEmbedded bool) ([]Need, error) {
	workspace := filepath.Join(scratch, "workspace")
	tree, err := c.Render(len(c.Labs))
	if err != nil {
		return nil, err
	}
	// go.mod and go.sum are the same at every stage; the last one imports the most.
	if err := tree.WriteTo(workspace); err != nil {
		return nil, err
	}
	needs := []Need{
		{
			Name: "the workspace", Dir: workspace, Packages: []string{"./..."},
			Programs: []string{"tool"}, Tidied: true, Systems: everywhere(),
		},
		{
			Name: "the lab", Dir: c.Root, Packages: []string{"./labs"},
			Programs: []string{"./labs/cmd/lab", "./labs/cmd/supervisor", "tool"}, Systems: everywhere(),
		},
	}
	if !withEmbedded {
		return needs, nil
	}
	sources, err := components.Sources(append(embedded.Components(), "kubectl")...)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		needs = append(needs, Need{
			Name: filepath.Base(s.Dir), Dir: filepath.Join(c.Root, filepath.FromSlash(s.Dir)), Programs: s.Packages,
			Systems: []string{"linux"},
		})
	}
	return needs, nil
}

func (n Need) modfile() (*modfile.File, error) {
	name := filepath.Join(n.Dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", n.Name, err)
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", n.Name, err)
	}
	return file, nil
}
