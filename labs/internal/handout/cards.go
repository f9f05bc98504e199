package handout

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"

	"github.com/example/operator-lab/labs/internal/board/token"
	"github.com/example/operator-lab/labs/internal/exit"
)

// CardsFile is the sheet of cards, in the folder that holds the handouts.
const CardsFile = "cards.html"

// Card is what a learner finds at their place.
type Card struct {
	Learner Learner
	// Address is where the room is found, such as http://192.168.1.5:7777; "" leaves it out.
	Address string
	// Token opens it; the zero value leaves it out.
	Token token.Token
}

// cardsPerPage fill a sheet of A4: two columns of four.
const cardsPerPage = 8

var cards = template.Must(template.ParseFS(templates, "templates/"+CardsFile))

// face is what a card shows.
type face struct{ ID, Name, Address, Token string }

// RenderCards writes the sheet: one HTML file for A4 paper that loads nothing and runs nothing.
func RenderCards(w io.Writer, all []Card) error {
	faces := make([]face, 0, len(all))
	for _, c := range all {
		f := face{ID: c.Learner.ID, Name: c.Learner.name(), Address: c.Address}
		if c.Token != (token.Token{}) {
			f.Token = c.Token.Reveal()
		}
		faces = append(faces, f)
	}
	if err := cards.Execute(w, slices.Collect(slices.Chunk(faces, cardsPerPage))); err != nil {
		return fmt.Errorf("print the cards: %w", err)
	}
	return nil
}

// WriteCards writes the sheet into dir, for its owner alone, in the place of an earlier one. It returns when the
// sheet is there whole, or leaves the earlier one.
func WriteCards(dir string, all []Card) (err error) {
	var sheet bytes.Buffer
	if err := RenderCards(&sheet, all); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exit.Usage("write the cards: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return exit.Usage("write the cards: %w", err)
	}
	defer root.Close()
	const fresh = "." + CardsFile + ".new"
	err = root.RemoveAll(fresh) // of a process that was killed
	if err == nil {
		err = root.WriteFile(fresh, sheet.Bytes(), 0o600)
	}
	if err == nil {
		err = root.Rename(fresh, CardsFile)
	}
	if err != nil {
		return fmt.Errorf("write the cards: %w", errors.Join(err, root.RemoveAll(fresh)))
	}
	return nil
}
