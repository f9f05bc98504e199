package handout_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/example/operator-lab/labs/internal/handout"
)

func render(t *testing.T, all []handout.Card) string {
	t.Helper()
	var b bytes.Buffer
	if err := handout.RenderCards(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func card(t *testing.T, n int, name string) handout.Card {
	t.Helper()
	return handout.Card{
		Learner: handout.Learner{ID: fmt.Sprintf("learner-%d", n), Name: name},
		Address: "http://192.168.1.5:7777", Token: learnersToken(t),
	}
}

func TestTheSheetOfCards(t *testing.T) {
	golden(t, "cards.html", render(t, []handout.Card{
		card(t, 1, "Ada Lovelace"), card(t, 2, "김영희"), card(t, 3, ""), {Learner: handout.Learner{ID: "learner-4"}},
	}))
}

// skeleton is a page without its text: elements and attributes, one a line.
func skeleton(t *testing.T, page string) (elements, texts []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			elements = append(elements, fmt.Sprintf("%s %v", n.Data, n.Attr))
		case html.TextNode:
			if n.Parent.Data == "h2" {
				texts = append(texts, n.Data)
			}
		}
	}
	return elements, texts
}

// Whatever people are called, the page has the elements that it has for Ada, and shows the name as it is.
func TestHostileNamesStayTextOnCards(t *testing.T) {
	names := []string{
		`<script>alert(1)</script>`, `</h2><img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`,
		`</style><style>*{display:none}`, `{{.Token}}`, `<!--`, `&lt;b&gt; & co`, `' onmouseover='alert(1)`,
	}
	var hostile, harmless []handout.Card
	for i, name := range names {
		hostile, harmless = append(hostile, card(t, i, name)), append(harmless, card(t, i, "Ada"))
	}
	want, _ := skeleton(t, render(t, harmless))
	got, texts := skeleton(t, render(t, hostile))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names made other elements:\n%s", diff)
	}
	if diff := cmp.Diff(names, texts); diff != "" {
		t.Error(diff)
	}
}

func TestThePageLoadsAndRunsNothing(t *testing.T) {
	page := render(t, []handout.Card{card(t, 1, "Ada")})
	elements, _ := skeleton(t, page)
	for _, e := range elements {
		for _, active := range []string{"script ", "link ", "img ", "iframe ", "a ", " src ", " href ", " on"} {
			if strings.HasPrefix(e, active) || strings.Contains(e, active) && active[0] == ' ' {
				t.Errorf("%s", e)
			}
		}
	}
	if strings.Contains(page, "url(") || strings.Contains(page, "@import") || strings.Contains(page, "ZgotmplZ") {
		t.Error("its style loads something, or the template refused a value")
	}
}

func TestEightCardsFillAPage(t *testing.T) {
	for count, want := range map[int]string{0: "", 1: "1", 8: "8", 9: "8 1", 30: "8 8 8 6"} {
		var all []handout.Card
		for i := range count {
			all = append(all, card(t, i, ""))
		}
		var pages []string
		for sheet := range strings.SplitSeq(render(t, all), `<section class="sheet">`) {
			if n := strings.Count(sheet, `<article`); n > 0 {
				pages = append(pages, fmt.Sprint(n))
			}
		}
		if got := strings.Join(pages, " "); got != want {
			t.Errorf("%d cards: pages of %q, want %q", count, got, want)
		}
	}
}

func TestTheSheetIsForTheInstructorAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "room")
	for _, name := range []string{"Ada", "Grace"} {
		if err := handout.WriteCards(dir, []handout.Card{card(t, 1, name)}); err != nil {
			t.Fatal(err)
		}
		if page := read(t, dir, handout.CardsFile); !strings.Contains(page, name) || !strings.Contains(page, secret) {
			t.Errorf("the sheet is not that of %s", name)
		}
		info, err := os.Stat(filepath.Join(dir, handout.CardsFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		onlyHandouts(t, dir, handout.CardsFile)
	}
}
