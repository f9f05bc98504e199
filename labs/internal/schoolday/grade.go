//go:build unix

package schoolday

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
)

// grade has all workspaces graded as an instructor does, from a folder with one of each learner, and compares the
// grades with what the learners saw last.
func (d *day) grade(ctx context.Context) error {
	dir := filepath.Join(d.logs, "handed-in")
	for _, l := range d.learners {
		tree, err := course.ReadTree(l.workspace())
		if err == nil {
			err = tree.WriteTo(filepath.Join(dir, l.ID))
		}
		if err != nil {
			return fmt.Errorf("hand in the work of %s: %w", l.ID, err)
		}
	}
	out := filepath.Join(d.logs, "grades")
	r, err := d.shell(ctx, "instructor-grades", fmt.Sprintf("bin/lab grade '%s' --out '%s'", dir, out))
	if err != nil {
		return err
	}
	grades, err := readGrades(filepath.Join(out, "grades.csv"))
	if err != nil {
		return fmt.Errorf("%w; grading ended with %d:\n%s", err, r.code, last(r.output))
	}
	return d.agree(grades)
}

// agree compares grades, by learner and lab, with what the learners saw.
func (d *day) agree(grades map[string]map[int]string) error {
	var differences []string
	for _, l := range d.learners {
		for lab, saw := range l.stands() {
			if grade := grades[l.ID][lab]; grade != string(saw) {
				differences = append(differences, fmt.Sprintf("%s saw %s in lab %d, and the grade is %q", l.ID, saw, lab, grade))
			}
		}
	}
	if len(differences) > 0 {
		return fmt.Errorf("the grades are not what the learners saw: %s", strings.Join(differences, "; "))
	}
	return nil
}

// readGrades reads the table that lab grade writes: verdicts by learner and lab.
func readGrades(path string) (map[string]map[int]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("read the grades: %d rows, %w", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	grades := map[string]map[int]string{}
	for _, row := range rows[1:] {
		lab, err := strconv.Atoi(row[column["lab"]])
		if err != nil {
			return nil, fmt.Errorf("read the grades: %w", err)
		}
		learner := row[column["learner"]]
		if grades[learner] == nil {
			grades[learner] = map[int]string{}
		}
		grades[learner][lab] = row[column["verdict"]]
	}
	return grades, nil
}
