package roster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARosterIsReadInEveryShapeThatPeopleHave(t *testing.T) {
	ada, grace := Entry{"ada", "Ada"}, Entry{"grace-hopper", "Grace Hopper"}
	for name, test := range map[string]struct {
		text string
		want []Entry
	}{
		"a name a line":              {"Ada\nGrace Hopper\n", []Entry{ada, grace}},
		"without an end":             {"Ada\nGrace Hopper", []Entry{ada, grace}},
		"from Windows":               {"\ufeffAda\r\n\r\nGrace Hopper\r\n", []Entry{ada, grace}},
		"a header alone":             {"Name\nAda\nGrace Hopper\n", []Entry{ada, grace}},
		"a column among others":      {"id,NAME,e-mail\n1,Ada,ada@example.com\n2,\"Grace Hopper\",g@example.com\n", []Entry{ada, grace}},
		"with semicolons":            {"e-mail;name\nada@example.com;Ada\n;Grace Hopper\n", []Entry{ada, grace}},
		"with tabs, and empty cells": {"e-mail\tname\nada@example.com\tAda\n\tGrace Hopper\n", []Entry{ada, grace}},
		"with spaces around":         {"  Ada  \n   \n \"Grace Hopper\"\n", []Entry{ada, grace}},
		"an empty line of a table":   {"name,mail\nAda,a\n,\nGrace Hopper,g\n", []Entry{ada, grace}},
		"a name with a comma":        {"name\n\"Hopper, Grace\"\n", []Entry{{"hopper-grace", "Hopper, Grace"}}},
		"other letters": {"José Núñez\nZoë\nO'Neil\nØystein\n李明\n", []Entry{
			{"jose-nunez", "José Núñez"}, {"zoe", "Zoë"}, {"o-neil", "O'Neil"}, {"ystein", "Øystein"}, {"", "李明"},
		}},
		"what is no path is none": {"../../etc\n.\nA/B\n--x--\n", []Entry{
			{"etc", "../../etc"}, {"", "."}, {"a-b", "A/B"}, {"x", "--x--"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARosterThatCannotBeReadSaysWhereAndWhy(t *testing.T) {
	long := strings.Repeat("x", idLimit)
	for name, test := range map[string]struct{ text, line, why string }{
		"nothing":                      {"\n \n", "", "no names"},
		"a header alone":               {"name\n", "", "no names"},
		"twice":                        {"Ada\nGrace\n\nada\n", "line 4", "line 1"},
		"as good as twice":             {"name\nZoë\nzoe\n", "line 3", "line 2"},
		"columns of which none is it":  {"first,last\nAda,Lovelace\n", "line 1", "calls one of them name"},
		"a comma in a list":            {"Ada\nHopper, Grace\n", "line 2", "2 columns"},
		"a cell that is empty":         {"name,mail\nAda,a\n,g@example.com\n", "line 3", "no name"},
		"a row that is short":          {"mail,name\na,Ada\nb\n", "line 3", "no name"},
		"a quote that does not end":    {"Ada\n\"Grace\n", "line 2", "quote"},
		"a name of two lines":          {"name\n\"Ada\nLovelace\"\n", "line 2", "cannot be seen"},
		"a control character":          {"Ada\nGr\x1b[31mace\n", "line 2", "cannot be seen"},
		"a line that turns around":     {"Ada\n\u202eecarG\n", "line 2", "cannot be seen"},
		"a name that is none":          {"Ada\n" + strings.Repeat("x", 61) + "\n", "line 2", "60 characters"},
		"another encoding":             {"Ada\nZo\xeb\n", "", "UTF-8"},
		"too many":                     {many(501), "line 501", "500 learners"},
		"a file that is no roster":     {strings.Repeat("x", rosterLimit+1), "", "KiB"},
		"one and the same after a cut": {long + "1\n" + long + "2\n", "line 2", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]byte(test.text))
			if err == nil || !strings.HasPrefix(err.Error(), test.line) || !strings.Contains(err.Error(), test.why) {
				t.Fatalf("error %v, want %s and %q", err, test.line, test.why)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b\u202e") {
				t.Errorf("error %q is not one line of what can be seen", err)
			}
		})
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Name %d\n", i)
	}
	return b.String()
}

func TestAsManyAsThereMayBe(t *testing.T) {
	if entries, err := parse([]byte(many(MostLearners))); err != nil || len(entries) != MostLearners {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestAnIDIsALabelWhateverTheName(t *testing.T) {
	label := regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?)?$`)
	names := []string{"Ada", "a.b", strings.Repeat("é ", 30), "-", "ＡＤＡ", "İstanbul", "x" + strings.Repeat("-", 50) + "y", "Con", "lpt1"}
	for _, name := range names {
		id := slug(name)
		if !label.MatchString(id) {
			t.Errorf("%q has the id %q", name, id)
		}
		if err := CheckID(id); id != "" && err != nil {
			t.Errorf("%q has the id %q, and no handout: %v", name, id, err)
		}
	}
}

func TestAnErrorNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster.csv")
	if _, err := ReadRoster(path); err == nil || !strings.Contains(err.Error(), "roster.csv") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("Ada\nAda\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRoster(path); err == nil || !strings.HasPrefix(err.Error(), "roster.csv: line 2: ") {
		t.Errorf("ReadRoster() = %v", err)
	}
}
