package course

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declaration is the line on which a function or type of Go begins. Learners' code does not always compile, so nothing parses it.
var declaration = regexp.MustCompile(`^(?:func (?:\([^)]*\) )?|type )(\w+)`)

// Place is where a workspace has, or should have, the code of a region: its TODO, or that of a region around it; without one, the
// function or type of the same name, in the file of the same name or another one of its folder; else the first line of that file.
// file is a slash path below the workspace, "" when it has no such file; line counts from 1.
func (c *Course) Place(workspace, id string) (file string, line int) {
	s, err := c.source()
	if err != nil || s.regions[id] == nil {
		return "", 0
	}
	r := s.regions[id]
	path, dir := filepath.Join(workspace, filepath.FromSlash(r.in.name)), path.Dir(r.in.name)
	text, err := os.ReadFile(path)
	for _, around := range slices.Backward(r.in.regions) { // the innermost first
		before, _, found := strings.Cut(string(text), around.todo())
		if found && around.text != "" && around.line <= r.line && r.end <= around.end {
			return r.in.name, strings.Count(before, "\n") + 1
		}
	}
	others, _ := filepath.Glob(filepath.Join(workspace, dir, "*.go"))
	for _, other := range append([]string{path}, others...) {
		data, _ := os.ReadFile(other)
		for i, line := range strings.Split(string(data), "\n") {
			if m := declaration.FindStringSubmatch(line); m != nil && m[1] == r.declared() {
				return filepath.ToSlash(filepath.Join(dir, filepath.Base(other))), i + 1
			}
		}
	}
	if err != nil {
		return "", 0
	}
	return r.in.name, 1
}

// declared is the name of the function or type that has the region, or that begins in or below it, "" when there is none.
func (r *region) declared() string {
	step := 1
	if comment.FindStringSubmatch(r.in.lines[r.line-1])[1] != "" { // indented: inside of it
		step = -1
	}
	for i := r.line - 1; 0 <= i && i < len(r.in.lines); i += step {
		if m := declaration.FindStringSubmatch(r.in.lines[i]); m != nil {
			return m[1]
		}
	}
	return ""
}
