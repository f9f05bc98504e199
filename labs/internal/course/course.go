// Package course reads the course: the manifests of its labs, and operator/, the annotated source that every starter and
// every solution is rendered from. It never writes to the checkout, except where a function says so.
package course

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Folders and files of the checkout that make up the course.
const (
	SourceDir = "operator"             // the finished, annotated operator
	LabsDir   = "labs"                 // one folder NN-name for every lab
	LabZero   = "labs/00-who-did-that" // the lab without code, which has no manifest
	StagesDir = "labs/_stages"         // earlier versions of generated files, as <stage>/<path>; the go command ignores its underscore

	configFile   = "labs/course.yaml"
	manifestFile = "lab.yaml"
	contractFile = "docs/contract-card.md"
)

// Course is a loaded course. It is safe for concurrent use.
type Course struct {
	Root string // the checkout
	Labs []*Lab // in order; Labs[i].Number is i+1
	// Tasks are those of the CKA practice that a board shows beside the labs. Load leaves them out.
	Tasks []*Lab

	config *config
	source func() (*source, error)
}

// Load reads labs/course.yaml and every labs/NN-name/lab.yaml below root, except lab 0, which has no checks. Its errors are
// one line that names file and field.
func Load(root string) (*Course, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("load course: %w", err)
	}
	c := &Course{Root: root, config: &config{}}
	if err := Decode(root, configFile, c.config); err != nil {
		return nil, err
	}
	dirs, _ := fs.Glob(os.DirFS(root), LabsDir+"/[0-9][0-9]-*") // the pattern is well formed
	home := map[string]string{}                                 // the folder of each check, by id
	for _, dir := range dirs {
		number, _, _ := strings.Cut(path.Base(dir), "-")
		lab := &Lab{Dir: dir, Number: len(c.Labs) + 1}
		switch {
		case number == "00":
			continue
		case number != fmt.Sprintf("%02d", lab.Number):
			return nil, fmt.Errorf("%s: the next lab is %02d", dir, lab.Number)
		}
		if err := Decode(root, dir+"/"+manifestFile, lab); err != nil {
			return nil, err
		}
		if err := lab.validate(home); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", dir, manifestFile, err)
		}
		c.Labs = append(c.Labs, lab)
	}
	c.source = sync.OnceValues(c.readSource)
	return c, nil
}

// Lab returns lab n, or the task whose number that is, or an error that names the valid range.
func (c *Course) Lab(n int) (*Lab, error) {
	if i := slices.IndexFunc(c.Tasks, func(t *Lab) bool { return t.Number == n }); i >= 0 {
		return c.Tasks[i], nil
	}
	if n < 1 || n > len(c.Labs) {
		return nil, fmt.Errorf("there is no %s: the labs are 1 to %d", Name(n), len(c.Labs))
	}
	return c.Labs[n-1], nil
}

// Of is the course that knows the checks of a lab. Those of a task need not have ids of their own.
func (c *Course) Of(l *Lab) *Course {
	if l.Number < 0 {
		return &Course{Labs: []*Lab{l}}
	}
	return c
}

// Openings are the earlier labs with a manager, each with its opening check alone, which a verdict on lab n judges again. The lab
// that introduces the role has none: under a wrong role any check may fail, and that lab's own checks say why.
func (c *Course) Openings(n int) []*Lab {
	var found []*Lab
	if !c.Labs[n-1].Has(SetupManager) || c.Labs[n-1].Has(SetupRole) {
		return nil
	}
	for _, lab := range c.Labs[:n-1] {
		if lab.Has(SetupManager) {
			part := *lab
			part.Checks = lab.Checks[:1]
			found = append(found, &part)
		}
	}
	return found
}

// UnderRole says whether the manager runs under exactly its generated role when lab n is judged.
func (c *Course) UnderRole(n int) bool {
	return slices.ContainsFunc(c.Labs[:n], func(lab *Lab) bool { return lab.Has(SetupRole) })
}

// Check returns the check with the given id, nil when there is none.
func (c *Course) Check(id string) *Check {
	for _, lab := range c.Labs {
		for i := range lab.Checks {
			if lab.Checks[i].ID == id {
				return &lab.Checks[i]
			}
		}
	}
	return nil
}

// HintRegion is the region of operator/ with the code that the hints of a check for a cause are about, "" when there is none.
func (c *Course) HintRegion(check, cause string) string {
	found := cmp.Or(c.Check(check), &Check{})
	return cmp.Or(found.Regions[cause], found.Regions[finding.CauseOther])
}

// Hint gives the layer, counted from 0, of a check's hints for a cause, or for [finding.CauseOther] when the cause has none. It is
// "" when there is no such check or layer.
func (c *Course) Hint(check, cause string, layer int) string {
	found := cmp.Or(c.Check(check), &Check{})
	layers := found.Hints[cause]
	if layers == nil {
		layers = found.Hints[finding.CauseOther]
	}
	if layer >= len(layers) {
		return ""
	}
	return layers[layer]
}
