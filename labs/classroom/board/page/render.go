package page

import (
	"embed"
	"html/template"
	"io"
	"io/fs"
	"time"
)

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

var pages = template.Must(template.New("").ParseFS(templates, "templates/*.html"))

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
	return pages.ExecuteTemplate(w, "board.html", b)
}

// RenderLogin writes the page that asks for the instructor's token. message says why the last one did not do.
func RenderLogin(w io.Writer, message string) error {
	return pages.ExecuteTemplate(w, "login.html", message)
}

// Render writes the detail as a page of its own, for a browser without scripts.
func (d Detail) Render(w io.Writer) error { return pages.ExecuteTemplate(w, "detail.html", d) }

// Stamp is when the page was made.
func (b Board) Stamp() string { return b.At.Local().Format("2006-01-02 15:04") }
