package course

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Instructor is what an instructor needs of a lab in the room.
type Instructor struct {
	// Say are three short sentences: what to say before everybody begins.
	Say []string `yaml:"say"`
	// Ask is the question to ask when somebody is stuck.
	Ask string `yaml:"ask"`
}

const (
	// shortestLab and longestLab bound the minutes of a lab. Whoever needs longer than two hours needs two labs.
	shortestLab, longestLab = 5, 120
	// sentences is how many an instructor says: what can be said without reading it off.
	sentences = 3
	// longestSentence is counted in characters; more nobody reads at once.
	longestSentence = 140
)

var sentenceEnd = regexp.MustCompile(`[.!?](\s|$)`)

// validateTeaching looks at what the instructor needs.
func (m *manifest) validateTeaching() error {
	switch {
	case m.Minutes == 0:
		return fmt.Errorf("minutes: is missing: how long the lab takes a learner, from %d to %d", shortestLab, longestLab)
	case m.Minutes < shortestLab || m.Minutes > longestLab || m.Minutes != math.Trunc(m.Minutes):
		return fmt.Errorf("minutes: must be a whole number from %d to %d, is %v", shortestLab, longestLab, m.Minutes)
	case len(m.Instructor.Say) != sentences:
		return fmt.Errorf("instructor.say: must be %d sentences, has %d", sentences, len(m.Instructor.Say))
	}
	for i, text := range m.Instructor.Say {
		if err := shortSentence(text); err != nil {
			return fmt.Errorf("instructor.say[%d]: %w", i, err)
		}
	}
	if err := shortSentence(m.Instructor.Ask); err != nil {
		return fmt.Errorf("instructor.ask: %w", err)
	}
	if !strings.HasSuffix(m.Instructor.Ask, "?") {
		return errors.New("instructor.ask: must be a question")
	}
	return nil
}

// shortSentence refuses what is not one short sentence on one line.
func shortSentence(text string) error {
	ends := sentenceEnd.FindAllStringIndex(text, -1)
	switch {
	case text == "" || text != strings.TrimSpace(text) || strings.Contains(text, "\n"):
		return errors.New("must be a sentence on one line")
	case len(ends) != 1 || ends[0][1] != len(text):
		return errors.New("must be one sentence, with a full stop or a question mark at its end")
	case utf8.RuneCountInString(text) > longestSentence:
		return fmt.Errorf("must have at most %d characters, has %d", longestSentence, utf8.RuneCountInString(text))
	}
	return nil
}
