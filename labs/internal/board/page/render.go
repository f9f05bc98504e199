package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"time"
)

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"anchor": anchor}).ParseFS(templates, "templates/*.html"))

// Assets are the style sheet and the scripts of the pages.
func Assets() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return sub
}

// Board is all that the main page shows.
type Board struct {
	// Version is where live updates go on.
	Version string
	// At is when this was true.
	At      time.Time
	Labs    []Lab
	Rows    []Row
	Summary Summary
}

// Render writes the live page.
func (b Board) Render(w io.Writer) error {
	return pages.ExecuteTemplate(w, "board.html", view{Board: b})
}

// RenderLogin writes the page that asks for the instructor's token. message says why the last one did not do.
func RenderLogin(w io.Writer, message string) error {
	return pages.ExecuteTemplate(w, "login.html", message)
}

// Render writes the detail as a page of its own, for a browser without scripts.
func (d Detail) Render(w io.Writer) error { return pages.ExecuteTemplate(w, "detail.html", d) }

// Section is one cell of a copy, with what it opens.
type Section struct {
	Learner int64
	Lab     int
	Detail  Detail
}

// view is what the templates of the board and of its copy see.
type view struct {
	Board
	// Copy: nothing of it is live, and everything stands on one page.
	Copy     bool
	Sections []Section
	Style    template.CSS
	// Policy allows that style and nothing else.
	Policy string
}

// Stamp is when the page was made.
func (v view) Stamp() string { return v.At.Local().Format("2006-01-02 15:04") }

// RenderCopy writes the board as one file for the records: no script, no address, nothing to load. sections are
// the cells that open something.
func (b Board) RenderCopy(w io.Writer, sections []Section) error {
	style, err := assets.ReadFile("assets/board.css")
	if err != nil {
		return fmt.Errorf("read style sheet: %w", err)
	}
	sum := sha256.Sum256(style)
	return pages.ExecuteTemplate(w, "board.html", view{
		Board: b, Copy: true, Sections: sections, Style: template.CSS(style),
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	})
}

// anchor is where a cell's section stands on a copy.
func anchor(learner int64, lab int) string { return fmt.Sprintf("cell-%d-%d", learner, lab) }
