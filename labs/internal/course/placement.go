package course

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// lintPlacement looks at where the marker lines of a Go file stand.
//
// controller-gen and godoc read the comments of declarations and fields, so a
// marker line must not become part of one, nor come between a group of
// "+kubebuilder" comments and what it belongs to. Inside of functions, values
// and import lists nobody reads comments, and markers may stand anywhere.
func lintPlacement(file string, src []byte, p *parsed) []Problem {
	l := &placement{file: file, parsed: p, fset: token.NewFileSet(), lines: strings.Split(string(src), "\n")}
	tree, err := parser.ParseFile(l.fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []Problem{{file, 0, err.Error()}}
	}
	l.free = freeZones(tree)
	l.docs = docComments(tree)
	for _, group := range tree.Comments {
		if slices.ContainsFunc(group.List, func(c *ast.Comment) bool { return l.isMarker(l.line(c.Pos())) }) {
			l.group(group)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.TYPE {
				l.reach(tree, n.Doc, n)
			}
		case *ast.Field:
			if !l.isFree(n) {
				l.reach(tree, n.Doc, n)
			}
		}
		return true
	})
	return l.problems
}

type placement struct {
	file     string
	parsed   *parsed
	fset     *token.FileSet
	lines    []string
	free     []ast.Node
	docs     map[*ast.CommentGroup]bool
	problems []Problem
}

// freeZones are the parts of a file whose comments nobody reads.
func freeZones(file *ast.File) (zones []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.CompositeLit, *ast.CallExpr:
			zones = append(zones, n)
			return false
		case *ast.GenDecl:
			if n.Tok == token.IMPORT {
				zones = append(zones, n)
				return false
			}
		}
		return true
	})
	return zones
}

// docComments are the comments that belong to a declaration, field or package.
func docComments(file *ast.File) map[*ast.CommentGroup]bool {
	docs := map[*ast.CommentGroup]bool{file.Doc: true}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			docs[n.Doc] = true
		case *ast.FuncDecl:
			docs[n.Doc] = true
		case *ast.TypeSpec:
			docs[n.Doc] = true
		case *ast.ValueSpec:
			docs[n.Doc] = true
		case *ast.Field:
			docs[n.Doc] = true
		}
		return true
	})
	return docs
}

func (l *placement) isFree(n ast.Node) bool {
	return slices.ContainsFunc(l.free, func(zone ast.Node) bool { return zone.Pos() < n.Pos() && n.End() <= zone.End() })
}

func (l *placement) line(pos token.Pos) int { return l.fset.Position(pos).Line }

func (l *placement) complain(line int, format string, args ...any) {
	l.problems = append(l.problems, Problem{l.file, line, fmt.Sprintf(format, args...)})
}

// isMarker says whether a line begins, ends or divides a region.
func (l *placement) isMarker(line int) bool {
	return slices.Contains(l.parsed.markers, line)
}

// isOurs says whether a line is a marker or one of the lines after "before".
func (l *placement) isOurs(line int) bool {
	return l.isMarker(line) || slices.Contains(l.parsed.befores, line)
}

// group looks at a group of comment lines with a marker among them. It must
// hold nothing else and keep an empty line's distance from code. The one
// company that a marker may keep is that of "+" comments in a group that is no
// doc comment: there controller-gen skips it.
func (l *placement) group(group *ast.CommentGroup) {
	if l.isFree(group) {
		return
	}
	for _, c := range group.List {
		line := l.line(c.Pos())
		if !l.isOurs(line) && (l.docs[group] || !strings.HasPrefix(c.Text, "// +")) {
			l.complain(line, "a region's marker stands inside of this comment: put an empty line between them")
			return
		}
	}
	first, last := l.line(group.Pos()), l.line(group.End())
	if !l.quiet(first-1, opens) || !l.quiet(last+1, closes) {
		l.complain(first, "a region's marker needs an empty line on both sides next to a declaration or field")
	}
}

// quiet says whether a line is empty, outside of the file, or the brace that
// surrounds the region.
func (l *placement) quiet(line int, brace func(string) bool) bool {
	if line < 1 || line > len(l.lines) {
		return true
	}
	text := l.lines[line-1]
	return strings.TrimSpace(text) == "" || brace(text)
}

// reach looks whether a type or field reaches its group of "+" comments: only
// the closest group above it (or above its doc comment) counts.
func (l *placement) reach(file *ast.File, doc *ast.CommentGroup, n ast.Node) {
	start := n.Pos()
	if doc != nil {
		start = doc.Pos()
	}
	above := commentsAbove(file, l.codeBefore(start), start)
	if len(above) == 0 || !l.isOurs(l.line(above[len(above)-1].Pos())) {
		return
	}
	for _, group := range above {
		if !l.isOurs(l.line(group.Pos())) && hasTypeMarker(group) {
			l.complain(l.line(group.Pos()), "a region's marker stands between these + comments and what they belong to: controller-gen would not see them")
		}
	}
}

// codeBefore returns the end of the last line of code above pos.
func (l *placement) codeBefore(pos token.Pos) token.Pos {
	f := l.fset.File(pos)
	for line := l.line(pos) - 1; line > 0; line-- {
		text := strings.TrimSpace(l.lines[line-1])
		if text != "" && !strings.HasPrefix(text, "//") {
			return f.LineStart(line) + 1
		}
	}
	return token.Pos(f.Base())
}

func commentsAbove(file *ast.File, from, to token.Pos) (groups []*ast.CommentGroup) {
	for _, g := range file.Comments {
		if g.Pos() > from && g.End() < to {
			groups = append(groups, g)
		}
	}
	return groups
}

// hasTypeMarker says whether a group has a "+" comment that belongs to a type
// or field; those about RBAC and scaffolding belong to the package.
func hasTypeMarker(group *ast.CommentGroup) bool {
	return slices.ContainsFunc(group.List, func(c *ast.Comment) bool {
		text, ok := strings.CutPrefix(c.Text, "// +")
		return ok && !strings.HasPrefix(text, "kubebuilder:rbac:") && !strings.HasPrefix(text, "kubebuilder:scaffold:")
	})
}
