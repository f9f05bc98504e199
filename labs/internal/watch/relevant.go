package watch

import (
	"path"
	"slices"
	"strings"
)

// kinds are the endings of files that a verdict can depend on: what is compiled, what it may embed, and manifests.
// What else a learner embeds is not noticed, and Enter checks it. The other way round, with a list of what to
// ignore, every log and every profile in the workspace would start a check.
var kinds = []string{".go", ".yaml", ".yml", ".json", ".tmpl", ".tpl"}

// relevant says whether a verdict can depend on a file, by its slash path below the workspace. It cannot depend on
// tests, which no check compiles, nor on the Makefile, which no check runs, nor on what the Go command leaves out.
// The names that editors give to their own files (.x.go.swp, x.go~, #x.go#, .#x.go, 4913) are none of the kinds, or
// hidden.
func relevant(file string) bool {
	name := path.Base(file)
	switch {
	case hidden(name) || strings.HasSuffix(name, "_test.go"):
		return false
	case file == "go.mod" || file == "go.sum":
		return true
	}
	return slices.Contains(kinds, path.Ext(name))
}

// nobodys are names of folders that hold no part of the operator.
var nobodys = []string{"testdata", "vendor", "node_modules"}

// followed says whether there may be relevant files in a folder, by its slash path below the workspace.
func followed(folder string) bool {
	name := path.Base(folder)
	built := folder == "bin" || folder == "dist"
	return !hidden(name) && !built && !slices.Contains(nobodys, name)
}

// hidden is what the Go command leaves out, and where git and editors keep their own.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }
