package bench

import (
	"fmt"
	"os"
	"strings"
)

// The blocks of the page that runs of the benchmark rewrite.
const (
	FiguresBlock = "figures"
	GrowthBlock  = "growth"
	RoomsBlock   = "rooms"
	// EmbeddedRoomsBlock is for rooms of embedded control planes.
	EmbeddedRoomsBlock = "embedded-rooms"
)

// WritePage replaces the block of that name on the page, which has to have exactly one: everything between the lines
// `<!-- bench:NAME begin -->` and `<!-- bench:NAME end -->`. The rest of the page stays as it is.
func WritePage(path, name, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	page, err := replaceBlock(string(data), name, text)
	if err != nil {
		return fmt.Errorf("write page %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// CheckPage says what would keep WritePage from writing, before anybody measures for it.
func CheckPage(path, name string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		_, err = replaceBlock(string(data), name, "")
	}
	if err != nil {
		return fmt.Errorf("write page %s: %w", path, err)
	}
	return nil
}

func replaceBlock(page, name, text string) (string, error) {
	begin, end := fmt.Sprintf("<!-- bench:%s begin -->\n", name), fmt.Sprintf("<!-- bench:%s end -->\n", name)
	if strings.Count(page, begin) != 1 || strings.Count(page, end) != 1 {
		return "", fmt.Errorf("it has not exactly one line %q and one line %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	before, rest, _ := strings.Cut(page, begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("%q stands before %q", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	return before + begin + strings.TrimRight(text, "\n") + "\n" + end + after, nil
}
