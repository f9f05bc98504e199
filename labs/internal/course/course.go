// Package course knows the course: its labs and their manifests, and the one
// annotated source, operator/, of which every starter and every solution is a
// rendering. It reads the checkout and never writes to it, except where a
// function says so.
package course

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// Folders and files of the checkout that make up the course.
const (
	// SourceDir holds the finished, annotated operator.
	SourceDir = "operator"
	// LabsDir holds one folder NN-name for every lab.
	LabsDir = "labs"
	// StagesDir holds the earlier versions of generated files, as
	// <stage>/<path>. The underscore keeps the go command out of it.
	StagesDir = "labs/_stages"

	configFile   = "labs/course.yaml"
	manifestFile = "lab.yaml"
)

// Course is a loaded course. It is safe for concurrent use.
type Course struct {
	// Root is the checkout.
	Root string
	// Labs are in order; Labs[i].Number is i+1.
	Labs []*Lab

	config *config
	source func() (*source, error)
}

// Lab is one step of the course, as its lab.yaml describes it.
type Lab struct {
	// Number counts from 1.
	Number int
	// Name is the folder's name without its number: "reconciler".
	Name string
	// Title is one line for people.
	Title string
	// Dir is the lab's folder, a slash path below the checkout:
	// "labs/04-reconciler".
	Dir string
	// Minutes is how long the lab takes a learner: a plan, not a limit.
	Minutes int
	// Instructor is what an instructor says and asks.
	Instructor Instructor
	// Checks are in the order in which they are reported.
	Checks []Check
	// Reruns are earlier labs whose checks are part of this lab's verdict.
	Reruns []int
	// RerunsRequire are checks of this lab that have to hold before those that it reruns are worth their time.
	RerunsRequire []string
	// Representative is the check that later labs ask again, to see whether
	// this lab still holds; "" when none does.
	Representative string
}

// Check describes one thing that a lesson asks for.
type Check struct {
	// ID is unique in the course.
	ID string `yaml:"id"`
	// Title says what holds when the check passes.
	Title string `yaml:"title"`
	// Requires are checks above this one, in its lab or an earlier one; when
	// one of them failed, this one is blocked.
	Requires []string `yaml:"requires"`
	// Needs are abilities that the cluster must have: NeedsPods, NeedsCollection.
	Needs []string `yaml:"needs"`
	// Hints are layers of hints by cause, the gentlest first. There is always
	// the cause OtherCause.
	Hints map[string][]string `yaml:"hints"`
	// Regions names, by cause, the part of operator/ that `make hint-N` offers after the last hint. That of OtherCause is
	// for causes without one. It may be empty.
	Regions map[string]string `yaml:"regions"`
}

// NeedsPods says whether the check can only be judged where Pods really run.
func (c Check) NeedsPods() bool { return slices.Contains(c.Needs, NeedsPods) }

const (
	// NeedsPods marks a check that can only be judged where Pods really run.
	NeedsPods = "pods"
	// NeedsCollection marks a check that waits for the garbage collector, which
	// has to know the learner's kind.
	NeedsCollection = "garbage-collection"
	// OtherCause is the key of the hints for a cause that has none of its own.
	OtherCause = "other"
)

var labFolder = regexp.MustCompile(`^([0-9]{2})-([a-z0-9][a-z0-9-]*)$`)

// Load reads labs/course.yaml and every labs/NN-name/lab.yaml below root. Its
// errors are one line that names file and field.
func Load(root string) (*Course, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("load course: %w", err)
	}
	c := &Course{Root: root, config: &config{}}
	if err := decodeFile(root, configFile, c.config); err != nil {
		return nil, err
	}
	if err := c.loadLabs(); err != nil {
		return nil, err
	}
	if err := c.config.validate(len(c.Labs)); err != nil {
		return nil, err
	}
	c.source = sync.OnceValues(func() (*source, error) { return readSource(c) })
	return c, nil
}

func (c *Course) loadLabs() error {
	entries, err := os.ReadDir(filepath.Join(c.Root, LabsDir))
	if err != nil {
		return fmt.Errorf("load course: %w", err)
	}
	for _, e := range entries {
		m := labFolder.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		number, _ := strconv.Atoi(m[1])
		if number == 0 {
			continue // it asks who acts, and has neither code nor checks
		}
		if want := len(c.Labs) + 1; number != want {
			return fmt.Errorf("%s/%s: the next lab is %02d", LabsDir, e.Name(), want)
		}
		lab, err := loadLab(c.Root, LabsDir+"/"+e.Name(), number, m[2])
		if err != nil {
			return err
		}
		c.Labs = append(c.Labs, lab)
	}
	if len(c.Labs) == 0 {
		return fmt.Errorf("%s: no lab here: a lab is a folder like 01-types with a %s", LabsDir, manifestFile)
	}
	return uniqueChecks(c.Labs)
}

// Lab returns lab n, or an error that names the valid range.
func (c *Course) Lab(n int) (*Lab, error) {
	if n < 1 || n > len(c.Labs) {
		return nil, fmt.Errorf("there is no lab %d: the labs are 1 to %d", n, len(c.Labs))
	}
	return c.Labs[n-1], nil
}

// Representatives are the earlier labs of which lab n asks one check again, each with that check alone. Those
// that it runs again as a whole are not among them.
func (c *Course) Representatives(n int) []*Lab {
	var found []*Lab
	for _, lab := range c.Labs[:n-1] {
		i := slices.IndexFunc(lab.Checks, func(check Check) bool { return check.ID == lab.Representative })
		if i >= 0 && !slices.Contains(c.Labs[n-1].Reruns, lab.Number) {
			part := *lab
			part.Checks = lab.Checks[i : i+1]
			found = append(found, &part)
		}
	}
	return found
}

// UnderRole says whether the manager runs under exactly its generated role when lab n is judged: from the first lab on that
// runs earlier ones again.
func (c *Course) UnderRole(n int) bool {
	return slices.ContainsFunc(c.Labs[:n], func(lab *Lab) bool { return len(lab.Reruns) > 0 })
}

// Check returns the check with the given id and its lab.
func (c *Course) Check(id string) (*Lab, *Check, error) {
	for _, lab := range c.Labs {
		for i := range lab.Checks {
			if lab.Checks[i].ID == id {
				return lab, &lab.Checks[i], nil
			}
		}
	}
	return nil, nil, fmt.Errorf("there is no check %q in the course", id)
}

// HintRegion is the region of our code that shows what the hints of a check for a cause are about, "" when there is none.
func (c *Course) HintRegion(check, cause string) string {
	_, found, err := c.Check(check)
	if err != nil {
		return ""
	}
	return cmp.Or(found.Regions[cause], found.Regions[OtherCause])
}

// Hint gives the layer, counted from 0, of a check's hints for a cause, or for [OtherCause] when the cause has none. It is
// "" when there is no such check or layer.
func (c *Course) Hint(check, cause string, layer int) string {
	_, found, err := c.Check(check)
	if err != nil {
		return ""
	}
	layers, ok := found.Hints[cause]
	if !ok {
		layers = found.Hints[OtherCause]
	}
	if layer < 0 || layer >= len(layers) {
		return ""
	}
	return layers[layer]
}
