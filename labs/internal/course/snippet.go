package course

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Snippet returns the text of a region for a lesson: as it stands at the
// region's own lab, without marker lines, TODOs and common indentation, ending
// with a line end. "id@7" is the same at stage 7.
func (c *Course) Snippet(id string) (string, error) {
	s, err := c.source()
	if err != nil {
		return "", err
	}
	id, at, hasStage := strings.Cut(id, "@")
	r := s.regions[id]
	if r == nil {
		return "", fmt.Errorf("there is no region %q in %s/", id, SourceDir)
	}
	stage := r.Lab
	if hasStage {
		stage, err = strconv.Atoi(at)
		if err != nil || stage < r.Lab || stage > len(c.Labs) {
			return "", fmt.Errorf("region %s@%s: it exists at the stages %d to %d", id, at, r.Lab, len(c.Labs))
		}
	}
	w := &writer{comment: commentOf(r.File), stage: stage, braces: filepath.Ext(r.File) == ".go"}
	w.gone()
	w.region(r)
	w.gone()
	return dedent(w.String()), nil
}

// Region returns the region with the given id.
func (c *Course) Region(id string) (*Region, error) {
	s, err := c.source()
	if err != nil {
		return nil, err
	}
	if r := s.regions[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("there is no region %q in %s/", id, SourceDir)
}

// dedent takes away the white space that all lines with text begin with.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	common, first := "", true
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			common, first = indent, false
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, common), " \t")
	}
	return strings.Join(lines, "\n")
}
