// Package roster knows who is in the room: the learners, in order, and whose cluster is which.
//
// Of a person nothing is read and nothing is kept but the name that the roster gives, which may be a pseudonym.
package roster

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// MostLearners is how many there may be in a room.
	MostLearners = 500
	// nameLimit is how long a name may be, in characters. The board takes no more.
	nameLimit = 60
	// idLimit is how long an id may be, in bytes. A DNS label has 63, and some of them are for others; what file systems
	// take is far more, with the names beside a handout.
	idLimit = 40
	// rosterLimit is how large a roster may be, in bytes.
	rosterLimit = 1 << 20
)

// headers are the titles of the one column of a roster that is read.
var headers = []string{"name", "learner", "student", "pseudonym"}

// Entry is one learner of a roster.
type Entry struct {
	// ID is made of the name: lower case letters, digits and dashes, good for a folder and a DNS label. It is "" for a
	// name that has none of those.
	ID string
	// Name is as the roster gives it.
	Name string
}

// ReadRoster reads the names out of a file: one a line, or CSV with a header and a column "name". Other columns are
// not looked at. The error is the roster's fault, says where, and is one line.
func ReadRoster(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the roster: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, rosterLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read the roster: %w", err)
	}
	entries, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return entries, nil
}

func parse(data []byte) ([]Entry, error) {
	switch {
	case len(data) > rosterLimit:
		return nil, fmt.Errorf("it has more than %d KiB, and a roster is a list of names", rosterLimit>>10)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8 text: save it as a CSV file in UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // spreadsheets like to begin so
	r := roster{column: -1, lines: map[string]int{}}
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comma, reader.FieldsPerRecord = separator(data), -1
	reader.TrimLeadingSpace = reader.Comma != '\t' // else empty columns would not count
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, fmt.Errorf("line %d: %w", bad.Line, bad.Err)
		}
		if err != nil {
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		if err := r.add(record, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if len(r.entries) == 0 {
		return nil, errors.New("it has no names: write one a line")
	}
	return r.entries, nil
}

// separator is what stands between the columns: a comma, unless the first line has only others.
func separator(data []byte) rune {
	first, _, _ := bytes.Cut(bytes.TrimLeft(data, " \r\n"), []byte("\n"))
	for _, s := range []rune{',', ';', '\t'} {
		if bytes.ContainsRune(first, s) {
			return s
		}
	}
	return ','
}

// roster is what was read so far.
type roster struct {
	begun   bool
	column  int // of the names; -1 where there is no header
	entries []Entry
	lines   map[string]int // of names and ids, without regard to case
}

// add takes one record, of which only the name is looked at.
func (r *roster) add(record []string, line int) error {
	if blank(record) {
		return nil
	}
	if !r.begun {
		r.begun = true
		if r.column = slices.IndexFunc(record, isHeader); r.column >= 0 {
			return nil
		}
	}
	name, err := r.name(record)
	if err != nil {
		return err
	}
	entry := Entry{ID: slug(name), Name: name}
	for _, key := range []string{strings.ToLower(name), entry.ID} {
		if first, twice := r.lines[key]; key != "" && twice && first != line {
			return fmt.Errorf("%q cannot be told from the name in line %d: change one of them", name, first)
		}
		r.lines[key] = line
	}
	if r.entries = append(r.entries, entry); len(r.entries) > MostLearners {
		return fmt.Errorf("these are more than %d learners", MostLearners)
	}
	return nil
}

func (r *roster) name(record []string) (string, error) {
	column := r.column
	switch {
	case column < 0 && len(record) > 1:
		return "", fmt.Errorf("there are %d columns, and no header says which has the names: begin with a line that "+
			"calls one of them name, or leave one name on each line", len(record))
	case column < 0:
		column = 0
	case column >= len(record):
		return "", errors.New("it has no name")
	}
	name := strings.TrimSpace(record[column])
	return name, checkName(name)
}

func blank(record []string) bool {
	return !slices.ContainsFunc(record, func(field string) bool { return strings.TrimSpace(field) != "" })
}

func isHeader(field string) bool {
	return slices.Contains(headers, strings.ToLower(strings.TrimSpace(field)))
}

// checkName refuses what cannot be shown: any script will do, characters that are not seen will not.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case utf8.RuneCountInString(name) > nameLimit:
		return fmt.Errorf("the name has more than %d characters", nameLimit)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the name %q has characters that cannot be seen", name)
	}
	return nil
}

// slug is a name in lower case letters, digits and dashes: "José Núñez" is jose-nunez. What has no such letters, or
// is a device to Windows, is "".
func slug(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range norm.NFKD.String(strings.ToLower(name)) {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r): // the accent of the letter before
		default:
			dash = true
		}
	}
	id := b.String()
	id = strings.TrimRight(id[:min(len(id), idLimit)], "-")
	if device.MatchString(id) {
		return ""
	}
	return id
}

var (
	idForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	// device names are no file names on Windows, whatever their extension.
	device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
)

// CheckID says what is wrong with the id of a learner, nil if nothing is.
func CheckID(id string) error {
	if len(id) > idLimit || !idForm.MatchString(id) || device.MatchString(id) {
		return fmt.Errorf("the id %.60q cannot name a handout: use at most %d lower-case letters, digits and hyphens, "+
			"as in learner-7", id, idLimit)
	}
	return nil
}
